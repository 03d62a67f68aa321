//! Values of single cells of a table in the result cache: those that `each` computes.
//!
//! The rows of a query have no position in the object, so the key of a cell has a digest of its bytes. A scan reads these
//! bytes with the caller's authorization for the version of the object, whatever is cached.
//!
//! The flight of a cell begins after its value has memory. From then on it waits only for micro-batches, which do not depend on other
//! flights. So waiting for a flight cannot end in a deadlock.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use pushdown::{
    Limits, Pipeline, Sample,
    pipeline::Digest,
    step::{CachedCell, CellComputation, CellValue, CellValues},
};
use tokio::time::Instant;

use super::{
    CacheSample, CacheUnit, Candidate, Hit, Prefixes, ResultCache, SourceHead, ValueKey,
    flight::{Computation, Flights},
};
use crate::{
    compute::{ScanIo, Tenant},
    origin::{Authorization, ObjectId},
};

/// The version of an object whose cells are read, and the store's authorization to read it.
#[derive(Debug, Clone)]
pub struct CellSource {
    object: ObjectId,
    head: Arc<SourceHead>,
    authorization: Authorization,
}

/// The cells of an object, for one scan.
#[derive(Debug, Clone)]
pub struct Cells {
    cache: ResultCache,
    source: CellSource,
    tenant: Tenant,
    limits: Limits,
    io: ScanIo,
}

/// The values that one pipeline computes from the cells.
struct PipelineCells {
    cells: Cells,
    pipeline: Arc<Pipeline>,
    prefixes: Prefixes,
    stage: usize,
}

/// The values of cells that are being computed.
pub(super) type CellFlights = Flights<(), Sample>;

/// One cell.
struct Cell {
    cells: Cells,
    pipeline: Arc<Pipeline>,
    sample: CacheSample,
    stage: usize,
}

/// The value of a cell that is being computed.
struct ComputedCell {
    cell: Box<Cell>,
    /// Those that wait for the value. `None` if another scan computes it, too.
    flight: Option<Computation<(), Sample>>,
    started: Instant,
}

impl CellSource {
    /// `None` if the authorization is for another version.
    pub fn new(object: ObjectId, head: SourceHead, authorization: Authorization) -> Option<Self> {
        authorization.covers(&object, &head.etag).then(|| Self {
            object,
            head: Arc::new(head),
            authorization,
        })
    }
}

impl Cells {
    /// The cells of an object for a scan of `tenant`, which waits for values on `io`. `None` without a cache.
    pub fn new(
        cache: &ResultCache,
        source: CellSource,
        tenant: Tenant,
        limits: Limits,
        io: ScanIo,
    ) -> Option<Self> {
        cache.is_on().then(|| Self {
            cache: cache.clone(),
            source,
            tenant,
            limits,
            io,
        })
    }

    /// Waits on an I/O thread, and wakes the scan after that.
    fn wait<T: Send + 'static>(
        &self,
        future: impl Future<Output = Option<T>> + Send + 'static,
    ) -> BoxFuture<'static, Option<T>> {
        self.io.run(future).map(Option::flatten).boxed()
    }

    /// The values that the first `until` steps of a pipeline compute. `None` if none of them is the same in every epoch.
    pub fn values_of(&self, pipeline: &Pipeline, until: usize) -> Option<Box<dyn CellValues>> {
        let pipeline = Arc::new(pipeline.clone());
        let prefixes = Prefixes::new(Arc::clone(&pipeline));
        let stage = prefixes.last_deterministic(until);
        (stage > 0).then(|| {
            Box::new(PipelineCells {
                cells: self.clone(),
                pipeline,
                prefixes,
                stage,
            }) as Box<dyn CellValues>
        })
    }
}

impl CellValues for PipelineCells {
    fn stage(&self) -> usize {
        self.stage
    }

    fn cell(&self, bytes: &Bytes) -> Box<dyn CachedCell> {
        let sample = CacheSample {
            object: self.cells.source.object.cell(&Digest::new(bytes)),
            prefixes: self.prefixes.clone(),
            tenant: self.cells.tenant.clone(),
            unit: CacheUnit::Cell,
        };
        self.cells.cache.observe_request(&sample, self.stage, None, None);
        Box::new(Cell {
            cells: self.cells.clone(),
            pipeline: Arc::clone(&self.pipeline),
            sample,
            stage: self.stage,
        })
    }
}

impl Cell {
    /// The key of its value.
    fn key(&self) -> Option<ValueKey> {
        let inner = self.cells.cache.inner.as_ref()?;
        let prefix = self.sample.prefixes.digest(self.stage)?;
        Some(inner.key(&self.sample, &self.cells.source.head.etag, &prefix))
    }

    /// The flights of all cells.
    fn flights(&self) -> Option<&CellFlights> {
        Some(&self.cells.cache.inner.as_ref()?.cell_flights)
    }

    /// The value, if another scan computes it. The future returns `None` after an error.
    fn wait_for_flight(&self) -> Option<impl Future<Output = Option<Arc<Sample>>> + use<>> {
        let CellSource {
            object,
            authorization,
            ..
        } = &self.cells.source;
        let follower = self.flights()?.find(&self.key()?)?;
        let waiter = follower.join(object, authorization, &self.cells.tenant)?;
        let pending = waiter.pending_result()?;
        Some(async move {
            let value = pending.result().await;
            drop(waiter);
            value
        })
    }

    /// Begins to compute the value. `None` if another scan does.
    fn lead_flight(&self) -> Option<Computation<(), Sample>> {
        let CellSource { object, head, .. } = &self.cells.source;
        let leader = self.flights()?.lead(self.key()?, *object)?;
        Some(leader.begin(Arc::clone(head)))
    }

    /// Takes a value out of the cache.
    fn release(&self, candidate: Candidate) -> impl Future<Output = Option<CellValue>> + use<> {
        let (cells, sample) = (self.cells.clone(), self.sample.clone());
        let pipeline = Arc::clone(&self.pipeline);
        async move {
            let CellSource {
                object,
                authorization,
                ..
            } = &cells.source;
            let kind = &pipeline.kinds()[candidate.stage];
            let released =
                cells
                    .cache
                    .release(&candidate, object, authorization, &pipeline, kind, &cells.limits);
            let cached = released.await?;
            let hit = Hit {
                stage: cached.stage,
                bytes: cached.sample.bytes(),
                cost: cached.cost,
                time: cached.time,
            };
            cells.cache.observe_hit(&sample, hit);
            cells.cache.count_value(cached.level.name());
            Some(CellValue {
                stage: cached.stage,
                sample: cached.sample,
            })
        }
    }
}

impl CachedCell for Cell {
    fn get(&self) -> BoxFuture<'static, Option<CellValue>> {
        let (cache, stage) = (&self.cells.cache, self.stage);
        let etag = &self.cells.source.head.etag;
        if let Some(candidate) = cache.find(&self.sample, etag, 1..=stage) {
            let is_in_memory = candidate.bytes.is_some();
            let value = self.release(candidate);
            return if is_in_memory {
                // A value that has just been evicted is a miss: only a wait on an I/O thread wakes the scan.
                futures::future::ready(value.now_or_never().flatten()).boxed()
            } else {
                self.cells.wait(value)
            };
        }
        match self.wait_for_flight() {
            Some(value) => {
                let cache = cache.clone();
                self.cells.wait(async move {
                    let sample = Arc::unwrap_or_clone(value.await?);
                    cache.count_value("shared");
                    Some(CellValue { stage, sample })
                })
            }
            None => futures::future::ready(None).boxed(),
        }
    }

    fn is_wanted(&self) -> bool {
        self.cells.cache.is_wanted(&self.sample, self.stage)
    }

    fn begin(self: Box<Self>) -> Box<dyn CellComputation> {
        Box::new(ComputedCell {
            flight: self.lead_flight(),
            started: Instant::now(),
            cell: self,
        })
    }
}

impl CellComputation for ComputedCell {
    fn finish(self: Box<Self>, value: &Sample) {
        let Self {
            cell,
            flight,
            started,
        } = *self;
        let (cache, head) = (&cell.cells.cache, &cell.cells.source.head);
        // The bytes of the cell are read in any case: a hit saves only the steps.
        let admission = cache.admit(&cell.sample, cell.stage, value.bytes(), started.elapsed());
        if let Some(admission) = admission {
            cache.insert(&cell.sample, cell.stage, head, value, admission);
        }
        if let Some(flight) = flight {
            flight.finish(value.clone());
        }
        cache.count_value("computed");
    }
}
