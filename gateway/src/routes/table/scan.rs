//! The scan of one object: open, plan, and admit.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use http::HeaderMap;
use pushdown::{BytesKind, Context, Estimate, Scan, Source, step::CellHost};
use tokio::time::Instant;

use super::{
    cells::{LayerTime, ScanCellMemory, ScanCells},
    source::{FooterMemory, RangedSource},
    working_memory::working_bytes,
};
use crate::{
    cache::{CellSource, Cells, SourceHead},
    compute::{CooperativeTask, Permit, ScanIo},
    error::Result,
    origin::{
        self, Authorization, EntryTicket, FetchedTail, ObjectId, ObjectTail, OriginObject, OriginRequest,
    },
    routes::{http::Timing, stage::StagedJob},
};

/// Bytes at the end of an object that are read first: most footers fit, and small objects are read as a whole.
const TAIL_BYTES: u64 = 64 * 1024;
/// Memory of a scan before it is planned: the object's end, and the parsed footer.
const OPENING_BYTES: u64 = 256 * 1024;

/// The store's answer to the request for a table.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one per table, moved once")]
pub(in crate::routes) enum FetchedTable {
    Table(OpenedTable),
    /// Any status except 200 and 206: the store's answer to the caller.
    Refused(OriginObject),
}

/// An object whose end has been read. Nothing is computed yet.
#[derive(Debug)]
pub(in crate::routes) struct OpenedTable {
    staged: StagedJob,
    /// The store's headers.
    pub(super) headers: HeaderMap,
    pub(super) timing: Timing,
    tail: ObjectTail,
    /// `None` if its values must not be shared.
    cells: Option<Box<CellSource>>,
}

/// The memory for the parts of the source that are read before the scan is planned.
enum SourceMemory {
    Footer(FooterMemory),
    Whole(Permit),
}

/// A planned scan.
#[derive(Debug)]
pub(in crate::routes) struct PlannedScan {
    pub(super) staged: StagedJob,
    scan: Scan,
    task: CooperativeTask,
    layer_time: LayerTime,
    /// For the values that `each` computes.
    cell_memory: Option<ScanCellMemory>,
    /// Memory of the object's footer, or of the whole object.
    source_permit: Permit,
    /// Bytes that were requested from the store so far.
    requested_bytes: u64,
    pub(super) timing: Timing,
}

/// A scan with a memory reservation.
#[derive(Debug)]
pub(in crate::routes) struct AdmittedScan {
    pub(in crate::routes) staged: StagedJob,
    pub(in crate::routes) scan: Scan,
    pub(in crate::routes) task: CooperativeTask,
    /// Time of layers of models, which do not run in the task.
    pub(in crate::routes) layer_time: LayerTime,
    /// Memory of the object's footer, or of the whole object.
    pub(in crate::routes) source_permit: Permit,
    /// Memory of the scan.
    pub(in crate::routes) permit: Permit,
    pub(in crate::routes) timing: Timing,
}

impl FetchedTable {
    /// Reads the end of an object on the caller's behalf, for a job that is a scan. `ticket` is that of a row of joined reads.
    pub(in crate::routes) async fn fetch(
        staged: StagedJob,
        request: OriginRequest,
        ticket: Option<EntryTicket>,
    ) -> Result<Self> {
        let (started, services) = (Instant::now(), &staged.services);
        let is_cacheable = services.cache.is_on() && staged.job.has_cells() && request.is_shareable();
        let object = is_cacheable.then(|| request.object_id());
        let tail = services.origin.read_tail(request, ticket, object, TAIL_BYTES);
        let tail = match tail.await? {
            FetchedTail::Tail(tail) => tail,
            FetchedTail::Refused(answer) => return Ok(Self::Refused(answer)),
        };
        let headers = match &tail {
            ObjectTail::Part(part) => part.headers.clone(),
            ObjectTail::Whole(object) => object.headers.clone(),
        };
        let mut timing = Timing::default();
        timing.add("origin", started.elapsed());
        Ok(Self::Table(OpenedTable {
            staged,
            headers,
            timing,
            cells: object.and_then(|object| cell_source(object, &tail)).map(Box::new),
            tail,
        }))
    }
}

impl OpenedTable {
    /// Reads the object's schema, and plans the scan.
    pub(in crate::routes) async fn plan(self) -> Result<PlannedScan> {
        let Self {
            staged,
            tail,
            mut timing,
            cells,
            ..
        } = self;
        let started = Instant::now();
        let StagedJob {
            services, job, stage, ..
        } = &staged;
        let (stage, tenant) = (*stage, job.position.tenant());
        let mut task = CooperativeTask::new(services.cpu.clone(), tenant.clone())?;
        let (source, memory): (Arc<dyn Source>, SourceMemory) = match tail {
            ObjectTail::Part(part) => {
                let permit = services.memory.acquire(tenant, OPENING_BYTES).await?;
                let footer = FooterMemory::new(services.memory.clone(), permit);
                let ranged = RangedSource::new(*part, footer.clone(), task.waker());
                (Arc::new(ranged), SourceMemory::Footer(footer))
            }
            ObjectTail::Whole(object) => {
                let (bytes, permit) = read_whole(&staged, object).await?;
                (Arc::new(bytes), SourceMemory::Whole(permit))
            }
        };
        let (io, layer_time) = (ScanIo::new(task.waker()), LayerTime::default());
        let steps = &job.pipeline.steps()[..stage];
        let has_values = steps.iter().any(|step| step.inner_steps().is_some());
        let cell_memory = has_values.then(ScanCellMemory::default);
        let cells = cell_memory.clone().map(|memory| {
            services.models.mark_used(steps);
            let (tenant, limits) = (tenant.clone(), services.sample_limits());
            let cached =
                cells.and_then(|source| Cells::new(&services.cache, *source, tenant, limits, io.clone()));
            let cells: Arc<dyn CellHost> = Arc::new(ScanCells {
                cached,
                memory,
                batcher: services.micro_batcher.clone(),
                position: job.position.clone(),
                limits,
                io,
                layer_time: layer_time.clone(),
                metrics: services.metrics.clone(),
            });
            cells
        });
        let (job, limits) = (Arc::clone(job), services.sample_limits());
        let planning = async move {
            let context = Context {
                seed: job.seed,
                epoch: job.epoch,
                limits,
                cells,
                ..Context::new(&job.sample_id)
            };
            job.pipeline.scan(0..stage, source, &context).await
        };
        let scan = task.run(planning).await??;
        let (requested_bytes, source_permit) = match memory {
            SourceMemory::Footer(footer) => footer.finish()?,
            SourceMemory::Whole(permit) => (scan.estimate().object_bytes, permit),
        };
        timing.add("plan", started.elapsed());
        Ok(PlannedScan {
            staged,
            scan,
            task,
            layer_time,
            cell_memory,
            source_permit,
            requested_bytes,
            timing,
        })
    }
}

impl PlannedScan {
    /// Waits for the memory of the scan, of values that `each` computes, and `additional_bytes`, all at once.
    pub(in crate::routes) async fn admit(self, additional_bytes: u64) -> Result<AdmittedScan> {
        let Self {
            staged,
            scan,
            task,
            layer_time,
            cell_memory,
            source_permit,
            mut timing,
            ..
        } = self;
        let queued = Instant::now();
        let StagedJob { services, job, .. } = &staged;
        let max_query_bytes = services.sample_limits().tables.max_query_bytes;
        let steps = &job.pipeline.steps()[..staged.stage];
        let bytes = working_bytes(scan.estimate(), steps, max_query_bytes).saturating_add(additional_bytes);
        let tenant = job.position.tenant();
        let permit = match cell_memory {
            Some(cell_memory) => {
                let (permit, shared) = services.cell_budget.acquire(tenant, bytes).await?;
                cell_memory.set(shared);
                permit
            }
            None => services.memory.acquire(tenant, bytes).await?,
        };
        timing.add("queue", queued.elapsed());
        Ok(AdmittedScan {
            staged,
            scan,
            task,
            layer_time,
            source_permit,
            permit,
            timing,
        })
    }

    /// The columns.
    pub(in crate::routes) const fn schema(&self) -> &SchemaRef {
        self.scan.schema()
    }

    /// The estimate of what the scan reads and returns.
    pub(in crate::routes) const fn estimate(&self) -> &Estimate {
        self.scan.estimate()
    }

    /// Bytes of the object that are read, including those read for the plan.
    pub(in crate::routes) fn source_bytes(&self) -> u64 {
        let Estimate {
            object_bytes,
            scan_bytes,
            ..
        } = *self.estimate();
        self.requested_bytes
            .saturating_add(scan_bytes.unwrap_or(object_bytes))
            .min(object_bytes)
    }
}

/// The version of the object whose end was read; `None` if its values must not be cached.
fn cell_source(object: ObjectId, tail: &ObjectTail) -> Option<CellSource> {
    let (authorization, length, headers) = match tail {
        ObjectTail::Part(part) => (
            part.authorization.clone()?,
            part.object.total_bytes(),
            &part.headers,
        ),
        ObjectTail::Whole(whole) => (
            Authorization::from_answer(object, whole)?,
            whole.content_length?,
            &whole.headers,
        ),
    };
    let head = SourceHead::new(length, BytesKind::default(), headers)?;
    CellSource::new(object, head, authorization)
}

/// Reads a whole object, of a store that does not support ranges.
async fn read_whole(staged: &StagedJob, mut object: OriginObject) -> Result<(Bytes, Permit)> {
    let StagedJob { services, job, .. } = staged;
    let length = services.check_length(&object)?;
    let permit = services.memory.acquire(job.position.tenant(), length).await?;
    let bytes = origin::read_to_end(&[], &mut object.body, length).await?;
    Ok((bytes, permit))
}
