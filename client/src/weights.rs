//! The models that steps name, and their weights.

use std::{
    cell::Cell,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::Duration,
};

use pushdown::{Step, pipeline::NamedModel};

/// Waiting time of a download in the background over its time on the link: it takes at most 2 %.
const PAUSE_RATIO: u32 = 49;
/// How often it is checked whether the thread of a download has ended.
const END_INTERVAL: Duration = Duration::from_millis(5);

/// The models of `steps`, each once.
pub(crate) fn models_of(steps: &[Step]) -> Vec<Arc<dyn NamedModel>> {
    let mut models: Vec<Arc<dyn NamedModel>> = Vec::new();
    for model in steps.iter().flat_map(Step::models) {
        if !models.contains(&model) {
            models.push(model);
        }
    }
    models
}

/// Downloads and loads the weights of `steps` in the background, before the first sample needs them.
pub(crate) fn preload(steps: &[Step]) {
    for model in models_of(steps) {
        if model.is_loaded() {
            continue;
        }
        let load = move || {
            if let Err(error) = model.prepare() {
                tracing::warn!(%error, "this host cannot run the model");
            }
        };
        // If no thread can be started, the first sample loads them.
        drop(
            std::thread::Builder::new()
                .name("pushdown-weights".to_owned())
                .spawn(load),
        );
    }
}

/// A download of weights in the background. It ends with this value.
#[derive(Debug)]
pub(crate) struct WeightDownload {
    is_wanted: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl WeightDownload {
    /// Downloads the weights that `steps` need and this host lacks, with at most 2 % of the link: after each part it waits 49 times as long
    /// as the part took. `None` if nothing is missing.
    pub(crate) fn begin(steps: &[Step]) -> Option<Self> {
        let mut missing = models_of(steps);
        missing.retain(|model| !model.is_local());
        if missing.is_empty() {
            return None;
        }
        let (is_wanted, wanted) = mpsc::channel();
        let download = move || {
            let has_ended = Cell::new(false);
            for model in &missing {
                let pause = |time: Duration| {
                    let ended = wanted.recv_timeout(time * PAUSE_RATIO);
                    has_ended.set(ended != Err(RecvTimeoutError::Timeout));
                    // A plan may have fetched them in the meantime.
                    !has_ended.get() && !model.is_local()
                };
                let downloaded = model.download(&pause);
                if has_ended.get() {
                    return;
                }
                match downloaded {
                    Err(error) if !model.is_local() => {
                        tracing::warn!(%error, "a run with this model depends on its gateway");
                    }
                    _ => tracing::info!(name = model.name(), "the weights of the model are on this host"),
                }
            }
        };
        let thread = std::thread::Builder::new().name("pushdown-weights".to_owned());
        let thread = thread.spawn(download).ok()?;
        Some(Self { is_wanted, thread })
    }

    /// Ends the download, and waits until its thread has ended.
    pub(crate) async fn end(self) {
        drop(self.is_wanted);
        while !self.thread.is_finished() {
            tokio::time::sleep(END_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        time::Instant,
    };

    use pushdown::{
        Error, ErrorKind, Pipeline, Result,
        pipeline::Resolver,
        step::model::{Model, ModelDescription, ModelFiles, Runtime, WeightSource},
    };

    use super::*;

    /// Weights of a number of parts, each of which takes a millisecond.
    #[derive(Debug, Clone)]
    struct Weights {
        parts: usize,
        arrived: Arc<AtomicUsize>,
    }

    impl Weights {
        fn new(parts: usize) -> Self {
            let arrived = Arc::default();
            Self { parts, arrived }
        }

        fn begin(&self) -> Option<WeightDownload> {
            let pipeline = Pipeline::parse_with("decode | resize(8, 8) | to_float | model(m)", self).unwrap();
            WeightDownload::begin(pipeline.steps())
        }
    }

    impl WeightSource for Weights {
        fn fetch(&self) -> Result<ModelFiles> {
            Ok(ModelFiles::default())
        }

        fn is_local(&self) -> bool {
            self.arrived.load(SeqCst) >= self.parts
        }

        fn download(&self, pause: &dyn Fn(Duration) -> bool) -> Result<()> {
            while self.arrived.fetch_add(1, SeqCst) + 1 < self.parts {
                if !pause(Duration::from_millis(1)) {
                    return Err(Error::new(ErrorKind::InvalidModel, "ended"));
                }
            }
            Ok(())
        }

        fn runtime(&self) -> Result<Runtime> {
            Err(Error::new(ErrorKind::ModelRuntime, "no library"))
        }
    }

    impl Resolver for Weights {
        fn resolve(&self, name: &str) -> Result<Arc<dyn NamedModel>> {
            let description = serde_json::json!({
                "name": name, "digest": "0".repeat(64), "bytes": 1, "left_out": [], "batched": true,
                "working_bytes": 0, "inputs": [{"tensor": "x", "shape": [3, 8, 8]}], "outputs": [],
                "cut_points": [{"tensor": "y", "shape": [4], "bytes": 16, "parameters": 0, "macs": 0}],
            });
            let invalid = |error: serde_json::Error| Error::new(ErrorKind::InvalidModel, error.to_string());
            let description: ModelDescription = serde_json::from_value(description).map_err(invalid)?;
            Ok(Arc::new(Model::from_description(description, self.clone())?))
        }
    }

    #[test]
    fn parts_take_a_fiftieth_of_the_time() {
        let weights = Weights::new(6);
        let began = Instant::now();
        let download = weights.begin().unwrap();
        while !weights.is_local() {
            std::thread::yield_now();
        }
        assert!(
            began.elapsed() >= Duration::from_millis(5 * 49),
            "{:?}",
            began.elapsed()
        );
        drop(download);
        assert!(weights.begin().is_none(), "nothing is missing");
    }

    #[test]
    fn a_download_ends_with_its_reader() {
        let weights = Weights::new(usize::MAX);
        drop(weights.begin().unwrap());
        // The thread that downloads has the last other reference to the model.
        while Arc::strong_count(&weights.arrived) > 1 {
            std::thread::yield_now();
        }
        assert!(weights.arrived.load(SeqCst) < 3);
    }
}
