//! What a scan offers to `each`: cached values, memory for values that are being computed, and layers of models in micro-batches.

use std::{
    any::Any,
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, ready},
};
use pushdown::{
    Error, Kind, Limits, Pipeline, Result, Sample,
    step::{CellHost, CellMemory, CellValues, InnerPipeline},
};

use crate::{
    cache::Cells,
    compute::{BatchMembers, MicroBatcher, QueuePosition, ScanIo, SharedMemory},
    telemetry::Metrics,
};

/// What computes values from the cells of an object, for one scan.
#[derive(Debug)]
pub(super) struct ScanCells {
    pub(super) cached: Option<Cells>,
    pub(super) memory: ScanCellMemory,
    pub(super) batcher: MicroBatcher,
    pub(super) position: QueuePosition,
    pub(super) limits: Limits,
    pub(super) io: ScanIo,
    pub(super) layer_time: LayerTime,
    pub(super) metrics: Metrics,
}

/// The memory for the values of a scan, once the scan is admitted. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct ScanCellMemory(Arc<OnceLock<Arc<SharedMemory>>>);

/// Time that layers of models took for the values of a scan. Clones share it.
#[derive(Debug, Clone, Default)]
pub(in crate::routes) struct LayerTime(Arc<AtomicU64>);

impl ScanCellMemory {
    /// To be called once, at the admission of the scan.
    pub(super) fn set(&self, memory: Arc<SharedMemory>) {
        self.0.get_or_init(|| memory);
    }
}

impl LayerTime {
    /// The time so far.
    pub(in crate::routes) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }

    fn add(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Relaxed);
    }
}

impl CellHost for ScanCells {
    fn values_of(&self, pipeline: &dyn InnerPipeline, until: usize) -> Option<Box<dyn CellValues>> {
        self.cached.as_ref()?.values_of(whole(pipeline)?, until)
    }

    fn reserve(&self, bytes: u64) -> BoxFuture<'static, Result<CellMemory>> {
        match self.memory.0.get() {
            Some(memory) => Arc::clone(memory).reserve(bytes, self.io.clone()).boxed(),
            None => ready(Err(Error::internal("the scan has no memory yet"))).boxed(),
        }
    }

    fn batched_steps(&self, pipeline: &dyn InnerPipeline, stretch: Range<usize>) -> Option<Range<usize>> {
        let layers = MicroBatcher::first_layers(whole(pipeline)?, &stretch);
        layers.map(|(steps, _)| steps)
    }

    fn run_batched(
        &self,
        pipeline: &dyn InnerPipeline,
        steps: Range<usize>,
        value: Sample,
    ) -> BoxFuture<'static, Result<Sample>> {
        let layers = whole(pipeline).and_then(|pipeline| {
            let checked = pipeline.check(steps.clone(), &Kind::from(&value), &self.limits);
            Some((MicroBatcher::first_layers(pipeline, &steps)?, checked))
        });
        let (batcher, position) = (self.batcher.clone(), self.position.clone());
        let (layer_time, metrics) = (self.layer_time.clone(), self.metrics.clone());
        let running = async move {
            if let (Some(((_, layers), checked)), Sample::Tensor(tensor)) = (layers, value) {
                checked?;
                let output = batcher.run(&position, &layers, tensor, BatchMembers::Any).await?;
                layer_time.add(output.time);
                metrics.add_step_time("model", output.time);
                Ok::<_, Error>(Sample::Tensor(output.value))
            } else {
                Err(Error::internal("a model requires a tensor"))
            }
        };
        let panicked = || Err(Error::internal("a model panicked"));
        let running = self.io.run(running);
        running.map(move |ran| ran.unwrap_or_else(panicked)).boxed()
    }
}

/// The pipeline inside of a step.
fn whole(pipeline: &dyn InnerPipeline) -> Option<&Pipeline> {
    let pipeline: &dyn Any = pipeline;
    pipeline.downcast_ref()
}
