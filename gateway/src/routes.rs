//! The routes: what a request asks for, and a handler for each.

mod batch;
mod batch_table;
mod forward;
mod http;
mod job;
mod models;
mod prepared;
mod request;
mod request_body;
mod scoped_models;
mod services;
mod table;
mod value;

use ::http::{HeaderMap, Response, request::Parts};
use hyper::body::Incoming;
use pushdown::wire::{Features, header};

use self::http::insert;
use crate::{
    audit::{AuditedHead, Auditor},
    body::Body,
    error::Result,
    resign::{BatchAdmission, ForwardAdmission, ModelsAdmission, ReadAdmission, Resign},
    s3::{self, query},
    server::Connection,
};
use batch::BatchRoute;
use forward::ForwardRoute;
use models::ModelsRoute;
pub use services::Services;
use value::ValueRoute;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Plain S3: forwarded unchanged.
    Forward,
    /// A pipeline on one object, in a header or in the query.
    Pipeline,
    /// A pipeline on many objects.
    Batch,
    /// The models that pipelines can use.
    Models,
}

impl Route {
    /// The names of all routes.
    pub const NAMES: [&'static str; 4] = [
        Self::Forward.name(),
        Self::Pipeline.name(),
        Self::Batch.name(),
        Self::Models.name(),
    ];

    /// The route of a request.
    pub fn for_request(head: &Parts) -> Self {
        let path = head.uri.path();
        if path == header::BATCH_PATH {
            Self::Batch
        } else if path
            .strip_prefix(header::MODELS_PATH)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            Self::Models
        } else {
            Self::for_object(head)
        }
    }

    /// The route of a request that addresses an object, whatever its key is.
    fn for_object(head: &Parts) -> Self {
        if head.headers.contains_key(header::PIPELINE)
            || head
                .uri
                .query()
                .is_some_and(|query| query::values(query, header::PIPELINE).next().is_some())
        {
            Self::Pipeline
        } else {
            Self::Forward
        }
    }

    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Pipeline => "pipeline",
            Self::Batch => "batch",
            Self::Models => "models",
        }
    }
}

/// Who verifies callers and decides on their requests.
#[derive(Debug, Clone)]
pub enum Mode {
    /// The store, by the callers' own signatures.
    Forward,
    /// The gateway, which audits each request.
    Resign {
        /// Verifies, decides and signs again.
        resign: Resign,
        /// Makes the records, without which nothing is admitted.
        auditor: Auditor,
    },
}

/// The head of a request that is still to be admitted.
#[derive(Debug)]
pub enum UnadmittedHead<'a> {
    /// In forward mode.
    Forward(Parts),
    /// In re-sign mode, with its audit record.
    Resign(&'a Resign, AuditedHead),
}

impl UnadmittedHead<'_> {
    fn parts(&self) -> &Parts {
        match self {
            Self::Forward(head) => head,
            Self::Resign(_, head) => head.parts(),
        }
    }

    /// Admits a request to a route: in forward mode unchanged, in re-sign mode once it is verified.
    fn admit<A>(
        self,
        unchanged: impl FnOnce(Parts) -> A,
        verified: impl FnOnce(&Resign, AuditedHead) -> Result<A>,
    ) -> Result<A> {
        match self {
            Self::Forward(head) => Ok(unchanged(head)),
            Self::Resign(resign, head) => verified(resign, head),
        }
    }
}

/// The handler of each route.
#[derive(Debug)]
pub struct Routes {
    forward: ForwardRoute,
    value: ValueRoute,
    batch: BatchRoute,
    models: ModelsRoute,
    /// What this gateway can do beyond version 0.1.0.
    features: Features,
    mode: Mode,
}

impl Routes {
    /// Handlers that use `services`.
    pub fn new(services: Services, mode: Mode) -> Self {
        Self {
            forward: ForwardRoute::new(services.clone()),
            value: ValueRoute::new(services.clone()),
            features: features(&services, &mode),
            mode,
            models: ModelsRoute::new(services.models.clone(), services.limits.queue_wait),
            batch: BatchRoute::new(services),
        }
    }

    /// Who verifies callers.
    pub const fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The route of a request. On a virtual host every path is a key.
    pub fn route(&self, head: &Parts) -> Route {
        match &self.mode {
            Mode::Resign { resign, .. } if resign.is_virtual_host(&head.headers) => Route::for_object(head),
            Mode::Resign { .. } | Mode::Forward => Route::for_request(head),
        }
    }

    /// Answers a request by its route.
    ///
    /// # Errors
    /// Any kind of [`ErrorKind`](crate::error::ErrorKind). A refusal by the store is an answer, and no error.
    pub async fn answer(
        &self,
        route: Route,
        head: UnadmittedHead<'_>,
        body: Incoming,
    ) -> Result<Response<Body>> {
        let parts = head.parts();
        s3::request::check(parts)?;
        let connection = parts.extensions.get::<Connection>();
        s3::framing::check(
            &parts.headers,
            connection.is_some_and(Connection::has_ambiguous_framing),
        )?;
        let mut answer = match route {
            Route::Forward => {
                let admission = head.admit(ForwardAdmission::Unchanged, Resign::admit_forward)?;
                return self.forward.answer(admission, body).await;
            }
            Route::Pipeline => {
                let admission = head.admit(ReadAdmission::unchanged, Resign::admit_read)?;
                self.value.answer(admission, body).await
            }
            Route::Batch => {
                let admission = head.admit(BatchAdmission::unchanged, Resign::admit_batch)?;
                self.batch.answer(admission, body).await
            }
            Route::Models => {
                let admission = head.admit(ModelsAdmission::unchanged, Resign::admit_to_models)?;
                self.models.answer(admission).await
            }
        }?;
        // An answer to a pipeline without an engine is the store's, to which nothing is added.
        if route != Route::Pipeline || answer.headers().contains_key(header::ENGINE) {
            self.insert_features(answer.headers_mut());
        }
        Ok(answer)
    }

    /// Adds what this gateway can do beyond version 0.1.0.
    pub fn insert_features(&self, headers: &mut HeaderMap) {
        insert(headers, header::FEATURES, &self.features.to_string());
    }
}

/// What a gateway with these services can do beyond version 0.1.0.
fn features(services: &Services, mode: &Mode) -> Features {
    let mut features = Features::all();
    // Hints for a cache that is off would be bytes in vain.
    if !services.cache.is_on() {
        features = features.without(Features::CACHE);
    }
    // Only re-sign mode can decide on samples without signatures.
    if matches!(mode, Mode::Forward) {
        features = features.without(Features::SIGNED_BATCHES);
    }
    features
}

#[cfg(test)]
mod tests {
    use ::http::{Request, request::Builder};

    use super::*;

    fn route(builder: Builder) -> Route {
        Route::for_request(&builder.body(()).unwrap().into_parts().0)
    }

    fn get(uri: &str) -> Builder {
        Request::get(uri)
    }

    #[test]
    fn requests_are_routed_by_path_header_and_query() {
        assert_eq!(route(get("/bucket/key?x-pushdown-split=1")), Route::Forward);
        assert_eq!(
            route(get("/bucket/key?a=b&x-pushdown-pipeline=decode")),
            Route::Pipeline
        );
        assert_eq!(
            route(get("/bucket/key").header(header::PIPELINE, "decode")),
            Route::Pipeline
        );
        assert_eq!(route(get("/_pushdown/v1/batch")), Route::Batch);
        assert_eq!(route(get("/_pushdown/v1/batches")), Route::Forward);
        assert_eq!(route(get("/_pushdown/v1/models/0a")), Route::Models);
        assert_eq!(route(get("/_pushdown/v1/modelss")), Route::Forward);
    }
}
