//! A model in memory: ranges of its layers, each loaded on its first run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use super::{
    Boundary, LayerRange, ModelFiles, Runtime, TensorSpec,
    outline::Outline,
    session::{Session, TensorView},
    trim::trim_heap,
    weight_source::lock_loading,
};
use pushdown_core::{DType, Error, Layout, Result, Tensor};

/// Maximum number of loaded ranges. Each has its own copy of its weights; the least recently used one is dropped.
const MAX_LOADED_RANGES: usize = 4;

/// A model whose layers can run. Its files are in memory only while a range is loaded.
#[derive(Debug)]
pub(super) struct LoadedModel {
    outline: Arc<Outline>,
    runtime: Runtime,
    /// Sorted by last use, the most recent last.
    ranges: Mutex<Vec<LoadedRange>>,
    /// Total bytes of the ranges. An atomic, so that reading it never waits for a range that is being loaded.
    memory_bytes: AtomicUsize,
    /// Cost of the last load in this process.
    last_load: Mutex<Option<LoadCost>>,
}

/// What loading a range cost.
#[derive(Debug, Clone, Copy)]
struct LoadCost {
    /// CPU time to read the files and to check their digests. It does not depend on the range.
    files: Duration,
    /// CPU time to create the sessions.
    session: Duration,
    /// Bytes of weights in all copies.
    bytes: usize,
}

/// Layers that are ready to run.
#[derive(Debug)]
struct LoadedRange {
    range: LayerRange,
    session: Arc<Session>,
    /// Bytes of weights in all copies.
    bytes: usize,
}

impl LoadedModel {
    /// A model without loaded layers.
    pub(super) fn new(outline: Arc<Outline>, runtime: Runtime) -> Self {
        Self {
            outline,
            runtime,
            ranges: Mutex::new(Vec::new()),
            memory_bytes: AtomicUsize::new(0),
            last_load: Mutex::new(None),
        }
    }

    /// Approximate bytes of the weights in all copies of all loaded ranges.
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes.load(Relaxed)
    }

    /// Expected CPU time to load `range`, extrapolated from the last load; `None` before the first one.
    pub(super) fn expected_load_time(&self, range: LayerRange) -> Option<Duration> {
        let LoadCost {
            files,
            session,
            bytes,
        } = (*self.last_load.lock())?;
        let weights = self.outline.weight_bytes(range);
        let copies = self.runtime.concurrency(weights).runs;
        let nanoseconds = session.as_nanos() * u128::from(weights) * copies as u128 / bytes.max(1) as u128;
        Some(files + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }

    /// Loads `range`, unless it is empty.
    pub(super) fn load(&self, range: LayerRange, files: impl FnOnce() -> Result<ModelFiles>) -> Result<()> {
        if !range.is_empty() {
            self.session(range, files)?;
        }
        Ok(())
    }

    /// Runs `range` on values of its first tensor. Layers that are not loaded are read from `files`. These have to be the files
    /// that were inspected.
    pub(super) fn run(
        &self,
        range: LayerRange,
        values: &[Tensor],
        files: impl FnOnce() -> Result<ModelFiles>,
    ) -> Result<Vec<Tensor>> {
        let input = self.outline.tensor(range.from)?;
        let output = self.outline.tensor(Boundary::Cut(range.to))?;
        for value in values {
            check_value(value, input)?;
        }
        if range.is_empty() {
            return Ok(values.to_vec());
        }
        let session = self.session(range, files)?;
        let mut outputs = Vec::with_capacity(values.len());
        for batch in values.chunks(self.outline.batch_size(values.len())) {
            outputs.extend(run_batch(&session, batch, input, output)?);
        }
        Ok(outputs)
    }

    /// The session of a range, loaded if necessary. Concurrent callers wait for a load.
    fn session(&self, range: LayerRange, files: impl FnOnce() -> Result<ModelFiles>) -> Result<Arc<Session>> {
        let mut ranges = self.ranges.lock();
        let loaded = if let Some(index) = ranges.iter().position(|loaded| loaded.range == range) {
            ranges.remove(index)
        } else {
            self.load_range(range, &mut ranges, files)?
        };
        let session = Arc::clone(&loaded.session);
        ranges.push(loaded);
        self.update_memory_bytes(&ranges);
        Ok(session)
    }

    fn load_range(
        &self,
        range: LayerRange,
        ranges: &mut Vec<LoadedRange>,
        files: impl FnOnce() -> Result<ModelFiles>,
    ) -> Result<LoadedRange> {
        let submodel = self.outline.submodel(range)?;
        let _lock = lock_loading();
        let began = thread_cpu_time();
        let files = files()?;
        let fetched = thread_cpu_time();
        if ranges.len() == MAX_LOADED_RANGES {
            ranges.remove(0);
            self.update_memory_bytes(ranges);
        }
        let weights = self.outline.weight_bytes(range);
        let session = Session::new(&self.runtime, &submodel.model, &files, Some(weights));
        // Freed before anything else: the files are as large as all weights.
        drop(files);
        trim_heap();
        let session = Arc::new(session?);
        let bytes = submodel.bytes * session.copies();
        *self.last_load.lock() = Some(LoadCost {
            files: fetched.saturating_sub(began),
            session: thread_cpu_time().saturating_sub(fetched),
            bytes,
        });
        Ok(LoadedRange {
            range,
            session,
            bytes,
        })
    }

    fn update_memory_bytes(&self, ranges: &[LoadedRange]) {
        let bytes = ranges.iter().map(|loaded| loaded.bytes);
        self.memory_bytes.store(bytes.sum(), Relaxed);
    }
}

/// Runs a batch at once, and splits the output by sample.
fn run_batch(
    session: &Session,
    batch: &[Tensor],
    input: &TensorSpec,
    output: &TensorSpec,
) -> Result<Vec<Tensor>> {
    let with_batch_axis = |shape: &[usize]| -> Vec<usize> {
        std::iter::once(batch.len())
            .chain(shape.iter().copied())
            .collect()
    };
    let mut elements = Vec::new();
    for value in batch {
        elements.extend_from_slice(&value.values::<f32>());
    }
    let expected = with_batch_axis(&output.shape);
    let read = |_: &str, value: &TensorView<'_>| match value {
        TensorView::Floats(found, floats) if *found == expected => {
            let rows = floats.chunks_exact((floats.len() / batch.len().max(1)).max(1));
            Ok(rows
                .map(|row| Tensor::from_values(Layout::Flat, output.shape.clone(), row.to_vec()))
                .collect::<Vec<_>>())
        }
        TensorView::Floats(found, _) => Err(Error::model(format!(
            "ONNX Runtime returned the shape {found:?}, expected {expected:?}"
        ))),
        _ => Err(Error::model("ONNX Runtime did not return a tensor of f32")),
    };
    let mut outputs = session
        .run(&with_batch_axis(&input.shape), &elements, read)?
        .into_iter();
    let missing = || Err(Error::model("ONNX Runtime returned no output"));
    outputs.next().unwrap_or_else(missing)
}

/// CPU time of this thread. It loads a range alone.
fn thread_cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn check_value(value: &Tensor, expected: &TensorSpec) -> Result<()> {
    if value.dtype() == DType::F32 && value.shape() == expected.shape {
        return Ok(());
    }
    Err(Error::unsuitable(format!(
        "takes f32 of the shape {:?} at `{}`, found {} of {:?}",
        expected.shape,
        expected.tensor,
        value.dtype(),
        value.shape()
    )))
}
