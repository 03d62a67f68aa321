//! The models that pipelines can use: inspected after start, described to clients, and kept in memory while in use.

mod status;

use std::{fs, io, num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use parking_lot::Mutex;
use pushdown::{
    Step,
    pipeline::{NamedModel, NoModels, Resolver as _},
    step::model::{Model, ModelDescription, ModelFolder, Provider, Runtime},
};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::{
    access::ModelScope,
    config::Models,
    error::{Error, ErrorKind, Result},
};
pub use status::ModelStatus;

/// The models of a folder, if one is configured. Clones share it.
#[derive(Debug, Clone)]
pub struct ModelRegistry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The configuration; `None` if no models are served.
    models: Option<Models>,
    /// `None` until all models have been inspected.
    folder: watch::Sender<Option<Arc<ModelFolder>>>,
    /// Models whose weights are in memory, the least recently used first.
    warm: Mutex<Vec<Arc<Model>>>,
    /// Maximum bytes of weights in memory.
    budget_bytes: u64,
}

impl ModelRegistry {
    /// A registry that has not inspected its models yet. It keeps up to `budget_bytes` of weights in memory.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn new(models: Option<Models>, budget_bytes: u64) -> anyhow::Result<Self> {
        if let Some(models) = &models {
            fs::read_dir(&models.folder).with_context(|| unreadable(models))?;
        }
        Ok(Self(Arc::new(Inner {
            models,
            folder: watch::Sender::new(None),
            warm: Mutex::default(),
            budget_bytes,
        })))
    }

    /// Inspects every model of the folder, and logs which ones are usable. A large model takes a second or more; other
    /// requests are served at the same time. Each model run uses up to `threads` threads.
    ///
    /// # Errors
    /// If the folder cannot be read any more.
    #[expect(
        clippy::disallowed_methods,
        reason = "runs once, and leaves the CPU pool to requests"
    )]
    pub async fn load(self, threads: NonZeroUsize) -> anyhow::Result<()> {
        if let Some(models) = self.0.models.clone() {
            let folder = tokio::task::spawn_blocking(move || inspect(&models, threads)).await??;
            self.0.folder.send_replace(Some(Arc::new(folder)));
        }
        Ok(())
    }

    /// Whether all models have been inspected, or no models are served.
    pub fn is_ready(&self) -> bool {
        self.0.models.is_none() || self.0.folder.borrow().is_some()
    }

    /// Waits until all models have been inspected.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] if that takes longer than `wait`.
    pub async fn wait_until_ready(&self, wait: Duration) -> Result<()> {
        if self.is_ready() {
            return Ok(());
        }
        let mut folder = self.0.folder.subscribe();
        match tokio::time::timeout(wait, folder.wait_for(Option::is_some)).await {
            Ok(Ok(_folder)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Error::new(
                ErrorKind::SlowDown,
                "the gateway is still loading its models; try again later",
            )
            .with_retry_after(Duration::from_secs(1))),
        }
    }

    /// All usable models.
    fn all(&self) -> Vec<Arc<Model>> {
        let folder = self.folder();
        folder.iter().flat_map(|folder| folder.iter()).cloned().collect()
    }

    /// The descriptions of the usable models in `scope`, for clients.
    pub fn descriptions(&self, scope: &ModelScope) -> Vec<ModelDescription> {
        let models = self.all();
        let descriptions = models.iter().map(|model| model.description());
        descriptions
            .filter(|description| scope.contains(&description.name))
            .cloned()
            .collect()
    }

    /// The current state of all usable models.
    pub fn statuses(&self) -> Vec<ModelStatus> {
        self.all().iter().map(|model| ModelStatus::new(model)).collect()
    }

    /// Whether clients may download the models' weights.
    pub fn serves_weights(&self) -> bool {
        self.0.models.as_ref().is_none_or(|models| models.serve_weights)
    }

    /// All models of the folder, usable or not; `None` until all have been inspected, and if no models are served.
    fn folder(&self) -> Option<Arc<ModelFolder>> {
        self.0.folder.borrow().clone()
    }

    /// Opens the ONNX file or the file of external weights with this digest, of a model in `scope`. Blocks. `None` if no such model
    /// has it.
    ///
    /// # Errors
    /// If the file was deleted.
    pub fn open_file(&self, digest: &str, scope: &ModelScope) -> Option<io::Result<fs::File>> {
        self.folder()?.open_file(digest, |name| scope.contains(name))
    }

    /// The name of a model that has a file with this digest, whoever can use it.
    pub fn name_of_file(&self, digest: &str) -> Option<String> {
        let folder = self.folder()?;
        let model = folder.models_with_file(digest).next()?;
        Some(model.description().name.clone())
    }

    /// The model called `name`. One outside of `scope` is unknown.
    ///
    /// # Errors
    /// As [`Resolver::resolve`](pushdown::pipeline::Resolver::resolve).
    pub fn resolve(&self, name: &str, scope: &ModelScope) -> pushdown::Result<Arc<dyn NamedModel>> {
        match self.folder() {
            Some(folder) => Ok(folder.find_visible(name, |name| scope.contains(name))?),
            None => NoModels.resolve(name),
        }
    }

    /// Marks the models of `steps` as used, and evicts the weights of the least recently used models if all weights
    /// together exceed the budget.
    pub fn mark_used(&self, steps: &[Step]) {
        let used = steps.iter().flat_map(Step::models);
        for used in used.filter_map(|model| Model::downcast(model).ok()) {
            let mut warm = self.0.warm.lock();
            warm.retain(|model| *model != used);
            warm.push(used);
            // A model that is not loaded yet has no bytes in memory: its size counts.
            let memory_bytes = |model: &Arc<Model>| model.memory_bytes().max(model.description().bytes);
            let mut bytes: u64 = warm.iter().map(memory_bytes).sum();
            while bytes > self.0.budget_bytes && warm.len() > 1 {
                let least_recent = warm.remove(0);
                bytes = bytes.saturating_sub(memory_bytes(&least_recent));
                least_recent.release();
            }
        }
    }
}

fn inspect(models: &Models, threads: NonZeroUsize) -> anyhow::Result<ModelFolder> {
    let library = models.onnxruntime.display();
    let mut runtime = Runtime::load(&models.onnxruntime, threads.get());
    match &runtime {
        Ok(runtime) => info!(%library, version = runtime.identity().onnxruntime, "loaded ONNX Runtime"),
        Err(error) => warn!("{error}; `model` steps are refused, all other steps work"),
    }
    if let Ok(on_cpu) = runtime {
        runtime = Ok(with_provider(models.execution_provider, on_cpu));
    }
    let folder = ModelFolder::open(&models.folder, runtime).with_context(|| unreadable(models))?;
    folder.inspect_all(|name, model| match model {
        Ok(model) => {
            let description = model.description();
            info!(
                name,
                digest = description.digest,
                cut_points = description.cut_points.len(),
                batched = description.batched,
                "model is ready"
            );
        }
        Err(error) => warn!(name, "model cannot be used: {error}"),
    });
    Ok(folder)
}

fn unreadable(models: &Models) -> String {
    format!("models: cannot read the folder {}", models.folder.display())
}

/// Switches to a provider. Falls back to the CPU if the provider is unusable: results are equivalent, only slower.
fn with_provider(provider: Provider, on_cpu: Runtime) -> Runtime {
    if provider == Provider::Cpu {
        return on_cpu;
    }
    match on_cpu.with_provider(provider) {
        Ok(runtime) => {
            info!("models run on {provider}");
            runtime
        }
        Err(error) => {
            warn!("{error}; models run on the CPU");
            on_cpu
        }
    }
}

#[cfg(test)]
mod tests;
