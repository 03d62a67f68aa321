//! The version route: what this gateway is, for every caller, with a key or without one.

use std::future::{Ready, ready};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use pushdown::{Engine, wire::Features};
use serde_json::json;

use crate::{
    body::{self, Body},
    error::Result,
    resign::PublicAdmission,
};

/// Answers with the version, the features and the engine of this gateway. They are known at start, so that the answer waits for no
/// store, memory, thread or model. In re-sign mode its audit record must be kept first, as that of every request.
#[derive(Debug, Clone)]
pub(super) struct VersionRoute {
    document: Bytes,
}

impl VersionRoute {
    /// The route of a gateway with these features.
    pub(super) fn new(features: &Features) -> Self {
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "features": features.names().collect::<Vec<_>>(),
            "engine": Engine::all().to_string(),
        });
        Self {
            document: document.to_string().into(),
        }
    }

    /// Answers every caller with the same text.
    ///
    /// # Errors
    /// None.
    pub(super) fn answer<B>(&self, _admission: PublicAdmission, _body: B) -> Ready<Result<Response<Body>>> {
        let mut response = Response::new(body::full(self.document.clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_LENGTH, self.document.len().into());
        ready(Ok(response))
    }
}
