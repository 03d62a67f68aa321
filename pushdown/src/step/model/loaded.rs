//! A model in memory: its parts from one place to another, made when they are first run.

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
    files::Files,
    graph::Seam,
    onnx_model::Place,
    outline::Outline,
    session::{Runtime, Session, Value},
    trim::give_back,
    weights::turn,
};
use crate::{DType, Error, Layout, Result, Tensor};

/// Parts that are kept, the last ones used: each has weights of its own.
const MAX_PARTS: usize = 4;

/// A model of which parts run. Its files are in memory only while one is made.
#[derive(Debug)]
pub(super) struct Loaded {
    outline: Arc<Outline>,
    runtime: Runtime,
    /// The last one used stands last.
    parts: Mutex<Vec<Part>>,
    /// Bytes of them all: whoever asks does not wait for a part that is being made.
    held: AtomicUsize,
    /// What the last part took that was made here.
    making: Mutex<Option<Making>>,
}

/// What it takes to make a part.
#[derive(Debug, Clone, Copy)]
struct Making {
    /// CPU time to have the files and hold them against their digest, however small the part.
    files: Duration,
    /// And to have the part ready to run,
    session: Duration,
    /// of so many bytes of weights, in every copy of them.
    bytes: usize,
}

/// Layers that have been run.
#[derive(Debug)]
struct Part {
    /// From where to where.
    reach: (Place, usize),
    session: Arc<Session>,
    /// Of the weights, in every copy of them.
    bytes: usize,
}

impl Loaded {
    /// A model of which no part is here yet.
    pub(super) fn new(outline: Arc<Outline>, runtime: Runtime) -> Self {
        Self {
            outline,
            runtime,
            parts: Mutex::new(Vec::new()),
            held: AtomicUsize::new(0),
            making: Mutex::new(None),
        }
    }

    /// Bytes that the copies of its parts hold, about.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// CPU time to make the layers between two places, by those that were made last; none where none were.
    pub(super) fn making_time(&self, from: Place, to: usize) -> Option<Duration> {
        let Making {
            files,
            session,
            bytes,
        } = (*self.making.lock())?;
        let weights = self.outline.weights(from, to);
        let (copies, _) = self.runtime.concurrency(weights);
        let nanoseconds = session.as_nanos() * u128::from(weights) * copies as u128 / bytes.max(1) as u128;
        Some(files + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)))
    }

    /// Has the layers between two places in memory, if any lie between them.
    pub(super) fn make_ready(
        &self,
        (from, to): (Place, usize),
        files: impl FnOnce() -> Result<Files>,
    ) -> Result<()> {
        if from < Place::Cut(to) {
            self.part((from, to), files)?;
        }
        Ok(())
    }

    /// Runs the layers between two places on values of the first. If they are not here they come from `files`, those that
    /// the model was looked at in.
    pub(super) fn run(
        &self,
        (from, to): (Place, usize),
        batch: &[Tensor],
        files: impl FnOnce() -> Result<Files>,
    ) -> Result<Vec<Tensor>> {
        let (start, end) = (self.outline.seam(from)?, self.outline.seam(Place::Cut(to))?);
        for value in batch {
            check_value(value, start)?;
        }
        if from >= Place::Cut(to) {
            return Ok(batch.to_vec());
        }
        let part = self.part((from, to), files)?;
        let together = self.outline.together(batch.len());
        let mut outputs = Vec::with_capacity(batch.len());
        for batch in batch.chunks(together) {
            let extents: Vec<usize> = std::iter::once(batch.len())
                .chain(start.shape.iter().copied())
                .collect();
            let mut elements = Vec::new();
            for value in batch {
                elements.extend_from_slice(&value.values::<f32>());
            }
            let expected: Vec<usize> = std::iter::once(batch.len())
                .chain(end.shape.iter().copied())
                .collect();
            let read = |_: &str, value: &Value<'_>| match value {
                Value::Floats(found, floats) if *found == expected => {
                    let rows = floats.chunks_exact((floats.len() / batch.len().max(1)).max(1));
                    Ok(rows
                        .map(|row| Tensor::from_values(Layout::Flat, end.shape.clone(), row.to_vec()))
                        .collect::<Vec<_>>())
                }
                Value::Floats(found, _) => Err(Error::model(format!(
                    "ONNX Runtime gave the shape {found:?}, expected {expected:?}"
                ))),
                _ => Err(Error::model("ONNX Runtime gave no tensor of f32")),
            };
            let mut read = part.run(&extents, &elements, read)?.into_iter();
            let missing = || Err(Error::model("ONNX Runtime gave no output"));
            outputs.extend(read.next().unwrap_or_else(missing)?);
        }
        Ok(outputs)
    }

    /// The session of a part. Others wait while one is made.
    fn part(&self, reach: (Place, usize), files: impl FnOnce() -> Result<Files>) -> Result<Arc<Session>> {
        let mut parts = self.parts.lock();
        let part = if let Some(index) = parts.iter().position(|part| part.reach == reach) {
            parts.remove(index)
        } else {
            let (from, to) = reach;
            let excerpt = self.outline.part(from, to)?;
            let _turn = turn();
            let began = cpu();
            let files = files()?;
            let fetched = cpu();
            if parts.len() == MAX_PARTS {
                parts.remove(0);
                self.count(&parts);
            }
            let weights = self.outline.weights(from, to);
            let session = Session::new(&self.runtime, &excerpt.model, &files, Some(weights));
            // Before anything else is done: they are as large as all the weights.
            drop(files);
            give_back();
            let session = Arc::new(session?);
            let bytes = excerpt.bytes * session.copies();
            *self.making.lock() = Some(Making {
                files: fetched.saturating_sub(began),
                session: cpu().saturating_sub(fetched),
                bytes,
            });
            Part {
                reach,
                session,
                bytes,
            }
        };
        let session = Arc::clone(&part.session);
        parts.push(part);
        self.count(&parts);
        Ok(session)
    }

    fn count(&self, parts: &[Part]) {
        let bytes = parts.iter().map(|part| part.bytes);
        self.held.store(bytes.sum(), Relaxed);
    }
}

/// CPU time of this thread, which makes a part alone.
fn cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

fn check_value(value: &Tensor, seam: &Seam) -> Result<()> {
    if value.dtype() == DType::F32 && value.shape() == seam.shape {
        return Ok(());
    }
    Err(Error::unsuitable(format!(
        "takes f32 of the shape {:?} at `{}`, found {} of {:?}",
        seam.shape,
        seam.tensor,
        value.dtype(),
        value.shape()
    )))
}
