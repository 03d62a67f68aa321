//! The version route: what this gateway is, for every caller, with a key or without one.

use std::future::{Ready, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use pushdown::{
    Engine,
    wire::{self, Features},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::{
    body::{self, Body},
    error::Result,
    resign::PublicAdmission,
};

/// Answers with the version, the features and the engine of this gateway, and whether it drains. All is known before the request, so
/// that the answer waits for no store, memory, thread or model. In re-sign mode its audit record must be kept first, as that of every
/// request.
#[derive(Debug, Clone)]
pub(super) struct VersionRoute {
    serving: StateAnswer,
    draining: StateAnswer,
    drain: CancellationToken,
}

/// The answer in one state.
#[derive(Debug, Clone)]
struct StateAnswer {
    state: HeaderValue,
    document: Bytes,
}

impl VersionRoute {
    /// The route of a gateway with these features, which drains once `drain` is cancelled.
    pub(super) fn new(features: &Features, drain: CancellationToken) -> Self {
        Self {
            serving: StateAnswer::new(wire::header::SERVING, features),
            draining: StateAnswer::new(wire::header::DRAINING, features),
            drain,
        }
    }

    /// Answers every caller with the same text.
    ///
    /// # Errors
    /// None.
    pub(super) fn answer<B>(&self, _admission: PublicAdmission, _body: B) -> Ready<Result<Response<Body>>> {
        let StateAnswer { state, document } = if self.drain.is_cancelled() {
            &self.draining
        } else {
            &self.serving
        };
        let mut response = Response::new(body::full(document.clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, document.len().into());
        headers.insert(wire::header::STATE, state.clone());
        ready(Ok(response))
    }
}

impl StateAnswer {
    fn new(state: &'static str, features: &Features) -> Self {
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "features": features.names().collect::<Vec<_>>(),
            "engine": Engine::all().to_string(),
            "state": state,
        });
        Self {
            state: HeaderValue::from_static(state),
            document: document.to_string().into(),
        }
    }
}
