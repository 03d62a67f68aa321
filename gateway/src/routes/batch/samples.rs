//! A batch request, and what its samples share.

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderValue, request::Parts, uri::PathAndQuery};
use pushdown::{
    Pipeline,
    shard::MemberRange,
    wire::{CachedRatios, ColumnMember},
};

use super::{
    InFlightBatch, ReservedRequest, TenantBatches,
    joined_entries::{EntryTickets, JoinedEntries},
};
use crate::{
    audit::AuditRecord,
    cache::{Hints, Prefixes},
    compute::{QueuePosition, Tenant},
    error::{Error, ErrorKind, Result},
    origin::{ObjectId, OriginRequest, ShardMember, Signing},
    resign::{Resign, SignedBatch},
    routes::{
        Services,
        job::PipelineJob,
        value::{SampleHints, cached_ratios},
    },
    s3::sign::Signature,
};

/// A batch request that is being answered.
#[derive(Debug)]
pub(in crate::routes) struct Batch {
    pub(in crate::routes) services: Services,
    pub(in crate::routes) request: ReservedRequest,
    pub(in crate::routes) pipeline: Arc<Pipeline>,
    prefixes: Prefixes,
    /// The tenant of the key that signed the request, or the one that the signatures of the samples claim.
    pub(in crate::routes) tenant: Tenant,
    host: HeaderValue,
    joined: JoinedEntries,
    tenant_batches: TenantBatches,
    /// In re-sign mode, of a signed batch.
    signed: Option<SignedBatch>,
    /// In re-sign mode.
    audit: Option<AuditRecord>,
    /// Set by the first sample that the store authorizes, with its index and its object: before that the tenant is only claimed.
    in_flight: OnceLock<(usize, ObjectId, InFlightBatch)>,
}

impl Batch {
    /// The batch of `request`, whose samples are signed for `host`.
    pub(super) fn new(
        services: Services,
        tenant_batches: TenantBatches,
        request: ReservedRequest,
        host: HeaderValue,
        tenant: Tenant,
    ) -> Self {
        let pipeline = Arc::new(request.pipeline.clone());
        Self {
            services,
            prefixes: Prefixes::new(Arc::clone(&pipeline)),
            pipeline,
            joined: JoinedEntries::find(&request.samples),
            request,
            tenant,
            host,
            tenant_batches,
            signed: None,
            audit: None,
            in_flight: OnceLock::new(),
        }
    }

    /// The same, with samples that are decided on by the signature of the request, unless they are presigned.
    pub(super) fn with_signature(self, signed: Option<SignedBatch>) -> Self {
        Self { signed, ..self }
    }

    /// The same, with decisions on samples recorded in `audit`.
    pub(super) fn with_audit(self, audit: Option<AuditRecord>) -> Self {
        Self { audit, ..self }
    }

    /// The job of a sample, at `position` in the queue of the tenant.
    pub(in crate::routes) fn job(&self, index: usize, position: QueuePosition) -> PipelineJob {
        PipelineJob::for_sample(&self.request, index, &self.pipeline, &self.prefixes, position)
    }

    /// The tickets of a sample's entries, if they are read together with others. To be called once per sample.
    pub(super) fn entry_tickets(&self, index: usize) -> EntryTickets {
        self.joined.tickets(index)
    }

    /// What the caller says about a sample.
    pub(in crate::routes) fn hints<'a>(&self, etag: Option<&'a HeaderValue>) -> SampleHints<'a> {
        SampleHints {
            etag,
            is_row: true,
            plans: self.request.cache.map(|plans| Hints {
                epochs: plans.epochs,
                samples: plans.samples,
            }),
        }
    }

    /// The ETag of a sample's object in the caller's listing.
    pub(in crate::routes) fn listed_etag(&self, index: usize) -> Option<HeaderValue> {
        let etag = self.request.samples[index].etag.as_deref()?;
        HeaderValue::from_str(etag).ok()
    }

    /// The member that a sample is; `None` for a whole object.
    fn member(&self, index: usize) -> Result<Option<ShardMember>> {
        let sample = &self.request.samples[index];
        let Some(name) = &sample.member else {
            return Ok(None);
        };
        self.member_at(index, name, sample.member_range()).map(Some)
    }

    /// The members that are the further columns of a sample. Empty if it has none of them.
    pub(super) fn column_members(&self, index: usize) -> Result<Vec<Option<ShardMember>>> {
        let member = |column: &ColumnMember| self.member_at(index, &column.member, column.range());
        let columns = self.request.samples[index].columns.iter();
        columns
            .map(|column| column.as_ref().map(member).transpose())
            .collect()
    }

    /// A member of the shard of a sample.
    fn member_at(&self, index: usize, name: &str, range: Option<MemberRange>) -> Result<ShardMember> {
        let format = self.request.samples[index].shard_format(self.request.store.as_ref());
        let Some((range, format)) = range.zip(format) else {
            let message = format!("invalid member `{name}`: expected its place in a shard");
            return Err(Error::new(ErrorKind::InvalidRequest, message));
        };
        Ok(ShardMember::new(name, range, format, self.listed_etag(index)))
    }

    /// The request for a sample's object, or for the member of it that the sample is. To be called once per sample: each call is a
    /// decision, and is recorded.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for an invalid path; in re-sign mode, if the sample's signature is refused, or if the key may
    /// not read the object.
    pub(in crate::routes) fn origin_request(&self, index: usize) -> Result<OriginRequest> {
        let sample = &self.request.samples[index];
        let member = self.member(index)?;
        let target = sample.target(self.request.presign.as_deref());
        let target: PathAndQuery = target.parse().map_err(|error| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("invalid path `{}`: {error}", sample.path),
            )
        })?;
        let Some(resign) = &self.services.resign else {
            self.check_account(&target)?;
            let request = OriginRequest::for_sample(self.host.clone(), target);
            return Ok(request.with_member(member));
        };
        let request = OriginRequest::for_sample(self.host.clone(), target);
        let signed = self.signed.as_ref().filter(|_| sample.signature.is_none());
        let admit = |parts: Parts| -> Result<Parts> {
            if let Some(signed) = signed {
                return resign.admit_sample(signed, parts, &self.pipeline);
            }
            let parts = resign.admit(parts, true)?;
            if let Some(signing) = parts.extensions.get::<Signing>() {
                Resign::check_models(signing, &self.pipeline)?;
            }
            Ok(parts)
        };
        let parts = match &self.audit {
            Some(audit) => audit.admit_sample(request.into_parts(), admit)?,
            None => admit(request.into_parts())?,
        };
        Ok(OriginRequest::from_caller(&parts)?.with_member(member))
    }

    /// In forward mode, checks that the store verifies the key whose account the batch claims: the address of a sample could have
    /// further parameters.
    fn check_account(&self, target: &PathAndQuery) -> Result<()> {
        let signature = Signature::read(&HeaderMap::new(), target.query())?;
        if signature.access_key() == self.tenant.access_key() {
            return Ok(());
        }
        let message = "invalid path of a sample: expected no signature, which `presign` and `signature` are";
        Err(Error::new(ErrorKind::InvalidRequest, message))
    }

    /// How much of the data set is cached, at each of `stages`: the set of the first sample that the store has authorized.
    pub(super) fn cached_ratios(&self, stages: &[usize]) -> CachedRatios {
        let ratios = || {
            let (index, object, _) = self.in_flight.get()?;
            let job = self.job(*index, self.tenant.position_now());
            Some(cached_ratios(
                &self.services,
                &job,
                *object,
                stages.iter().copied(),
            ))
        };
        ratios().unwrap_or_default()
    }

    /// Counts the batch as in flight until it is dropped, because the store has authorized `request`, that of the sample `index`.
    pub(in crate::routes) fn mark_authorized(&self, index: usize, request: &OriginRequest) {
        self.in_flight.get_or_init(|| {
            self.request.mark_authorized(&self.tenant);
            (
                index,
                request.object_id(),
                self.tenant_batches.enter(&self.tenant),
            )
        });
    }
}
