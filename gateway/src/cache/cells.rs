//! Values of single cells of a table in the result cache: those that `each` computes.
//!
//! The rows of a query have no position in the object, so the key of a cell has a digest of its bytes. A scan reads these
//! bytes with the caller's authorization for the version of the object, whatever is cached.

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
    CacheSample, CacheUnit, Candidate, Hit, Prefixes, ResultCache, SourceHead, cell_flights::CellFlight,
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

/// One cell.
struct Cell {
    cells: Cells,
    pipeline: Arc<Pipeline>,
    sample: CacheSample,
    stage: usize,
}

/// The value of a cell that is being computed.
struct Computation {
    cell: Box<Cell>,
    /// Those that wait for the value. `None` if another scan computes it, too.
    flight: Option<CellFlight>,
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
        self.cells.cache.observe_request(&sample, self.stage, None);
        Box::new(Cell {
            cells: self.cells.clone(),
            pipeline: Arc::clone(&self.pipeline),
            sample,
            stage: self.stage,
        })
    }
}

impl Cell {
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
        match cache.wait_for_cell(&self.sample, etag, stage) {
            Some(value) => {
                let cache = cache.clone();
                self.cells.wait(async move {
                    let sample = value.await?;
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
        let (cache, head) = (&self.cells.cache, &self.cells.source.head);
        Box::new(Computation {
            flight: cache.begin_cell(&self.sample, &head.etag, self.stage),
            started: Instant::now(),
            cell: self,
        })
    }
}

impl CellComputation for Computation {
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
            flight.done(value);
        }
        cache.count_value("computed");
    }
}
