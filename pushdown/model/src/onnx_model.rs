//! A model in a pipeline: its description, and weights that are loaded on demand.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    Boundary, Concurrency, LayerRange, ModelCard, ModelDescription, ModelFiles, Provider, Runtime,
    WeightSource, files::FileDigests, loaded_model::LoadedModel, outline::Outline,
    weight_source::lock_loading,
};
use pushdown_core::{
    Error, Result, RuntimeIdentity, Tensor,
    language::{NamedModel, Normalization},
};

/// A model. Models are equal if their digests are.
#[derive(Debug)]
pub struct Model {
    description: ModelDescription,
    weights: Box<dyn WeightSource>,
    /// The result of the inspection. Weights are inspected once, however often they are loaded.
    outline: OnceLock<Arc<Outline>>,
    /// Locked only briefly, so that asking whether weights are loaded never waits for them.
    loaded: Mutex<Option<Arc<LoadedModel>>>,
    /// Locked while weights are fetched and inspected.
    loading: Mutex<()>,
}

impl Model {
    /// Inspects the weights: reads them, and runs the model on noise to find shapes and to see whether batches are safe.
    /// The weights do not stay in memory.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) with the reason; [`TooLarge`](pushdown_core::ErrorKind::TooLarge)
    /// above [`MAX_MODEL_BYTES`](super::MAX_MODEL_BYTES); [`ModelRuntime`](pushdown_core::ErrorKind::ModelRuntime).
    pub fn inspect(
        name: &str,
        card: Option<ModelCard>,
        weights: impl WeightSource + 'static,
    ) -> Result<Self> {
        let _lock = lock_loading();
        let files = weights.fetch()?;
        let (outline, facts) = Outline::inspect(&weights.runtime()?, &files)?;
        let digests = FileDigests::new(&files);
        let description = ModelDescription {
            name: name.to_owned(),
            digest: digests.combined(card.as_ref())?,
            bytes: files.bytes(),
            files: digests.data_files(&files),
            inputs: vec![facts.input],
            outputs: facts.output.into_iter().collect(),
            cut_points: facts.cut_points,
            left_out: facts.excluded,
            batched: facts.batched,
            working_bytes: facts.working_bytes,
            card,
        };
        Ok(Self {
            outline: Arc::new(outline).into(),
            ..Self::from_description(description, weights)?
        })
    }

    /// A model whose description was received from a gateway.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a description that no model can have.
    pub fn from_description(
        description: ModelDescription,
        weights: impl WeightSource + 'static,
    ) -> Result<Self> {
        description.validate()?;
        Ok(Self {
            description,
            weights: Box::new(weights),
            outline: OnceLock::new(),
            loaded: Mutex::default(),
            loading: Mutex::default(),
        })
    }

    /// The model that a resolver returned.
    ///
    /// # Errors
    /// The reason, for a resolver of other models.
    pub fn downcast(model: Arc<dyn NamedModel>) -> Result<Arc<Self>, &'static str> {
        let model: Arc<dyn Any + Send + Sync> = model;
        model
            .downcast()
            .map_err(|_| "the model is no ONNX model, expected one")
    }

    /// The description of the model.
    pub const fn description(&self) -> &ModelDescription {
        &self.description
    }

    /// The model's files, if they still have the known digests.
    fn files(&self) -> Result<ModelFiles> {
        let files = self.weights.fetch()?;
        self.description.check(&files)?;
        Ok(files)
    }

    /// Adds the model's name to an error: a pipeline may run several models, and a gateway many.
    fn named(&self, error: &Error) -> Error {
        let text = format!("the model `{}`: {error}", self.description.name);
        Error::new(error.kind(), text)
    }

    /// Fetches and inspects the files if that was not done before. Does not load weights, since it is not known which layers
    /// will run.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn prepare(&self) -> Result<()> {
        self.loaded().map(drop).map_err(|error| self.named(&error))
    }

    /// Whether weights are in memory.
    pub fn is_loaded(&self) -> bool {
        self.memory_bytes() > 0
    }

    /// Whether weights are in memory, or can be read without a request to another host.
    pub fn is_local(&self) -> bool {
        self.is_loaded() || self.weights.is_local()
    }

    /// Bytes of memory that the weights occupy, in all copies that run in parallel; 0 if they are not loaded, or are still
    /// being loaded.
    pub fn memory_bytes(&self) -> u64 {
        let loaded = self.loaded.lock().clone();
        loaded.map_or(0, |loaded| loaded.memory_bytes() as u64)
    }

    /// Frees the weights. The next run loads them again.
    pub fn release(&self) {
        self.loaded.lock().take();
    }

    /// The index of the last cut point, the output.
    pub fn end(&self) -> usize {
        self.description.cut_points.len() - 1
    }

    /// Name and shape of the tensor at a boundary.
    pub fn tensor(&self, boundary: Boundary) -> (&str, &[usize]) {
        self.description.tensor(boundary)
    }

    /// The runtime that runs the model.
    ///
    /// # Errors
    /// [`ModelRuntime`](pushdown_core::ErrorKind::ModelRuntime) with the reason why no runtime is available.
    pub fn runtime(&self) -> Result<Runtime> {
        self.weights.runtime()
    }

    /// The execution provider of the runtime; the CPU if no runtime is available.
    pub fn provider(&self) -> Provider {
        self.runtime()
            .map_or_else(|_none| Provider::default(), |runtime| runtime.provider())
    }

    /// How the layers between two boundaries share the CPU cores.
    pub fn concurrency(&self, from: Boundary, to: usize) -> Concurrency {
        let weight_bytes = LayerRange { from, to }.weight_bytes(&self.description.cut_points);
        let single = Concurrency { runs: 1, threads: 1 };
        self.runtime()
            .map_or(single, |runtime| runtime.concurrency(weight_bytes))
    }

    /// Loads the layers between two boundaries into memory. [`run`](Self::run) does so when needed. A caller that measures
    /// run times calls this first, so that loading, seconds for large weights, does not count as the cost of a sample.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn load_layers(&self, from: Boundary, to: usize) -> Result<()> {
        let load = |loaded: Arc<LoadedModel>| loaded.load(LayerRange { from, to }, || self.files());
        self.loaded().and_then(load).map_err(|error| self.named(&error))
    }

    /// Expected CPU time to load the layers between two boundaries on this host, extrapolated from the last load; `None`
    /// before the first one.
    pub fn expected_load_time(&self, from: Boundary, to: usize) -> Option<Duration> {
        let loaded = self.loaded.lock().clone();
        loaded?.expected_load_time(LayerRange { from, to })
    }

    /// Runs the layers between two boundaries. `batch` has one value of the first boundary per sample.
    ///
    /// The values of a batch equal those of single runs to within `1e-5` of the largest element.
    ///
    /// # Errors
    /// [`Unsuitable`](pushdown_core::ErrorKind::Unsuitable) for a value of another type or shape;
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) if the weights are unavailable, or ONNX Runtime fails.
    pub fn run(&self, from: Boundary, to: usize, batch: &[Tensor]) -> Result<Vec<Tensor>> {
        let run = |loaded: Arc<LoadedModel>| loaded.run(LayerRange { from, to }, batch, || self.files());
        self.loaded().and_then(run).map_err(|error| self.named(&error))
    }

    /// The inspected model, of which layers can be loaded. Concurrent callers wait for one inspection.
    fn loaded(&self) -> Result<Arc<LoadedModel>> {
        let loaded = || self.loaded.lock().clone();
        if let Some(loaded) = loaded() {
            return Ok(loaded);
        }
        let _loading = self.loading.lock();
        if let Some(loaded) = loaded() {
            return Ok(loaded);
        }
        let loaded = LoadedModel::new(self.outline()?, self.weights.runtime()?);
        Ok(Arc::clone(self.loaded.lock().insert(Arc::new(loaded))))
    }

    /// The result of the inspection, from before if there is one.
    fn outline(&self) -> Result<Arc<Outline>> {
        if let Some(outline) = self.outline.get() {
            return Ok(Arc::clone(outline));
        }
        if !self.weights.is_local() {
            // Fetches over the network before taking the lock, so that no other model waits for the link.
            drop(self.weights.fetch()?);
        }
        let _lock = lock_loading();
        let files = self.files()?;
        let (outline, _) = Outline::inspect(&self.weights.runtime()?, &files)?;
        Ok(Arc::clone(self.outline.get_or_init(|| Arc::new(outline))))
    }
}

impl NamedModel for Model {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn is_batched(&self) -> bool {
        self.description.batched
    }

    fn digest(&self) -> &str {
        &self.description.digest
    }

    fn bytes(&self) -> u64 {
        self.description.bytes
    }

    fn is_local(&self) -> bool {
        self.is_local()
    }

    fn download(&self, pause: &dyn Fn(Duration) -> bool) -> Result<()> {
        self.weights.download(pause).map_err(|error| self.named(&error))
    }

    fn is_loaded(&self) -> bool {
        self.is_loaded()
    }

    fn prepare(&self) -> Result<()> {
        self.prepare()
    }

    fn runtime_identity(&self) -> Result<RuntimeIdentity> {
        self.runtime().map(|runtime| runtime.identity())
    }

    fn normalization(&self) -> Option<Normalization> {
        self.description.card.as_ref()?.normalization()
    }
}

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.description.digest == other.description.digest
    }
}

#[cfg(test)]
mod tests;
