//! A batch request, and what its samples share.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Method, Request, header, request::Parts, uri::PathAndQuery};
use pushdown::{
    Pipeline,
    shard::MemberRange,
    wire::{BatchRequest, CachedRatios, ColumnMember, sample_id},
};

use super::{
    InFlightBatch, ReservedRequest, TenantBatches,
    joined_entries::{EntryTickets, JoinedEntries},
};
use crate::{
    cache::{Hints, Prefixes},
    compute::{QueuePosition, Tenant},
    error::{Error, ErrorKind, Result},
    origin::{ObjectId, OriginRequest, ShardMember, StatedStore},
    resign::SampleSignatures,
    routes::{Services, job::PipelineJob, value::SampleHints},
    s3::sign::Signature,
};

/// A batch request that is being answered.
#[derive(Debug)]
pub(in crate::routes) struct Batch {
    pub(in crate::routes) services: Arc<Services>,
    pub(in crate::routes) request: ReservedRequest,
    pub(in crate::routes) pipeline: Arc<Pipeline>,
    prefixes: Prefixes,
    /// The tenant of the key that signed the request, or the one that the signatures of the samples claim.
    pub(in crate::routes) tenant: Tenant,
    pub(super) host: HeaderValue,
    /// The store that the samples are signed for, if that is not the gateway's own.
    store: Option<StatedStore>,
    joined: JoinedEntries,
    tenant_batches: TenantBatches,
    pub(super) signatures: SampleSignatures,
    /// Set by the first sample that the store authorizes, with its index and its object: before that the tenant is only claimed.
    in_flight: OnceLock<(usize, ObjectId, InFlightBatch)>,
}

impl Batch {
    /// The batch of `request`, whose samples are signed for `host` or admitted by other `signatures`.
    pub(super) fn new(
        services: Arc<Services>,
        tenant_batches: TenantBatches,
        request: ReservedRequest,
        host: HeaderValue,
        tenant: Tenant,
        signatures: SampleSignatures,
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
            store: None,
            tenant_batches,
            signatures,
            in_flight: OnceLock::new(),
        }
    }

    /// The same, of samples that are signed for this store.
    pub(super) fn at_store(self, store: Option<StatedStore>) -> Self {
        Self { store, ..self }
    }

    /// The job of a sample, at `position` in the queue of the tenant.
    pub(in crate::routes) fn job(&self, index: usize, position: QueuePosition) -> Arc<PipelineJob> {
        let (pipeline, prefixes) = (&self.pipeline, &self.prefixes);
        Arc::new(PipelineJob::for_sample(
            &self.request,
            index,
            pipeline,
            prefixes,
            position,
        ))
    }

    /// The tickets of a sample's entries, if they are read together with others. To be called once per sample.
    pub(super) fn entry_tickets(&self, index: usize) -> EntryTickets {
        self.joined.tickets(index)
    }

    /// What the caller says about a sample. Who asks for values that are not delivered plans to read them.
    pub(in crate::routes) fn hints<'a>(&self, etag: Option<&'a HeaderValue>) -> SampleHints<'a> {
        let BatchRequest {
            cache, deliver, pin, ..
        } = &*self.request;
        let plans = cache.map(|plans| Hints {
            epochs: plans.epochs,
            samples: plans.samples,
        });
        let undelivered = Hints {
            epochs: plans.map_or(0, |plans| plans.epochs).max(2),
            samples: plans.map_or(0, |plans| plans.samples),
        };
        SampleHints {
            etag,
            plans: if *deliver { plans } else { Some(undelivered) },
            keep: pin.map(|pin| Duration::from_secs(pin.keep_seconds.into())),
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
        let host = self.host.clone();
        // A part is made of the versions that the caller has listed; a member has its own condition.
        let version = self
            .request
            .part
            .is_some()
            .then(|| self.listed_etag(index))
            .flatten();
        let admitted = match &self.signatures {
            SampleSignatures::ForStore => {
                self.check_account(&target)?;
                let request = match &self.store {
                    Some(store) => OriginRequest::for_stated_sample(store.clone(), target),
                    None => OriginRequest::for_sample(host, target),
                };
                return Ok(request.with_member(member).with_version(version));
            }
            SampleSignatures::OfBatch(gate, signed) if sample.signature.is_none() => {
                gate.admit(signed, sample_head(host, target), &self.pipeline)?
            }
            SampleSignatures::ForGateway(gate) | SampleSignatures::OfBatch(gate, _) => {
                gate.admit_presigned(sample_head(host, target), &self.pipeline)?
            }
        };
        let request = OriginRequest::from_caller(&admitted.head, admitted.signature)?;
        Ok(request.with_member(member).with_version(version))
    }

    /// The name of a sample in a part: its key without what the keys of all samples begin with, and behind it the name of a member.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for a key that does not begin so, or is not UTF-8.
    pub(super) fn part_name(&self, index: usize) -> Result<String> {
        let sample = &self.request.samples[index];
        let prefix = self.request.part.as_ref().map_or("", |part| &part.prefix);
        let key = String::from_utf8(sample_id(self.request.store.as_ref(), &sample.path, None)).ok();
        let name = key.as_deref().and_then(|key| key.strip_prefix(prefix));
        let name = name.map(|name| match &sample.member {
            Some(member) => format!("{name}/{member}"),
            None => name.to_owned(),
        });
        name.ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!(
                    "invalid path `{}`: expected a key in UTF-8 that begins with `{prefix}`",
                    sample.path
                ),
            )
        })
    }

    /// The head of a PUT. Its only header is the host.
    pub(super) fn put_head(&self, target: PathAndQuery) -> Parts {
        let mut head = sample_head(self.host.clone(), target);
        head.method = Method::PUT;
        head
    }

    /// In forward mode, checks that the store verifies the key whose account the batch claims: the address of a sample could have
    /// further parameters.
    fn check_account(&self, target: &PathAndQuery) -> Result<()> {
        let signed_by = |query| {
            Ok::<_, Error>(
                Signature::read(&HeaderMap::new(), query)?
                    .access_key()
                    .map(str::to_owned),
            )
        };
        if signed_by(target.query())? == signed_by(self.request.presign.as_deref())? {
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
            Some(job.cached_ratios(&self.services.cache, *object, stages.iter().copied()))
        };
        ratios().unwrap_or_default()
    }

    /// Counts the batch as in flight until it is dropped, because the store has authorized `request`, that of the sample `index`.
    pub(in crate::routes) fn mark_authorized(&self, index: usize, request: &OriginRequest) {
        self.in_flight.get_or_init(|| {
            self.request.mark_authorized(&self.tenant);
            if let Some(demand) = &self.request.demand {
                self.services.demand.set(&self.tenant, demand);
            }
            (
                index,
                request.object_id(),
                self.tenant_batches.enter(&self.tenant),
            )
        });
    }
}

/// The head of the GET of a sample. Its only header is the host.
fn sample_head(host: HeaderValue, target: PathAndQuery) -> Parts {
    let (mut head, ()) = Request::new(()).into_parts();
    head.uri = target.into();
    head.headers.insert(header::HOST, host);
    head
}
