//! The routes: what a request asks for, and a handler for each.

mod batch;
mod batch_table;
mod forward;
mod http;
mod job;
mod models;
mod request;
mod request_body;
mod scoped_models;
mod services;
mod stage;
mod table;
mod value;

use ::http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use pushdown::wire::{Features, header};

use self::http::insert;
use crate::{
    body::Body,
    error::Result,
    resign::Resign,
    s3::{self, query},
    server::Connection,
};
use batch::BatchRoute;
use forward::ForwardRoute;
use models::ModelsRoute;
use scoped_models::model_scope;
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
    pub fn for_request<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        if path == header::BATCH_PATH {
            Self::Batch
        } else if path
            .strip_prefix(header::MODELS_PATH)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            Self::Models
        } else {
            Self::for_object(request)
        }
    }

    /// The route of a request that addresses an object, whatever its key is.
    fn for_object<B>(request: &Request<B>) -> Self {
        if request.headers().contains_key(header::PIPELINE)
            || request
                .uri()
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

/// The handler of each route.
#[derive(Debug)]
pub struct Routes {
    forward: ForwardRoute,
    value: ValueRoute,
    batch: BatchRoute,
    models: ModelsRoute,
    /// What this gateway can do beyond version 0.1.0.
    features: Features,
    resign: Option<Resign>,
}

impl Routes {
    /// Handlers that use `services`.
    pub fn new(services: Services) -> Self {
        Self {
            forward: ForwardRoute::new(services.clone()),
            value: ValueRoute::new(services.clone()),
            features: features(&services),
            resign: services.resign.clone(),
            models: ModelsRoute::new(services.models.clone(), services.limits.queue_wait),
            batch: BatchRoute::new(services),
        }
    }

    /// The route of a request. On a virtual host every path is a key.
    pub fn route<B>(&self, request: &Request<B>) -> Route {
        match &self.resign {
            Some(resign) if resign.is_virtual_host(request.headers()) => Route::for_object(request),
            _ => Route::for_request(request),
        }
    }

    /// Answers a request by its route.
    ///
    /// # Errors
    /// Any kind of [`ErrorKind`](crate::error::ErrorKind). A refusal by the store is an answer, and no error.
    pub async fn answer(&self, route: Route, request: Request<Incoming>) -> Result<Response<Body>> {
        s3::request::check(&request)?;
        let connection = request.extensions().get::<Connection>();
        s3::framing::check(
            request.headers(),
            connection.is_some_and(Connection::has_ambiguous_framing),
        )?;
        let request = self.admit(route, request)?;
        let mut answer = match route {
            Route::Forward => return self.forward.answer(request).await,
            Route::Pipeline => self.value.answer(request).await,
            Route::Batch => self.batch.answer(request).await,
            Route::Models => {
                let scope = model_scope(self.resign.as_ref(), request.extensions())?;
                self.models.answer(request, scope).await
            }
        }?;
        // An answer to a pipeline without an engine is the store's, to which nothing is added.
        if route != Route::Pipeline || answer.headers().contains_key(header::ENGINE) {
            self.insert_features(answer.headers_mut());
        }
        Ok(answer)
    }

    /// In re-sign mode, verifies the caller and decides. The samples of a batch are decided on one by one.
    fn admit<B>(&self, route: Route, request: Request<B>) -> Result<Request<B>> {
        let Some(resign) = &self.resign else {
            return Ok(request);
        };
        let (parts, body) = request.into_parts();
        let parts = match route {
            Route::Forward => resign.admit(parts, false)?,
            Route::Pipeline => resign.admit(parts, true)?,
            Route::Models => resign.admit_to_models(parts)?,
            Route::Batch => resign.admit_batch(parts)?,
        };
        Ok(Request::from_parts(parts, body))
    }

    /// Adds what this gateway can do beyond version 0.1.0.
    pub fn insert_features(&self, headers: &mut HeaderMap) {
        insert(headers, header::FEATURES, &self.features.to_string());
    }
}

/// What a gateway with these services can do beyond version 0.1.0.
fn features(services: &Services) -> Features {
    let mut features = Features::all();
    // Hints for a cache that is off would be bytes in vain.
    if !services.cache.is_on() {
        features = features.without(Features::CACHE);
    }
    // Only re-sign mode can decide on samples without signatures.
    if services.resign.is_none() {
        features = features.without(Features::SIGNED_BATCHES);
    }
    features
}

#[cfg(test)]
mod tests {
    use ::http::{Request, request::Builder};

    use super::*;

    fn route(builder: Builder) -> Route {
        Route::for_request(&builder.body(()).unwrap())
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
