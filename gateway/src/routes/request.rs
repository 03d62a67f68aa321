//! A GET or HEAD with a pipeline: parsed, and checked as far as possible before anything is fetched.

use http::{Method, Request, request::Parts};

use super::{Services, job::PipelineJob, prepared::Prepared, scoped_models::model_scope};
use crate::{
    error::{Error, ErrorKind, Result},
    origin::{OriginRequest, Signing},
};

/// A request for the value of one object.
#[derive(Debug)]
pub(super) struct PipelineRequest {
    pub(super) parts: Parts,
    pub(super) job: PipelineJob,
    /// What is known without the object; `None` if the split depends on it.
    pub(super) known: Option<Prepared>,
}

impl PipelineRequest {
    /// Takes the request apart. Waits if its pipeline may name a model that has not been inspected yet.
    ///
    /// # Errors
    /// For everything in the request that is wrong for any object.
    pub(super) async fn read<B: http_body::Body>(request: Request<B>, services: &Services) -> Result<Self> {
        let (parts, body) = request.into_parts();
        check_no_body(&body)?;
        let models = &services.models;
        let scope = model_scope(services.resign.as_ref(), &parts.extensions)?;
        let job = match PipelineJob::for_request(&parts, models, &scope) {
            Err(_) if !models.is_ready() => {
                models.wait_until_ready(services.limits.queue_wait).await?;
                PipelineJob::for_request(&parts, models, &scope)
            }
            job => job,
        }?;
        let known = Prepared::from_text(&parts, &job)?;
        Ok(Self { parts, job, known })
    }

    /// Whether the value is computed, from a GET of the object. The signature of a HEAD authorizes no GET, unless the gateway signs
    /// for the store. The length of streamed rows is unknown before their end, so that nothing is gained from a scan for a HEAD.
    pub(super) fn needs_value(&self) -> bool {
        let is_signed_by_gateway = self.parts.extensions.get::<Signing>().is_some();
        self.parts.method == Method::GET || is_signed_by_gateway && self.job.scan_stage().is_none()
    }

    /// The request for the object, or for its head, with the caller's signature or with what signs it again.
    ///
    /// # Errors
    /// Those of [`OriginRequest::from_caller`].
    pub(super) fn to_origin(&self) -> Result<OriginRequest> {
        let request = OriginRequest::from_caller(&self.parts)?.with_member(self.job.member.clone());
        Ok(if self.needs_value() {
            request.into_get()
        } else {
            request
        })
    }
}

/// Refuses a request with a body, even an empty declared one. The gateway would have to read the body or close the
/// connection before it could parse the next request.
fn check_no_body(body: &impl http_body::Body) -> Result<()> {
    if body.is_end_stream() {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::InvalidRequest,
            "invalid request: expected no body with a pipeline, found one",
        ))
    }
}
