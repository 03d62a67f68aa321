//! POST of a batch of samples: runs one pipeline on each, and streams the rows as Arrow IPC when they are ready.

mod admission_order;
mod answer;
mod caller;
mod columns;
mod intake;
mod joined_entries;
mod part;
mod rows;
mod samples;
mod tenant_batches;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use pushdown::{
    Pipeline,
    wire::{self, BatchRequest, BatchWriter, OptionalColumns, ValueType},
};

use super::{
    Services,
    account::account_of_batch,
    batch_table::BatchTableRoute,
    http::{insert_cached_ratios, insert_engine, insert_warnings, respond},
    job::dependency_steps,
    stated_store,
};
use crate::{
    body::{Body, BoxError},
    compute::{CpuTimeReader, Tenant},
    config::TenantBy,
    engine,
    error::{Error, ErrorKind, Result},
    resign::{BatchAdmission, SampleSignatures},
    s3::sign::Signature,
};
use answer::BatchAnswer;
use intake::ReservedRequest;
use part::BatchPartRoute;
use rows::ready_rows;
use tenant_batches::{Concurrency, InFlightBatch, TenantBatches};
pub(super) use {
    admission_order::{AdmissionOrder, AdmissionTicket},
    part::max_part_bytes,
    samples::Batch,
};

/// Answers a batch request.
#[derive(Debug, Clone)]
pub(super) struct BatchRoute {
    services: Arc<Services>,
    tenant_batches: TenantBatches,
    cpu_time: CpuTimeReader,
    /// Answers if the batch is one table.
    table: BatchTableRoute,
    /// Answers if the batch is a part of a data set.
    part: BatchPartRoute,
}

impl BatchRoute {
    /// The route to many objects of a store, computed by `services`.
    pub(super) fn new(services: Services) -> Self {
        let services = Arc::new(services);
        Self {
            tenant_batches: TenantBatches::default(),
            cpu_time: CpuTimeReader::new(&services.cpu),
            table: BatchTableRoute::new(Arc::clone(&services)),
            part: BatchPartRoute::new(),
            services,
        }
    }

    /// Answers with a row per sample, or with one table of all samples.
    ///
    /// # Errors
    /// If the request as a whole fails. The failure of a sample is a row of the answer.
    pub(super) async fn answer<B>(&self, admission: BatchAdmission, body: B) -> Result<Response<Body>>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let BatchAdmission {
            head: parts,
            signatures,
        } = admission;
        let host = parts.headers.get(header::HOST).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidRequest,
                "the Host header is missing: the signatures of samples require it",
            )
        })?;
        let request = ReservedRequest::read(&self.services, &parts, &signatures, body).await?;
        if !request.deliver && !self.services.cache.is_on() {
            return Err(Error::new(
                ErrorKind::InvalidRequest,
                "cannot keep values that are not delivered: expected a result cache, found none; start the gateway with --cache-memory, \
                 or with --cache-dir and --cache-disk",
            ));
        }
        let store = stated_store::admit_batch(&request, &self.services.origin)?;
        let tenant = tenant(&request, &signatures, self.services.tenant_by)?;
        let batches = self.tenant_batches.clone();
        let services = Arc::clone(&self.services);
        let batch = Batch::new(services, batches, request, host, tenant, signatures);
        let batch = Arc::new(batch.at_store(store));
        if let Some(rule) = batch.request.table {
            return self.table.answer(&parts, batch, rule).await;
        }
        if let Some(spec) = batch.request.part_spec()? {
            return self.part.answer(&parts, batch, spec).await;
        }
        let position = batch.tenant.position_now();
        let pipeline = &batch.pipeline;
        let mut headers = HeaderMap::new();
        insert_warnings(&mut headers, pipeline);
        let stages = stages(&batch.request)?;
        let last_stage = stages.last().copied().unwrap_or_default();
        let form = batch.request.samples.iter().find_map(|sample| sample.form);
        let engine_steps = dependency_steps(pipeline, last_stage, form);
        let engine = engine::stated(&pipeline.steps()[..engine_steps]);
        let writer = BatchWriter::new(
            value_type(pipeline, &stages),
            batch.request.compression,
            &engine,
            &pipeline.digest(),
            OptionalColumns {
                // A reader does not know in its first batch that there is a cache, and counts what comes from it all the same.
                cache: batch.request.cache.is_some() || self.services.cache.is_on(),
                crops: form.is_some() && batch.request.deliver,
                stored: !batch.request.deliver,
                further: &batch.request.columns,
            },
        )?;
        let head = writer.start();
        let rows = ready_rows(
            Arc::clone(&batch),
            position.clone(),
            0..batch.request.samples.len(),
        );
        let guard = self.services.stall_guard(&parts);
        let answer = BatchAnswer::new(&batch, writer, rows, position, guard);
        let concurrency = self.tenant_batches.concurrency(&batch.tenant);
        let body = answer.into_body(head).await?;
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/vnd.apache.arrow.stream"),
        );
        headers.insert(
            header::CACHE_CONTROL,
            HeaderValue::from_static("private, no-store"),
        );
        insert_engine(&mut headers, &engine);
        headers.extend(self.planner_headers(concurrency));
        if batch.request.cache.is_some() && self.services.cache.is_on() {
            insert_cached_ratios(&mut headers, &batch.cached_ratios(&stages));
        }
        Ok(respond(StatusCode::OK, headers, body))
    }

    /// What the client's planner needs of the gateway: the tenant's part of the cores, its number of batches, the CPU
    /// time so far, and the ID of the CPUs.
    fn planner_headers(&self, concurrency: Concurrency) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        // Integer arithmetic in hundredths, written as a decimal number.
        let hundredths = self.services.cpu.threads().get() * 100 / concurrency.tenants;
        let cores = format!("{}.{:02}", hundredths / 100, hundredths % 100);
        let time = self.cpu_time.time();
        let headers = [
            (wire::header::CORES, Some(cores)),
            (wire::header::BATCHES, Some(concurrency.batches.to_string())),
            (wire::header::CPU, time.map(|time| time.to_string())),
            (wire::header::CPUS, self.services.cpu_set_id.clone()),
        ];
        headers.into_iter().filter_map(|(name, value)| {
            let value = HeaderValue::from_str(&value?).ok()?;
            Some((HeaderName::from_static(name), value))
        })
    }
}

/// The account of a batch: of the key that signed it, or else of the one that its presigned samples claim, each of which the store
/// or the gateway has yet to verify.
fn tenant(request: &BatchRequest, signatures: &SampleSignatures, tenant_by: TenantBy) -> Result<Tenant> {
    let claimed = || Signature::read(&HeaderMap::new(), request.presign.as_deref());
    let account = match signatures {
        SampleSignatures::ForStore => account_of_batch(tenant_by, &claimed()?, request)?,
        SampleSignatures::ForGateway(gate) => {
            let claimed = claimed()?;
            claimed
                .access_key()
                .and_then(|key| gate.resign().claimed_tenant(key))
        }
        SampleSignatures::OfBatch(_, signed) => Some(signed.tenant().to_owned()),
    };
    Ok(Tenant::from_access_key(account.as_deref()))
}

/// All stages that the samples' splits can resolve to, in ascending order.
fn stages(request: &BatchRequest) -> Result<Vec<usize>> {
    let pipeline = &request.pipeline;
    let mut stages = Vec::new();
    for sample in &request.samples {
        match request.split_of(sample) {
            wire::Split::Smallest => return Ok((0..=pipeline.len()).collect()),
            split => stages.push(pipeline.stage_of(split, &pushdown::BytesKind::default())?),
        }
        // A value that is too large is replaced by the object.
        stages.extend(sample.max_bytes.map(|_| 0));
    }
    stages.sort_unstable();
    stages.dedup();
    Ok(stages)
}

/// The type of the value column for values of these stages.
fn value_type(pipeline: &Pipeline, stages: &[usize]) -> ValueType {
    let kinds = pipeline.kinds();
    ValueType::for_kinds(stages.iter().map(|stage| &kinds[*stage]))
}
