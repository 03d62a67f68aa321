//! Answers requests: by their routes, counted, logged and audited.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pushdown::wire::header;
use tracing::{info, warn};

use super::tracked::AnswerTracker;
use crate::body::{self, Body};
use crate::error::{Error, ErrorChain, ErrorKind};
use crate::routes::{Mode, Route, Routes, UnadmittedHead};
use crate::s3::errors::{self, ErrorAnswer, RequestId};
use crate::s3::request;
use crate::server::{Connection, Handler, NoSlot};
use crate::telemetry::Metrics;

/// Answers each request by its route: counts it, and logs its failure.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) routes: Routes,
    pub(super) max_header_bytes: u64,
    pub(super) metrics: Metrics,
}

impl Handler for Gateway {
    const PROBE_PATH: &'static str = header::VERSION_PATH;

    async fn handle(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let (route, address) = self.routes.route(&head);
        let no_slot = head.extensions.get::<Connection>().and_then(Connection::no_slot);
        let in_flight = self.metrics.track_in_flight(route.name());
        let (method, target) = (head.method.clone(), head.uri.clone());
        let begun = match self.routes.mode() {
            Mode::Forward => Ok((UnadmittedHead::Forward(head), None)),
            Mode::Resign { resign, auditor } => auditor
                .begin(head, address, route.own_operation())
                .await
                .map(|(head, audit)| (UnadmittedHead::Resign(resign, head), Some(audit))),
        };
        let (answer, mut audit) = match begun {
            Ok((head, audit)) => {
                let answer = match no_slot {
                    // On a virtual host or at a stated store the path of the probe is a key.
                    Some(no_slot) if route != Route::Version => Err(lack_of_slots(no_slot)),
                    _ => self.routes.answer(route, head, body).await,
                };
                (answer, audit)
            }
            Err(error) => (Err(error), None),
        };
        let error = answer.as_ref().err().cloned();
        let response = answer.unwrap_or_else(|error| {
            let mut refusal = refuse(&error, route, &method, target.path());
            if route != Route::Forward {
                self.routes.announce(refusal.headers_mut());
            }
            refusal
        });
        if let Some(audit) = &mut audit {
            audit.set_answer(&response, error.as_ref());
        }
        self.metrics.count_answer(route.name(), response.status());
        AnswerTracker::track(response, self.metrics.bytes_to_clients.clone(), in_flight, audit)
            .map(BodyExt::boxed_unsync)
    }

    fn rejection(&self, status: StatusCode) -> Option<Bytes> {
        let error = request::unreadable_head(status, self.max_header_bytes);
        let id = RequestId::random();
        info!(%id, code = errors::code(error.kind()), cause = %ErrorChain(&error), "request refused");
        Some(errors::closing_answer(&error, id))
    }

    fn refusal(&self, no_slot: NoSlot) -> Bytes {
        // A line of the log for each would cost more than the refusal: a metric counts them.
        errors::closing_answer(&lack_of_slots(no_slot), RequestId::random())
    }
}

/// The error of a request on a connection without a slot.
fn lack_of_slots(no_slot: NoSlot) -> Error {
    let message = match no_slot {
        NoSlot::OfClient => {
            "too many connections: a request is in flight on each connection that the client may have; try again later"
        }
        NoSlot::OfAll => {
            "too many connections: a request is in flight on each connection of the gateway, and others wait; try again later"
        }
        NoSlot::Draining => {
            "the gateway is shutting down: send the request to another gateway, or try again later"
        }
    };
    Error::new(ErrorKind::SlowDown, message)
}

/// Turns an error into its answer. This is the only place that logs it.
fn refuse(error: &Error, route: Route, method: &Method, path: &str) -> Response<Body> {
    let id = RequestId::random();
    let (name, code) = (route.name(), ErrorAnswer::from_error(error).code);
    let cause = ErrorChain(error);
    if error.kind().is_fault() {
        warn!(%id, route = name, code, %method, %cause, "request failed");
    } else {
        info!(%id, route = name, code, %method, %cause, "request refused");
    }
    let response = errors::respond(error, path, id);
    if method == Method::HEAD {
        response.map(|_| body::empty())
    } else {
        response
    }
}
