//! The models that pipelines can use: inspected after start, described to clients, and kept in memory while in use.

use std::{fs, num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::TryStreamExt as _;
use http::{HeaderValue, Method, Response, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use pushdown::{
    Step,
    pipeline::{NamedModel, NoModels, Resolver},
    step::model::{Model, ModelFolder, Provider, Runtime},
};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::io::ReaderStream;
use tracing::{info, warn};

use crate::{
    body::{self, Body},
    config::Models,
    error::{Error, ErrorKind, Result},
    routes::MODELS_PATH,
};

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
    pub fn all(&self) -> Vec<Arc<Model>> {
        let folder = self.folder();
        folder.iter().flat_map(|folder| folder.iter()).cloned().collect()
    }

    fn folder(&self) -> Option<Arc<ModelFolder>> {
        self.0.folder.borrow().clone()
    }

    /// Marks the models of `steps` as used, and evicts the weights of the least recently used models if all weights
    /// together exceed the budget.
    pub fn mark_used(&self, steps: &[Step]) {
        for used in steps.iter().flat_map(Step::models) {
            let mut warm = self.0.warm.lock();
            warm.retain(|model| model != used);
            warm.push(Arc::clone(used));
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

    /// Answers a request for the list of models, for a model's ONNX file, or for a file of external weights.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotAllowed`] for other methods than GET and HEAD; [`ErrorKind::NotFound`] for an unknown digest;
    /// [`ErrorKind::NotImplemented`] if weights are not served; and those of
    /// [`wait_until_ready`](Self::wait_until_ready).
    pub async fn answer(&self, parts: &Parts, wait: Duration) -> Result<Response<Body>> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Error::new(
                ErrorKind::MethodNotAllowed,
                "invalid method for models: expected GET or HEAD; to add a model, put it into the gateway's folder",
            ));
        }
        self.wait_until_ready(wait).await?;
        let rest = parts.uri.path().strip_prefix(MODELS_PATH).unwrap_or_default();
        let response = match rest.strip_prefix('/').filter(|digest| !digest.is_empty()) {
            None => self.list()?,
            Some(digest) => self.weights(digest).await?,
        };
        Ok(if parts.method == Method::HEAD {
            response.map(|_| body::empty())
        } else {
            response
        })
    }

    fn list(&self) -> Result<Response<Body>> {
        let models = self.all();
        let models: Vec<_> = models.iter().map(|model| model.description()).collect();
        let json = serde_json::to_vec(&json!({ "models": models })).map_err(|error| {
            Error::new(ErrorKind::Internal, "cannot write the list of models as JSON").with_source(error)
        })?;
        Ok(respond(
            "application/json",
            json.len() as u64,
            None,
            body::full(json),
        ))
    }

    async fn weights(&self, digest: &str) -> Result<Response<Body>> {
        if self.0.models.as_ref().is_some_and(|models| !models.serve_weights) {
            return Err(Error::new(
                ErrorKind::NotImplemented,
                "this gateway does not serve the weights of its models (serve-weights is false)",
            ));
        }
        let unreadable = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "cannot read the model's file").with_source(error)
        };
        let (folder, wanted) = (self.folder(), digest.to_owned());
        #[expect(
            clippy::disallowed_methods,
            reason = "opens a file, as `tokio::fs` does, and computes nothing"
        )]
        let opening =
            tokio::task::spawn_blocking(move || folder.and_then(|folder| folder.open_file(&wanted)));
        let opened = opening.await.map_err(|error| unreadable(error.into()))?;
        let file = opened.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("unknown digest `{digest}`: no model and no weight file of this gateway has it"),
            )
        })?;
        let file = tokio::fs::File::from_std(file.map_err(unreadable)?);
        let length = file.metadata().await.map_err(unreadable)?.len();
        let pieces = ReaderStream::with_capacity(file, body::BUFFER);
        let stream = StreamBody::new(pieces.map_ok(Frame::data).map_err(Into::into));
        Ok(respond(
            "application/octet-stream",
            length,
            Some(digest),
            stream.boxed_unsync(),
        ))
    }
}

impl Resolver for ModelRegistry {
    fn resolve(&self, name: &str) -> pushdown::Result<Arc<dyn NamedModel>> {
        match self.folder() {
            Some(folder) => folder.resolve(name),
            None => NoModels.resolve(name),
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

fn respond(content_type: &'static str, length: u64, digest: Option<&str>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(etag) = digest.and_then(|digest| HeaderValue::from_str(&format!("\"{digest}\"")).ok()) {
        headers.insert(header::ETAG, etag);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn models(folder: PathBuf) -> Models {
        Models {
            folder,
            onnxruntime: PathBuf::from("/nowhere/libonnxruntime.so"),
            serve_weights: true,
            execution_provider: Provider::Cpu,
        }
    }

    #[tokio::test]
    async fn requests_for_a_model_wait_until_all_models_are_inspected() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("broken.onnx"), b"no model").unwrap();
        let models = ModelRegistry::new(Some(models(folder.path().to_owned())), 1 << 20).unwrap();
        assert!(!models.is_ready());
        let refused = models
            .wait_until_ready(Duration::from_millis(1))
            .await
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SlowDown);
        let waiting = models.clone();
        let waiting = tokio::spawn(async move { waiting.wait_until_ready(Duration::from_mins(1)).await });
        models.clone().load(NonZeroUsize::MIN).await.unwrap();
        waiting.await.unwrap().unwrap();
        assert!(models.is_ready() && models.all().is_empty());
        let error = models.resolve("broken").unwrap_err().to_string();
        assert!(error.contains("the model `broken` cannot be used"), "{error}");
    }

    #[tokio::test]
    async fn a_missing_folder_is_an_error_at_start() {
        let error = ModelRegistry::new(Some(models("/nowhere".into())), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
        let none = ModelRegistry::new(None, 0).unwrap();
        none.wait_until_ready(Duration::ZERO).await.unwrap();
        assert!(none.resolve("any").is_err());
    }
}
