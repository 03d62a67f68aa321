//! ONNX Runtime: the library, loaded once in a process, and sessions that run a part of a model.

use std::{fmt, path::Path, sync::Arc};

use ort::{session::builder::GraphOptimizationLevel, value::TensorRef};
use parking_lot::{Mutex, MutexGuard};

use super::{
    files::Files,
    graph::FILE,
    identity::{self, Identity},
    provider::{self, Provider},
};
use crate::{Error, Result};

/// ONNX Runtime in this process. Clones share it.
#[derive(Clone)]
pub struct Runtime {
    environment: Arc<ort::environment::Environment>,
    version: Arc<str>,
    threads: usize,
    provider: Provider,
}

impl Runtime {
    /// Loads the library, `libonnxruntime.so` of ONNX Runtime 1.24 or newer. Each run of a model uses up to
    /// `threads` threads of the processor.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) when there is no such library, or it is too old.
    pub fn load(library: &Path, threads: usize) -> Result<Self> {
        let missing = |error: &dyn fmt::Display| {
            Error::runtime(format!(
                "cannot load ONNX Runtime from {}: {error}",
                library.display()
            ))
        };
        // Of a name without a folder the system knows the place.
        let there = library
            .exists()
            .then(|| std::path::absolute(library).ok())
            .flatten();
        let library = there.as_deref().unwrap_or(library);
        let environment = ort::init_from(library)
            .map_err(|error| missing(&error))?
            .with_name("pushdown")
            .with_telemetry(false)
            .build()
            .map_err(|error| missing(&error))?;
        let version = identity::version(library).map_err(|error| missing(&error))?;
        Ok(Self {
            environment: Arc::new(environment),
            version: version.into(),
            threads,
            provider: Provider::Cpu,
        })
    }

    /// The same library with another provider, after a trial run on it.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why it cannot be used here.
    pub fn on(&self, provider: Provider) -> Result<Self> {
        if !provider.is_built() {
            return Err(Error::runtime(format!(
                "found the execution provider {provider}, which was not compiled in; build with `--features {provider}`"
            )));
        }
        let runtime = Self {
            provider,
            ..self.clone()
        };
        let failed = |error: Error| {
            // ONNX Runtime's reasons may go over several lines.
            let reason = error.to_string();
            let reason: Vec<_> = reason.split_whitespace().collect();
            let reason = reason.join(" ");
            Error::runtime(format!(
                "the execution provider {provider} failed its trial: {}",
                reason.trim_end_matches('.')
            ))
        };
        provider::check(&runtime).map_err(failed)?;
        Ok(runtime)
    }

    /// What computes.
    pub const fn provider(&self) -> Provider {
        self.provider
    }

    /// What the last bits of results depend on beside the model.
    pub fn identity(&self) -> Identity {
        Identity {
            onnxruntime: self.version.to_string(),
            provider: self.provider.to_string(),
            processor: identity::processor(),
        }
    }

    /// How many runs of layers with so many bytes of weights go on beside one another, and how many threads each takes.
    pub(super) fn concurrency(&self, weights: u64) -> (usize, usize) {
        match self.provider {
            Provider::Cpu => shared_out(self.threads, weights),
            // Batches fill a device, copies only its memory; one thread waits for it.
            Provider::Cuda => (1, 1),
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("threads", &self.threads)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// Copies of layers with so many bytes of weights, and threads of each: together no more threads than there are, and as
/// few idle as can be.
fn shared_out(threads: usize, weights: u64) -> (usize, usize) {
    let threads = threads.max(1);
    let fitting = usize::try_from(COPIES / weights.max(1)).unwrap_or(usize::MAX);
    let numbers = 1..=fitting.clamp(1, threads);
    // Of those that keep as many busy the most copies.
    let copies = numbers.max_by_key(|copies| copies * (threads / copies));
    let copies = copies.unwrap_or(1);
    (copies, threads / copies)
}

/// A tensor as ONNX Runtime gives it, and keeps it meanwhile.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Floats(Vec<usize>, &'a [f32]),
    Integers(Vec<usize>, &'a [i64]),
    /// Of a type that no cut can have.
    Other,
}

/// A model, ready to run.
///
/// A small one is there as often as there are threads, and each run takes one thread: runs beside one another waste less
/// than threads within a run, which wait for each other at every node. A large one is there once, and its runs take turns
/// with all threads. On a GPU each is there once.
pub(super) struct Session(Vec<Mutex<ort::session::Session>>);

/// Bytes that the copies of a model may have together.
const COPIES: u64 = 256 << 20;

impl Session {
    /// Prepares `model`, of so many bytes of weights, to run many times: groups of operators are computed as one. Without
    /// `weights` it is there once, and computes every tensor.
    ///
    /// What the model has no numbers of is copied from `files`, which nobody needs any more after this.
    pub(super) fn new(runtime: &Runtime, model: &[u8], files: &Files, weights: Option<u64>) -> Result<Self> {
        let once = (1, runtime.threads);
        let (copies, threads) = weights.map_or(once, |weights| runtime.concurrency(weights));
        let build = || -> Result<_, ort::Error> {
            let level = if weights.is_some() {
                GraphOptimizationLevel::All
            } else {
                GraphOptimizationLevel::Disable
            };
            let mut builder = ort::session::Session::builder(&runtime.environment)?
                .with_optimization_level(level)?
                .with_intra_threads(threads)?
                .with_intra_op_spinning(false)?
                .with_execution_providers(runtime.provider.in_order())?;
            let data = files.data.iter().map(|(name, bytes)| (name.as_str(), bytes));
            for (name, bytes) in [(FILE, &files.model)].into_iter().chain(data) {
                if !bytes.is_empty() {
                    builder = builder.with_external_initializer_file_in_memory(name, Arc::clone(bytes))?;
                }
            }
            builder.commit_from_memory(model)
        };
        let sessions = (0..copies).map(|_| build().map(Mutex::new));
        sessions
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|error| Error::model(format!("ONNX Runtime refuses the model: {error}")))
    }

    /// Runs on an array whose first axis is the batch; gives what `read` makes of the outputs, in their order.
    pub(super) fn run<T>(
        &self,
        shape: &[usize],
        elements: &[f32],
        mut read: impl FnMut(&str, &Value<'_>) -> T,
    ) -> Result<Vec<T>> {
        let failed = |error: ort::Error| Error::model(format!("ONNX Runtime: {error}"));
        let shape: Vec<i64> = shape
            .iter()
            .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
            .collect();
        let input = TensorRef::from_array_view((shape, elements)).map_err(failed)?;
        let mut session = self.free();
        let outputs = session.run(ort::inputs![input]).map_err(failed)?;
        Ok(outputs
            .iter()
            .map(|(name, value)| read(name, &Value::of(&value)))
            .collect())
    }
}

impl Session {
    /// How often the model is there, each time with weights of its own.
    pub(super) fn copies(&self) -> usize {
        self.0.len()
    }

    /// A copy that does not run; where all do, the first to be done.
    fn free(&self) -> MutexGuard<'_, ort::session::Session> {
        let free = self.0.iter().find_map(Mutex::try_lock);
        free.unwrap_or_else(|| self.0[0].lock())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl<'a> Value<'a> {
    fn of(value: &'a ort::value::DynValue) -> Self {
        let extents = |shape: &ort::value::Shape| {
            let extents = shape.iter().map(|extent| usize::try_from(*extent).unwrap_or(0));
            extents.collect()
        };
        if let Ok((shape, elements)) = value.try_extract_tensor::<f32>() {
            Self::Floats(extents(shape), elements)
        } else if let Ok((shape, elements)) = value.try_extract_tensor::<i64>() {
            Self::Integers(extents(shape), elements)
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_threads_stay_within_the_cores() {
        for cores in 1..=64 {
            for weights in (0..=21).map(|doubled| 1_u64 << (10 + doubled)) {
                let (copies, threads) = shared_out(cores, weights);
                assert!(copies >= 1 && threads >= 1, "{cores} cores, {weights} bytes");
                assert!(
                    copies * threads <= cores,
                    "{copies} of {threads} threads on {cores} cores, {weights} bytes"
                );
                assert!(copies == 1 || copies as u64 * weights <= COPIES);
            }
        }
        assert_eq!(
            shared_out(8, 1 << 10),
            (8, 1),
            "a small one as often as there are threads"
        );
        assert_eq!(
            shared_out(8, 85 << 20),
            (2, 4),
            "three would leave two threads idle"
        );
        assert_eq!(shared_out(8, 50 << 20), (4, 2), "five would leave three idle");
        assert_eq!(shared_out(8, 2 << 30), (1, 8), "a large one once");
    }
}
