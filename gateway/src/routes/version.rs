//! The version route: what this gateway is, for every caller, with a key or without one.

use std::future::{Ready, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use pushdown::wire::{self, Features};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    Services,
    batch::max_part_bytes,
    http::{insert, insert_engine},
};
use crate::{
    body::{self, Body},
    engine,
    error::Result,
    resign::PublicAdmission,
};

/// Answers with the version, the features, the cores and the engine of this gateway, its id among replicas, and whether it drains. All is
/// known before the request, so that the answer waits for no store, memory, thread or model. In re-sign mode its audit record must be kept first, as that of every
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
    headers: HeaderMap,
    document: Bytes,
}

impl VersionRoute {
    /// The route of a gateway with these features.
    pub(super) fn new(services: &Services, features: &Features) -> Self {
        Self {
            serving: StateAnswer::new(wire::header::SERVING, services, features),
            draining: StateAnswer::new(wire::header::DRAINING, services, features),
            drain: services.drain.clone(),
        }
    }

    /// Answers every caller with the same text.
    ///
    /// # Errors
    /// None.
    pub(super) fn answer<B>(&self, _admission: PublicAdmission, _body: B) -> Ready<Result<Response<Body>>> {
        let StateAnswer { headers, document } = if self.drain.is_cancelled() {
            &self.draining
        } else {
            &self.serving
        };
        let mut response = Response::new(body::full(document.clone()));
        *response.headers_mut() = headers.clone();
        ready(Ok(response))
    }
}

impl StateAnswer {
    fn new(state: &'static str, services: &Services, features: &Features) -> Self {
        let engine = engine::stated_for_all();
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "features": features.names().collect::<Vec<_>>(),
            "engine": engine.to_string(),
            "replica": services.replica,
            "state": state,
        });
        let document = Bytes::from(document.to_string());
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, document.len().into());
        headers.insert(wire::header::STATE, HeaderValue::from_static(state));
        insert_engine(&mut headers, &engine);
        services.insert_cores(&mut headers);
        insert(
            &mut headers,
            wire::header::PART_BYTES,
            &max_part_bytes(&services.memory).to_string(),
        );
        Self { headers, document }
    }
}
