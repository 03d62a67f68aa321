//! `DeleteObjects` by keys that the store does not decide on alone: the only request whose body is read before it is forwarded.

use http::request::Parts;
use http::{Request, Response};
use hyper::body::Incoming;

use super::ForwardRoute;
use crate::audit::AuditRecord;
use crate::body::{self, Body};
use crate::compute::Tenant;
use crate::error::Result;
use crate::origin::Progress;
use crate::resign::{BodyCheck, Deletion, MAX_DELETION_BYTES};
use crate::routes::request_body::{BodyLimits, read_body};
use crate::s3::auth::stream::VerifyingBody;

impl ForwardRoute {
    /// Reads and verifies the whole body, and sends the objects that the caller may delete.
    pub(super) async fn delete(
        &self,
        mut parts: Parts,
        body: Incoming,
        check: BodyCheck,
        deletion: Deletion,
    ) -> Result<Response<Body>> {
        let services = &self.services;
        let limits = BodyLimits {
            max_bytes: MAX_DELETION_BYTES,
            idle_timeout: services.limits.batch_body_idle_timeout,
            total_timeout: services.limits.batch_body_timeout,
        };
        let mode = check.mode;
        let body = VerifyingBody::new(body, mode, check.seed, &check.headers)?;
        let (body, _permits) = read_body(
            &services.memory,
            Tenant::from_access_key(Some(deletion.tenant())),
            body,
            limits,
        )
        .await?;
        services.metrics.bytes_from_clients.inc_by(body.len() as u64);
        if let Some(audit) = parts.extensions.get::<AuditRecord>() {
            audit.add_bytes_in(body.len());
        }
        let decided = deletion.decide(mode, &body, &mut parts)?;
        let Some(body) = decided.body() else {
            return Ok(decided.refusal());
        };
        let request = Request::from_parts(parts, body::full(body));
        let progress = Progress::default();
        let answer = services.origin.send(request, &progress, ()).await?;
        decided.complete(answer).await
    }
}
