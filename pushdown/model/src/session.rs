//! ONNX Runtime: the library, loaded once per process, and sessions that run a submodel.

use std::{fmt, path::Path, sync::Arc};

use ort::{session::builder::GraphOptimizationLevel, value::TensorRef};
use parking_lot::{Mutex, MutexGuard};

use super::{
    files::ModelFiles,
    graph::MODEL_FILE,
    identity,
    provider::{self, Provider},
};
use pushdown_core::{Error, Result, RuntimeIdentity};

/// ONNX Runtime in this process. Clones share the library.
#[derive(Clone)]
pub struct Runtime {
    environment: Arc<ort::environment::Environment>,
    version: Arc<str>,
    threads: usize,
    provider: Provider,
}

impl Runtime {
    /// Loads the library, `libonnxruntime.so` of ONNX Runtime 1.24 or newer. Each run of a model uses up to
    /// `threads` CPU threads.
    ///
    /// # Errors
    /// [`ModelRuntime`](pushdown_core::ErrorKind::ModelRuntime) if the library is missing or too old.
    pub fn load(library: &Path, threads: usize) -> Result<Self> {
        let missing = |error: &dyn fmt::Display| {
            Error::runtime(format!(
                "cannot load ONNX Runtime from {}: {error}: set ORT_DYLIB_PATH to libonnxruntime.so of ONNX Runtime 1.24 or newer",
                library.display()
            ))
        };
        // A bare name that is not a file in the current folder is left to the system's search path.
        let absolute = library
            .exists()
            .then(|| std::path::absolute(library).ok())
            .flatten();
        let library = absolute.as_deref().unwrap_or(library);
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

    /// The same library with another execution provider, after a trial run.
    ///
    /// # Errors
    /// [`ModelRuntime`](pushdown_core::ErrorKind::ModelRuntime) with the reason why this host cannot use it.
    pub fn with_provider(&self, provider: Provider) -> Result<Self> {
        if !provider.is_built() {
            return Err(Error::runtime(format!(
                "the execution provider {provider} is not compiled in; build with `--features {provider}`"
            )));
        }
        let runtime = Self {
            provider,
            ..self.clone()
        };
        let failed = |error: Error| {
            // ONNX Runtime's reasons may span several lines.
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

    /// The execution provider.
    pub const fn provider(&self) -> Provider {
        self.provider
    }

    /// Everything but the model that the last bits of results depend on.
    pub fn identity(&self) -> RuntimeIdentity {
        RuntimeIdentity {
            onnxruntime: self.version.to_string(),
            provider: self.provider.to_string(),
            processor: identity::processor(),
        }
    }

    /// How layers with `weight_bytes` of weights share the threads.
    pub(super) fn concurrency(&self, weight_bytes: u64) -> Concurrency {
        match self.provider {
            Provider::Cpu => Concurrency::on_cpu(self.threads, weight_bytes),
            // On a GPU, batches use the device fully, and copies would only use its memory. One thread waits for it.
            Provider::Cuda => Concurrency { runs: 1, threads: 1 },
        }
    }
}

/// How layers share the CPU threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concurrency {
    /// Runs in parallel, each on its own copy of the weights.
    pub runs: usize,
    /// Threads per run.
    pub threads: usize,
}

impl Concurrency {
    /// Uses at most `threads` threads in total, and leaves as few idle as possible. All copies of the weights together have
    /// at most [`MAX_COPIES_BYTES`], unless there is only one.
    fn on_cpu(threads: usize, weight_bytes: u64) -> Self {
        let threads = threads.max(1);
        let affordable = usize::try_from(MAX_COPIES_BYTES / weight_bytes.max(1)).unwrap_or(usize::MAX);
        let candidates = 1..=affordable.clamp(1, threads);
        // `max_by_key` returns the last maximum: of equally busy candidates the one with the most copies.
        let runs = candidates.max_by_key(|runs| runs * (threads / runs));
        let runs = runs.unwrap_or(1);
        Self {
            runs,
            threads: threads / runs,
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

/// A tensor that ONNX Runtime owns.
#[derive(Debug)]
pub(super) enum TensorView<'a> {
    Floats(Vec<usize>, &'a [f32]),
    Integers(Vec<usize>, &'a [i64]),
    /// A tensor of another type. It cannot be a cut point.
    Other,
}

/// A model that is ready to run.
///
/// A small model has one copy per thread, and each run uses one thread: parallel runs waste less than the threads of one
/// run, which wait for each other at every node. A large model has one copy, and its runs use all threads one after the
/// other. On a GPU every model has one copy.
pub(super) struct Session(Vec<Mutex<ort::session::Session>>);

/// Maximum bytes of all copies of a model.
const MAX_COPIES_BYTES: u64 = 256 << 20;

impl Session {
    /// Prepares `model` for many runs: ONNX Runtime fuses operators, and the model gets the copies that fit `weight_bytes`.
    /// Without `weight_bytes` it has one copy and computes every tensor, unfused.
    ///
    /// Weights that are stored outside `model` are copied from `files`.
    pub(super) fn new(
        runtime: &Runtime,
        model: &[u8],
        files: &ModelFiles,
        weight_bytes: Option<u64>,
    ) -> Result<Self> {
        let single = Concurrency {
            runs: 1,
            threads: runtime.threads,
        };
        let Concurrency { runs, threads } =
            weight_bytes.map_or(single, |weight_bytes| runtime.concurrency(weight_bytes));
        let build = || -> Result<_, ort::Error> {
            let level = if weight_bytes.is_some() {
                GraphOptimizationLevel::All
            } else {
                GraphOptimizationLevel::Disable
            };
            let mut builder = ort::session::Session::builder(&runtime.environment)?
                .with_optimization_level(level)?
                .with_intra_threads(threads)?
                .with_intra_op_spinning(false)?
                .with_execution_providers(runtime.provider.dispatch_order())?;
            let data = files.data.iter().map(|(name, bytes)| (name.as_str(), bytes));
            for (name, bytes) in [(MODEL_FILE, &files.model)].into_iter().chain(data) {
                if !bytes.is_empty() {
                    builder = builder.with_external_initializer_file_in_memory(name, Arc::clone(bytes))?;
                }
            }
            builder.commit_from_memory(model)
        };
        let sessions = (0..runs).map(|_| build().map(Mutex::new));
        sessions
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|error| Error::model(format!("ONNX Runtime refuses the model: {error}")))
    }

    /// Runs on an array whose first axis is the batch, and maps the outputs, in their order, with `read`.
    pub(super) fn run<T>(
        &self,
        shape: &[usize],
        elements: &[f32],
        mut read: impl FnMut(&str, &TensorView<'_>) -> T,
    ) -> Result<Vec<T>> {
        let failed = |error: ort::Error| Error::model(format!("ONNX Runtime: {error}"));
        let shape: Vec<i64> = shape
            .iter()
            .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
            .collect();
        let input = TensorRef::from_array_view((shape, elements)).map_err(failed)?;
        let mut session = self.free_copy();
        let outputs = session.run(ort::inputs![input]).map_err(failed)?;
        Ok(outputs
            .iter()
            .map(|(name, value)| read(name, &TensorView::new(&value)))
            .collect())
    }
}

impl Session {
    /// Number of copies of the model, each with its own weights.
    pub(super) fn copies(&self) -> usize {
        self.0.len()
    }

    /// A copy that is not running. If all are, waits for the first one.
    fn free_copy(&self) -> MutexGuard<'_, ort::session::Session> {
        let free = self.0.iter().find_map(Mutex::try_lock);
        free.unwrap_or_else(|| self.0[0].lock())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl<'a> TensorView<'a> {
    fn new(value: &'a ort::value::DynValue) -> Self {
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
        let on_cpu = |cores, weight_bytes| {
            let Concurrency { runs, threads } = Concurrency::on_cpu(cores, weight_bytes);
            (runs, threads)
        };
        for cores in 1..=64 {
            for weights in (0..=21).map(|doubled| 1_u64 << (10 + doubled)) {
                let (copies, threads) = on_cpu(cores, weights);
                assert!(copies >= 1 && threads >= 1, "{cores} cores, {weights} bytes");
                assert!(
                    copies * threads <= cores,
                    "{copies} of {threads} threads on {cores} cores, {weights} bytes"
                );
                assert!(copies == 1 || copies as u64 * weights <= MAX_COPIES_BYTES);
            }
        }
        assert_eq!(
            on_cpu(8, 1 << 10),
            (8, 1),
            "a small model has one copy per thread"
        );
        assert_eq!(on_cpu(8, 85 << 20), (2, 4), "three would leave two threads idle");
        assert_eq!(on_cpu(8, 50 << 20), (4, 2), "five would leave three idle");
        assert_eq!(on_cpu(8, 2 << 30), (1, 8), "a large model has one copy");
    }
}
