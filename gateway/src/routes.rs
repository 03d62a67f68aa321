//! The routes: what a request asks for, and a handler for each.
//!
//! A route is a file with its handler and one row of the table in this file.

mod account;
mod batch;
mod batch_table;
mod forward;
mod http;
mod job;
mod models;
mod request;
mod request_body;
mod row;
mod scoped_models;
mod services;
mod stage;
mod stated_store;
mod table;
mod value;
mod version;

use ::http::{HeaderMap, Method, Response, request::Parts};
use hyper::body::Incoming;
use pushdown::wire::{Features, header};

use self::http::insert;
use crate::{
    audit::{AuditedHead, Auditor},
    body::{self, Body},
    config::ReplicaId,
    error::Result,
    resign::{BatchAdmission, ForwardAdmission, ModelsAdmission, PublicAdmission, ReadAdmission, Resign},
    s3::{self, AddressStyle, RequestAddress},
    server::Connection,
};
use batch::BatchRoute;
use forward::ForwardRoute;
use models::ModelsRoute;
use row::{Methods, Place};
pub use services::Services;
use value::ValueRoute;
use version::VersionRoute;

/// Methods that change nothing.
const READS: &[Method] = &[Method::GET, Method::HEAD];
/// The method of a request with a body of the gateway's own.
const POST: &[Method] = &[Method::POST];

/// Defines [`Route`] and [`Routes`] from the rows of the table. A row has
///
/// - the variant of [`Route`], and in brackets the name in metrics and logs,
/// - `handler`: the type that answers, and how it is made of [`Services`] and [`Features`],
/// - `place` and `methods`: which requests it gets,
/// - `forward`: what a request is admitted as in forward mode, made of its head,
/// - `resign`: the method of [`Resign`] that admits a request in re-sign mode, as the same type,
/// - `own_operation`: the name in the audit log of an operation that S3 does not have.
macro_rules! routes {
    ($(
        $(#[doc = $sentence:literal])+
        $route:ident($name:ident) {
            handler: $handler:ident = $new:expr,
            place: $place:expr,
            methods: $methods:expr,
            forward: $unchanged:expr,
            resign: $verified:expr,
            own_operation: $own_operation:expr,
        }
    )+) => {
        /// What a request asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Route {
            $($(#[doc = $sentence])+ $route,)+
        }

        impl Route {
            const ALL: [Self; Self::NAMES.len()] = [$(Self::$route),+];

            /// The names of all routes.
            pub const NAMES: [&'static str; [$(stringify!($name)),+].len()] = [$(stringify!($name)),+];

            /// The name in metrics and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$route => stringify!($name),)+
                }
            }

            /// The name in the audit log of an operation that S3 does not have.
            pub const fn own_operation(self) -> Option<&'static str> {
                match self {
                    $(Self::$route => $own_operation,)+
                }
            }

            const fn place(self) -> Place {
                match self {
                    $(Self::$route => $place,)+
                }
            }

            const fn methods(self) -> Methods {
                match self {
                    $(Self::$route => $methods,)+
                }
            }
        }

        /// The handler of each route.
        #[derive(Debug)]
        struct Handlers {
            $($name: $handler,)+
        }

        impl Handlers {
            fn new(services: &Services, features: &Features) -> Self {
                Self {
                    $($name: {
                        let new: fn(&Services, &Features) -> $handler = $new;
                        new(services, features)
                    },)+
                }
            }
        }

        impl Routes {
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
                let (method, connection) = (parts.method.clone(), parts.extensions.get::<Connection>());
                s3::request::check(parts, connection.is_some_and(Connection::has_ambiguous_framing))?;
                if route != Route::Pipeline {
                    stated_store::refuse(parts)?;
                }
                let mut answer = match route {
                    $(Route::$route => {
                        let admission = match head {
                            UnadmittedHead::Forward(head) => $unchanged(head),
                            UnadmittedHead::Resign(resign, head) => $verified(resign, head)?,
                        };
                        route.methods().check(&method)?;
                        self.handlers.$name.answer(admission, body).await?
                    })+
                };
                let is_own = route.own_operation().is_some();
                // An answer to a pipeline without an engine is the store's, to which nothing is added.
                if is_own || route == Route::Pipeline && answer.headers().contains_key(header::ENGINE) {
                    self.announce(answer.headers_mut());
                }
                Ok(if is_own && method == Method::HEAD {
                    answer.map(|_| body::empty())
                } else {
                    answer
                })
            }
        }
    };
}

routes! {
    /// What this gateway is: for every caller, at any time.
    Version(version) {
        handler: VersionRoute = |services, features| VersionRoute::new(services, features),
        place: Place::Path(header::VERSION_PATH),
        methods: Methods::Only(READS, "invalid method for the version: expected GET or HEAD"),
        forward: PublicAdmission::new,
        resign: PublicAdmission::audited,
        own_operation: Some("pushdown:Version"),
    }
    /// A pipeline on many objects.
    Batch(batch) {
        handler: BatchRoute = |services, _| BatchRoute::new(services.clone()),
        place: Place::Path(header::BATCH_PATH),
        methods: Methods::Only(POST, "invalid method for a batch: expected POST"),
        forward: BatchAdmission::unchanged,
        resign: Resign::admit_batch,
        own_operation: Some("pushdown:Batch"),
    }
    /// The models that pipelines can use.
    Models(models) {
        handler: ModelsRoute = |services, _| ModelsRoute::new(services.models.clone(), services.limits.queue_wait),
        place: Place::Below(header::MODELS_PATH),
        methods: Methods::Only(
            READS,
            "invalid method for models: expected GET or HEAD; to add a model, put it into the gateway's folder",
        ),
        forward: ModelsAdmission::unchanged,
        resign: Resign::admit_to_models,
        own_operation: Some("pushdown:Models"),
    }
    /// A pipeline on one object, in a header or in the query.
    Pipeline(pipeline) {
        handler: ValueRoute = |services, _| ValueRoute::new(services.clone()),
        place: Place::Pipeline,
        methods: Methods::Any,
        forward: ReadAdmission::unchanged,
        resign: Resign::admit_read,
        own_operation: None,
    }
    /// Plain S3: forwarded unchanged.
    Forward(forward) {
        handler: ForwardRoute = |services, _| ForwardRoute::new(services.clone()),
        place: Place::Anything,
        methods: Methods::Any,
        forward: ForwardAdmission::Unchanged,
        resign: Resign::admit_forward,
        own_operation: None,
    }
}

impl Route {
    /// The route of a request: the first one whose row fits.
    fn for_request(head: &Parts, is_virtual_host: bool) -> Self {
        let mut routes = Self::ALL.into_iter();
        routes
            .find(|route| route.place().contains(head, is_virtual_host))
            .unwrap_or(Self::Forward)
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

/// The head of a request that is still to be admitted. Not `Debug`: signatures and session tokens are in it.
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
}

/// Answers requests by their routes.
#[derive(Debug)]
pub struct Routes {
    handlers: Handlers,
    /// What this gateway can do beyond version 0.1.0.
    features: Features,
    /// The id of this gateway among its replicas.
    replica: ReplicaId,
    mode: Mode,
}

impl Routes {
    /// Handlers that use `services`.
    pub fn new(services: &Services, mode: Mode) -> Self {
        let features = features(services, &mode);
        Self {
            handlers: Handlers::new(services, &features),
            features,
            replica: services.replica.clone(),
            mode,
        }
    }

    /// Who verifies callers.
    pub const fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The route of a request, and in re-sign mode what it addresses. On a virtual host every path is a key.
    pub fn route(&self, head: &Parts) -> (Route, Option<RequestAddress>) {
        let (address, is_virtual_host) = match &self.mode {
            // At a store that the request states, too.
            Mode::Forward => (None, head.headers.contains_key(header::STORE)),
            Mode::Resign { resign, .. } => match resign.address(head) {
                // A malformed path is one on a virtual host, too.
                None => (None, resign.is_virtual_host(head)),
                Some(address) => {
                    let is_virtual_host = address.style() == AddressStyle::VirtualHost;
                    (Some(address), is_virtual_host)
                }
            },
        };
        (Route::for_request(head, is_virtual_host), address)
    }

    /// Adds what this gateway can do beyond version 0.1.0, and its id among replicas.
    pub fn announce(&self, headers: &mut HeaderMap) {
        insert(headers, header::REPLICA, self.replica.as_str());
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
    if !services.origin.has_stated_stores() {
        features = features.without(Features::STORES);
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
        Route::for_request(&builder.body(()).unwrap().into_parts().0, false)
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
        assert_eq!(route(get("/_pushdown/v1/version")), Route::Version);
        assert_eq!(route(get("/_pushdown/v1/version/")), Route::Forward);
        // The gateway's own paths come first.
        let probe = get("/_pushdown/v1/version?x-pushdown-pipeline=decode");
        assert_eq!(route(probe), Route::Version);
    }

    #[test]
    fn every_path_of_a_virtual_host_is_a_key() {
        let route = |uri: &str| {
            let head = get(uri).body(()).unwrap().into_parts().0;
            Route::for_request(&head, true)
        };
        for path in ["version", "batch", "models", "models/0a"] {
            let uri = format!("/_pushdown/v1/{path}");
            assert_eq!(route(&uri), Route::Forward, "{uri}");
            let pipeline = format!("{uri}?x-pushdown-pipeline=decode");
            assert_eq!(route(&pipeline), Route::Pipeline, "{pipeline}");
        }
    }
}
