//! `DeleteObjects` by keys that the store does not decide on alone: the only request whose body is read before it is forwarded.

use http::Response;
use hyper::body::Incoming;

use super::ForwardRoute;
use super::write_answer::WriteAnswer;
use crate::body::{self, Body};
use crate::compute::Tenant;
use crate::error::Result;
use crate::origin::{Progress, StoreSignature};
use crate::resign::{DeletionRequest, MAX_DELETION_BYTES};
use crate::routes::request_body::{BodyLimits, read_body};
use crate::s3::auth::stream::VerifyingBody;

impl ForwardRoute {
    /// Reads and verifies the whole body, and sends the objects that the caller may delete.
    pub(super) async fn delete(&self, request: DeletionRequest, body: Incoming) -> Result<Response<Body>> {
        let services = &self.services;
        let DeletionRequest {
            mut head,
            deletion,
            body_check,
            audit,
        } = request;
        let write = services.cache.begin_write(&head);
        let limits = BodyLimits {
            max_bytes: MAX_DELETION_BYTES,
            idle_timeout: services.limits.batch_body_idle_timeout,
            total_timeout: services.limits.batch_body_timeout,
        };
        let mode = body_check.mode;
        let body = VerifyingBody::new(body, mode, body_check.seed, &body_check.headers)?;
        let (body, _permits) = read_body(
            &services.memory,
            Tenant::from_access_key(Some(deletion.tenant())),
            body,
            limits,
        )
        .await?;
        services.metrics.bytes_from_clients.inc_by(body.len() as u64);
        audit.add_bytes_in(body.len());
        let decided = deletion.decide(mode, &body, &mut head, &audit)?;
        let answer = match decided.allowed() {
            None => decided.refusal(),
            Some(allowed) => {
                let signature = StoreSignature::Renewed(allowed.signing.clone());
                let (body, progress) = (body::full(allowed.body.clone()), Progress::default());
                let answer = services.origin.send(head, signature, body, &progress, ()).await?;
                decided.complete(answer).await?
            }
        };
        Ok(match write {
            Some(write) => WriteAnswer::watch(answer, write),
            None => answer,
        })
    }
}
