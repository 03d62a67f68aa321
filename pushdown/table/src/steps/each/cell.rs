//! The computation of the value of one cell: memory for it, then its steps, of which some may run with those of other cells.

use std::{
    ops::Range,
    sync::Arc,
    task::{Context as Task, Poll, ready},
    time::Duration,
};

use arrow_buffer::Buffer;
use futures::{FutureExt as _, future::BoxFuture};

use pushdown_core::{
    Context, Error, ErrorKind, Kind, Limits, Result, Sample,
    step::{CellComputation, CellHost, CellMemory, InnerPipeline},
};
use pushdown_wire::TensorColumn;

use super::lookup::{CellStart, Lookup};

/// Shape and elements of an output value.
pub(super) type OutputValue = (Vec<usize>, Buffer);

/// What all cells of a column have in common.
pub(super) struct CellRunner {
    pub(super) column: String,
    pub(super) pipeline: Arc<dyn InnerPipeline>,
    /// The stage of the pipeline at which the values are complete.
    pub(super) until: usize,
    pub(super) tensors: TensorColumn,
    pub(super) seed: Option<u64>,
    pub(super) epoch: Option<u32>,
    pub(super) limits: Limits,
    pub(super) host: Option<Arc<dyn CellHost>>,
}

/// A cell whose value is being computed.
pub(super) struct Cell {
    sample_id: Vec<u8>,
    progress: Progress,
}

enum Progress {
    Lookup(Lookup),
    /// It waits for memory.
    Admission(CellStart, BoxFuture<'static, Result<CellMemory>>),
    Running(Running),
    Done(CellOutput),
}

/// A value, or the error of a cell without one. Both are `None` for a null.
#[derive(Debug, Default)]
pub(super) struct CellOutput {
    pub(super) value: Option<OutputValue>,
    pub(super) error: Option<String>,
}

/// A value between two steps.
struct Running {
    value: Sample,
    /// The number of steps applied to it.
    done: usize,
    /// Caches the value at this stage.
    cached: Option<(usize, Box<dyn CellComputation>)>,
    /// Steps that run with those of other cells. Meanwhile `value` is empty.
    batched: Option<(usize, BoxFuture<'static, Result<Sample>>)>,
    _memory: Option<CellMemory>,
}

impl CellOutput {
    /// Bytes of the value.
    pub(super) fn bytes(&self) -> usize {
        self.value.as_ref().map_or(0, |(_, elements)| elements.len())
    }
}

impl CellRunner {
    /// Bytes that the computation of a value takes, with its input.
    fn peak_bytes(&self, start: &CellStart) -> u64 {
        let steps = self
            .pipeline
            .peak_bytes(start.stage..self.until, &Kind::from(&start.value));
        start.value.bytes().saturating_add(steps.unwrap_or_default())
    }

    /// The first steps that run on several values at a time.
    pub(super) fn batched_steps(&self, stretch: Range<usize>) -> Option<Range<usize>> {
        let host = self.host.as_ref()?;
        host.batched_steps(&*self.pipeline, stretch)
    }

    fn run(&self, steps: Range<usize>, value: Sample, sample_id: &[u8]) -> Result<Sample> {
        let context = Context {
            seed: self.seed,
            epoch: self.epoch,
            limits: self.limits,
            ..Context::new(sample_id)
        };
        let Some((host, start)) = self.host.as_ref().and_then(|host| Some((host, host.now()?))) else {
            return self.pipeline.run(steps, value, &context);
        };
        let clock = || host.now().map_or(Duration::ZERO, |now| now.saturating_sub(start));
        let (value, groups) = self.pipeline.run_timed(steps, value, &context, &clock)?;
        for (steps, time) in groups {
            host.record(&self.column, steps, time);
        }
        Ok(value)
    }

    /// The elements of a complete value.
    fn output(&self, value: Sample) -> Result<OutputValue> {
        let (shape, elements) = self.tensors.elements(value)?;
        let max_bytes = self.limits.tables.max_batch_bytes;
        if elements.len() as u64 > max_bytes {
            return Err(Error::too_large(format!(
                "value too large: expected at most {max_bytes} bytes in a record batch, found {}",
                elements.len()
            )));
        }
        Ok((shape, elements))
    }
}

impl Cell {
    /// A cell whose cached values are looked up.
    pub(super) const fn with_lookup(lookup: Lookup, sample_id: Vec<u8>) -> Self {
        Self {
            sample_id,
            progress: Progress::Lookup(lookup),
        }
    }

    /// A cell that is computed from a value.
    pub(super) fn with_start(start: CellStart, sample_id: Vec<u8>, runner: &CellRunner) -> Self {
        Self {
            sample_id,
            progress: Progress::admission(start, runner),
        }
    }

    /// A cell without a value to compute from.
    pub(super) const fn null(error: Option<String>) -> Self {
        Self {
            sample_id: Vec::new(),
            progress: Progress::Done(CellOutput { value: None, error }),
        }
    }

    /// Advances the computation. Returns whether steps ran, which takes time.
    ///
    /// # Errors
    /// If the scan cannot go on. An error of the cell is its output.
    pub(super) fn poll(&mut self, runner: &CellRunner, task: &mut Task<'_>) -> Poll<Result<bool>> {
        loop {
            let output = match &mut self.progress {
                Progress::Done(_) => return Poll::Ready(Ok(false)),
                Progress::Lookup(lookup) => {
                    let start = ready!(lookup.poll(task));
                    self.progress = Progress::admission(start, runner);
                    continue;
                }
                Progress::Admission(start, memory) => match ready!(memory.poll_unpin(task)) {
                    Ok(memory) => {
                        let start = std::mem::replace(start, CellStart::new(empty(), 0));
                        self.progress = Progress::Running(Running::new(start, Some(memory), runner));
                        continue;
                    }
                    // The same for every attempt.
                    Err(error) if error.kind() == ErrorKind::TooLarge => Err(error),
                    Err(error) => return Poll::Ready(Err(error)),
                },
                Progress::Running(running) => match ready!(running.poll(runner, &self.sample_id, task)) {
                    Ok(None) => return Poll::Ready(Ok(true)),
                    Ok(Some(value)) => runner.output(value),
                    Err(error) => Err(error),
                },
            };
            self.progress = Progress::Done(match output {
                Ok(value) => CellOutput {
                    value: Some(value),
                    error: None,
                },
                Err(error) => CellOutput {
                    value: None,
                    error: Some(error.to_string()),
                },
            });
            return Poll::Ready(Ok(true));
        }
    }

    /// Takes the output of a cell that is done.
    pub(super) fn take_output(&mut self) -> Option<CellOutput> {
        match &mut self.progress {
            Progress::Done(output) => Some(std::mem::take(output)),
            _ => None,
        }
    }
}

impl Progress {
    fn admission(start: CellStart, runner: &CellRunner) -> Self {
        match &runner.host {
            Some(host) => {
                let memory = host.reserve(runner.peak_bytes(&start));
                Self::Admission(start, memory)
            }
            None => Self::Running(Running::new(start, None, runner)),
        }
    }
}

impl Running {
    fn new(start: CellStart, memory: Option<CellMemory>, runner: &CellRunner) -> Self {
        let CellStart { value, stage, cached } = start;
        // A cut between steps costs what running them together saves.
        let cached = cached.filter(|(stage, cell)| *stage == runner.until || cell.is_wanted());
        Self {
            value,
            done: stage,
            cached: cached.map(|(stage, cell)| (stage, cell.begin())),
            batched: None,
            _memory: memory,
        }
    }

    /// Runs some of the steps that are left. Returns the value after all of them.
    fn poll(
        &mut self,
        runner: &CellRunner,
        sample_id: &[u8],
        task: &mut Task<'_>,
    ) -> Poll<Result<Option<Sample>>> {
        let mut has_run = false;
        loop {
            if let Some((done, value)) = &mut self.batched {
                self.value = ready!(value.poll_unpin(task))?;
                self.done = *done;
                self.batched = None;
            }
            if let Some((_, computation)) = self.cached.take_if(|(stage, _)| *stage == self.done) {
                computation.finish(&self.value);
            }
            if self.done == runner.until {
                return Poll::Ready(Ok(Some(self.take_value())));
            }
            if has_run {
                return Poll::Ready(Ok(None));
            }
            let end = self.cached.as_ref().map_or(runner.until, |(stage, _)| *stage);
            let batched = runner.batched_steps(self.done..end);
            if let (Some(steps), Some(host)) = (&batched, &runner.host)
                && steps.start == self.done
            {
                let value = self.take_value();
                let value = host.run_batched(&*runner.pipeline, steps.clone(), value);
                self.batched = Some((steps.end, value));
                continue;
            }
            let end = batched.map_or(end, |steps| steps.start);
            let value = self.take_value();
            self.value = runner.run(self.done..end, value, sample_id)?;
            (self.done, has_run) = (end, true);
        }
    }

    fn take_value(&mut self) -> Sample {
        std::mem::replace(&mut self.value, empty())
    }
}

/// Takes the place of a value that was taken.
const fn empty() -> Sample {
    Sample::Bytes(bytes::Bytes::new())
}
