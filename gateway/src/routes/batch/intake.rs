//! Intake of a batch request: reads, inflates, parses and checks it within the memory budget.

use std::{io::Read as _, ops::Deref, sync::Arc};

use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;
use http::{HeaderValue, header, request::Parts};
use parking_lot::Mutex;
use pushdown::wire::{BatchRequest, BatchSample};

use super::{answer::MAX_GROUP_BYTES, caller, joined_entries::ENTRY_BYTES};
use crate::{
    access::ModelScope,
    body::BoxError,
    compute::{BodySize, Tenant},
    config::SMALL_BODY_BYTES,
    error::{Error, ErrorKind, Result},
    resign::SampleSignatures,
    routes::{
        Services,
        request_body::{BodyLimits, BodyPermits, read_body, too_large},
        scoped_models::ScopedModels,
    },
};

/// Bytes of a read of a sample in memory, apart from its address: headers, and what signs it.
const STORE_REQUEST_BYTES: usize = 1024;

/// A batch request with the memory reservation for its own bytes.
#[derive(Debug)]
pub(in crate::routes) struct ReservedRequest {
    request: BatchRequest,
    permits: Mutex<BodyPermits>,
}

impl Deref for ReservedRequest {
    type Target = BatchRequest;

    fn deref(&self) -> &BatchRequest {
        &self.request
    }
}

impl ReservedRequest {
    /// Reads and checks the request.
    pub(super) async fn read<B>(
        services: &Services,
        parts: &Parts,
        signatures: &SampleSignatures,
        body: B,
    ) -> Result<Self>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let limits = BodyLimits {
            max_bytes: services.limits.batch_body_bytes,
            idle_timeout: services.limits.batch_body_idle_timeout,
            total_timeout: services.limits.batch_body_timeout,
        };
        let gzip = match parts
            .headers
            .get(header::CONTENT_ENCODING)
            .map(HeaderValue::as_bytes)
        {
            None | Some(b"identity") => false,
            Some(b"gzip") => true,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return Err(invalid(format!(
                    "invalid Content-Encoding: expected gzip or none, found `{other}`"
                )));
            }
        };
        let tenant = tenant(signatures, gzip, body.size_hint().exact());
        let (bytes, mut permits) = read_body(&services.memory, tenant.clone(), body, limits).await?;
        services.metrics.bytes_from_clients.inc_by(bytes.len() as u64);
        if let Some(audit) = signatures.audit() {
            audit.add_bytes_in(bytes.len());
        }
        // The inflated bytes, and the parsed request. It is at most as large as its JSON.
        let inflated = if gzip { limits.max_bytes } else { 0 };
        let parsed = inflated.max(bytes.len() as u64);
        permits.acquire(&services.memory, inflated + parsed).await?;
        let (mut scope, mut request) =
            parse(services, parts, signatures, &tenant, bytes.clone(), gzip).await?;
        if let ModelScope::Key(key) = &scope {
            permits.mark_verified(Tenant::from_access_key(Some(key.tenant())));
        }
        if request.is_err() && !services.models.is_ready() {
            // The pipeline may name a model that has not been inspected yet.
            let models = &services.models;
            models.wait_until_ready(services.limits.queue_wait).await?;
            (scope, request) = parse(services, parts, signatures, &tenant, bytes, gzip).await?;
        }
        if let (Err(_), ModelScope::Key(key), Some(audit)) = (&request, &scope, signatures.audit()) {
            // A rejected request reads no sample, so the caller is recorded here.
            audit.set_caller(key);
        }
        let request = request?;
        // The values before the first random step are kept.
        for sample in request.samples.iter().filter(|_| request.deliver) {
            if let split @ (pushdown::wire::Split::Full | pushdown::wire::Split::At(_)) =
                sample.split.unwrap_or(request.split)
            {
                let stage = request
                    .pipeline
                    .stage_of(split, &pushdown::BytesKind::default())?;
                request
                    .pipeline
                    .check_randomness(stage, request.seed, request.epoch)?;
            }
        }
        let bytes = memory_bytes(&request) + column_bytes(&request, services.limits.batch_in_flight);
        permits.resize(&services.memory, bytes).await?;
        Ok(Self {
            request,
            permits: Mutex::new(permits),
        })
    }

    /// Moves the request to the tenant that it claims, because the store has authorized one of its samples.
    pub(super) fn mark_authorized(&self, tenant: &Tenant) {
        self.permits.lock().mark_verified(tenant.clone());
    }
}

/// The account of the key that signed the request. Presigned samples are not verified yet, so those of all bodies of a size share
/// an account that leaves memory and CPU time to others. `length` is that of the body, if it is declared.
fn tenant(signatures: &SampleSignatures, is_compressed: bool, length: Option<u64>) -> Tenant {
    let is_small = !is_compressed && length.is_some_and(|length| length <= SMALL_BODY_BYTES);
    match signatures.of_batch() {
        Some(signed) => Tenant::from_access_key(Some(signed.tenant())),
        None if is_small => Tenant::unverified(BodySize::Small),
        None => Tenant::unverified(BodySize::Large),
    }
}

/// Refuses samples without signatures, unless the request has one of its own.
fn check_signatures(request: BatchRequest, is_signed: bool) -> Result<BatchRequest> {
    if request.presign.is_none() && !is_signed {
        return Err(invalid(
            "the samples have no signatures: presign each of them, with `presign` in the request and `signature` in the sample; \
             only a gateway in re-sign mode accepts a signed batch",
        ));
    }
    Ok(request)
}

/// Parses on the CPU pool, because thousands of samples take milliseconds: too long for the I/O threads. Returns the models of the
/// caller, too.
///
/// # Errors
/// If the body cannot be inflated, or its caller is not verified. Those of the request itself are in the result.
async fn parse(
    services: &Services,
    parts: &Parts,
    signatures: &SampleSignatures,
    tenant: &Tenant,
    bytes: Bytes,
    gzip: bool,
) -> Result<(ModelScope, Result<BatchRequest>)> {
    let (limit, max_samples) = (services.limits.batch_body_bytes, services.limits.batch_samples);
    let models = services.models.clone();
    let (host, signatures) = (parts.headers.get(header::HOST).cloned(), signatures.clone());
    let parse = move || {
        let signed = signatures.of_batch();
        if let Some(signed) = signed {
            signed.check_body(&bytes)?;
        }
        let json = if gzip { inflate(bytes, limit)? } else { bytes };
        let scope = match &signatures {
            SampleSignatures::ForStore => ModelScope::All,
            SampleSignatures::ForGateway(gate) => {
                ModelScope::Key(caller::verify(gate.resign(), host.as_ref(), &json)?)
            }
            SampleSignatures::OfBatch(_, signed) => ModelScope::Key(Arc::clone(signed.key())),
        };
        let request = ScopedModels::parse(&models, &scope, |models| {
            BatchRequest::parse(&json, max_samples, models)
        });
        let request = request.and_then(|request| check_signatures(request, signed.is_some()));
        Ok((scope, request))
    };
    services.cpu.run(&tenant.position_now(), parse).await?
}

/// The memory of a parsed request, in bytes. A table keeps the reads of all samples, too.
fn memory_bytes(request: &BatchRequest) -> u64 {
    let presign = request.presign.as_ref().map_or(0, String::len);
    let texts = request.samples.iter().map(|sample| {
        let BatchSample {
            path,
            signature,
            member,
            version,
            etag,
            columns,
            split: _,
            max_bytes: _,
            offset: _,
            size: _,
            form: _,
            header_size: _,
        } = sample;
        let optional = [signature, member, version, etag];
        let optional = optional.into_iter().flatten().map(String::len);
        let column_names = columns.iter().flatten().map(|column| column.member.len());
        let entries = member.as_ref().map_or(0, |_| 1 + columns.len());
        let columns = size_of_val(&columns[..]) + column_names.sum::<usize>() + entries * ENTRY_BYTES;
        let read = match request.table {
            Some(_) => STORE_REQUEST_BYTES + 2 * path.len() + presign,
            None => 0,
        };
        size_of::<BatchSample>() + path.len() + optional.sum::<usize>() + columns + read
    });
    (texts.sum::<usize>() + presign) as u64
}

/// The memory of the further columns of all rows that are in memory at a time, in bytes: of those in flight, of those that wait to be
/// sent together, and of those that were sent last.
fn column_bytes(request: &BatchRequest, rows_in_flight: usize) -> u64 {
    let (mut all, mut largest) = (0, 0_u64);
    for sample in &request.samples {
        let row: u64 = sample.columns.iter().flatten().map(|column| column.size).sum();
        largest = largest.max(row);
        all += row;
    }
    all.min(largest * (rows_in_flight as u64 + 2) + 2 * MAX_GROUP_BYTES)
}

fn inflate(bytes: Bytes, limit: u64) -> Result<Bytes> {
    let mut inflated = Vec::new();
    GzDecoder::new(bytes.reader())
        .take(limit + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| invalid(format!("invalid body: expected gzip, found {error}")))?;
    if inflated.len() as u64 > limit {
        Err(too_large(limit))
    } else {
        Ok(inflated.into())
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
