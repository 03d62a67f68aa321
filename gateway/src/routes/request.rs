//! A GET or HEAD with a pipeline: parsed, and checked as far as possible before anything is fetched.

use std::sync::Arc;

use http::{HeaderValue, Method, request::Parts};
use pushdown::wire::header;

use super::{Services, job::PipelineJob, stage::AnswerStage, stated_store};
use crate::{
    compute::{BodySize, Tenant},
    error::{Error, ErrorKind, Result},
    origin::{OriginRequest, StoreSignature},
    resign::ReadAdmission,
    s3::query::values,
};

/// Maximum length of a pipeline that is parsed on an I/O thread. Parsing SQL takes a microsecond per byte, and more for some texts.
const SHORT_PIPELINE_BYTES: usize = 256;

/// A request for the value of one object. Not `Debug`: signatures and session tokens are in its head.
pub(super) struct PipelineRequest {
    pub(super) parts: Parts,
    signature: StoreSignature,
    pub(super) job: Arc<PipelineJob>,
    /// What is known without the object; `None` if the split depends on it.
    pub(super) known: Option<AnswerStage>,
}

impl PipelineRequest {
    /// Takes the request apart. Waits if its pipeline may name a model that has not been inspected yet.
    ///
    /// # Errors
    /// For everything in the request that is wrong for any object.
    pub(super) async fn read<B: http_body::Body>(
        admission: ReadAdmission,
        body: B,
        services: &Services,
    ) -> Result<Self> {
        check_no_body(&body)?;
        let admission = stated_store::admit_read(admission, &services.origin)?;
        let models = &services.models;
        let mut parsed = ParsedRequest::parse(admission, services).await?;
        if parsed.job.is_err() && !models.is_ready() {
            models.wait_until_ready(services.limits.queue_wait).await?;
            parsed = ParsedRequest::parse(parsed.admission, services).await?;
        }
        let ParsedRequest { admission, job } = parsed;
        let (ReadAdmission { head, signature }, job) = (admission, Arc::new(job?));
        let known = AnswerStage::from_text(&head, &job)?;
        Ok(Self {
            parts: head,
            signature,
            job,
            known,
        })
    }

    /// Whether the value is computed, from a GET of the object. The signature of a HEAD authorizes no GET, unless the gateway signs
    /// for the store. The length of streamed rows is unknown before their end, so that nothing is gained from a scan for a HEAD.
    pub(super) fn needs_value(&self) -> bool {
        let can_get_for_head = match self.signature {
            StoreSignature::Unchanged | StoreSignature::Stated(_) => false,
            StoreSignature::Renewed(_) => true,
        };
        self.parts.method == Method::GET || can_get_for_head && self.job.scan_stage().is_none()
    }

    /// The request for the object, or for its head, with the caller's signature or with what signs it again.
    ///
    /// # Errors
    /// Those of [`OriginRequest::from_caller`].
    pub(super) fn to_origin(&self) -> Result<OriginRequest> {
        let request = OriginRequest::from_caller(&self.parts, self.signature.clone())?;
        let request = request.with_member(self.job.member.clone());
        Ok(if self.needs_value() {
            request.into_get()
        } else {
            request
        })
    }
}

/// A request, and what its pipeline was found to be.
struct ParsedRequest {
    admission: ReadAdmission,
    job: Result<PipelineJob>,
}

impl ParsedRequest {
    /// Parses the pipeline of a request, a long one on the CPU pool: that takes too long for the I/O threads.
    ///
    /// # Errors
    /// Those of the CPU pool. Those of the pipeline are in `job`.
    async fn parse(admission: ReadAdmission, services: &Services) -> Result<Self> {
        let models = services.models.clone();
        let is_short = pipeline_bytes(&admission.head) <= SHORT_PIPELINE_BYTES;
        let (tenant, tenant_by) = (verified_tenant(&admission.signature), services.tenant_by);
        let parse = move || Self {
            job: PipelineJob::for_request(&admission.head, &admission.signature, &models, tenant_by),
            admission,
        };
        Ok(if is_short {
            parse()
        } else {
            services.cpu.run(&tenant.position_now(), parse).await?
        })
    }
}

/// Length of the pipeline in headers and query.
fn pipeline_bytes(parts: &Parts) -> usize {
    let headers = parts.headers.get_all(header::PIPELINE).iter();
    let query = parts.uri.query().unwrap_or_default();
    let queries = values(query, header::PIPELINE).map(str::len);
    headers.map(HeaderValue::len).chain(queries).sum()
}

/// The account of the key that signed the request. Until the store has authorized it, all other requests share an account that
/// leaves CPU time to others.
fn verified_tenant(signature: &StoreSignature) -> Tenant {
    match signature {
        StoreSignature::Unchanged | StoreSignature::Stated(_) => Tenant::unverified(BodySize::Small),
        StoreSignature::Renewed(signing) => Tenant::from_access_key(Some(signing.allowed().key().tenant())),
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
