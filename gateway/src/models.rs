//! The models that pipelines may name: looked at after start, described to readers, kept in memory while they are used.

use std::{fs, num::NonZeroUsize, sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::TryStreamExt as _;
use http::{HeaderValue, Method, Response, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use pushdown::{
    Step,
    step::model::{Model, ModelFolder, ModelResolver, NoModels, Provider, Runtime},
};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::io::ReaderStream;
use tracing::{info, warn};

use crate::{
    body::{self, Body},
    config::Models,
    error::{Error, ErrorKind, Result},
    s3::request::MODELS_PATH,
};

/// A folder of models, or none. Clones share it.
#[derive(Debug, Clone)]
pub struct ModelRegistry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Where they are; `None` where no models are served.
    models: Option<Models>,
    /// `None` until they have been looked at.
    folder: watch::Sender<Option<Arc<ModelFolder>>>,
    /// Models whose weights are in memory, the last one used at the end.
    warm: Mutex<Vec<Arc<Model>>>,
    /// Bytes of weights that are kept.
    budget: u64,
}

impl ModelRegistry {
    /// The models of a folder that is there, of which nothing is known yet. Weights of up to `budget` bytes stay in
    /// memory.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn new(models: Option<Models>, budget: u64) -> anyhow::Result<Self> {
        if let Some(models) = &models {
            fs::read_dir(&models.folder).with_context(|| unreadable(models))?;
        }
        Ok(Self(Arc::new(Inner {
            models,
            folder: watch::Sender::new(None),
            warm: Mutex::default(),
            budget,
        })))
    }

    /// Looks at every model of the folder, and says in the log what can be used: a second or more for a large one,
    /// in which everything else is served. Each run takes up to `threads` threads.
    ///
    /// # Errors
    /// When the folder cannot be read any more.
    #[expect(
        clippy::disallowed_methods,
        reason = "once, and the CPU pool serves requests meanwhile"
    )]
    pub async fn look(self, threads: NonZeroUsize) -> anyhow::Result<()> {
        if let Some(models) = self.0.models.clone() {
            let folder = tokio::task::spawn_blocking(move || look(&models, threads)).await??;
            self.0.folder.send_replace(Some(Arc::new(folder)));
        }
        Ok(())
    }

    /// Whether models can be named: all have been looked at, or there are none.
    pub fn are_ready(&self) -> bool {
        self.0.models.is_none() || self.0.folder.borrow().is_some()
    }

    /// Waits until models can be named.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] when that takes longer than `wait`.
    pub async fn ready(&self, wait: Duration) -> Result<()> {
        if self.are_ready() {
            return Ok(());
        }
        let mut folder = self.0.folder.subscribe();
        let looked_at = tokio::time::timeout(wait, folder.wait_for(Option::is_some)).await;
        let looked_at = looked_at.map(|looked_at| looked_at.is_ok());
        match looked_at {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(Error::new(
                ErrorKind::SlowDown,
                "the gateway is still looking at its models; try again later",
            )
            .with_retry_after(Duration::from_secs(1))),
        }
    }

    /// The models that can be used.
    pub fn all(&self) -> Vec<Arc<Model>> {
        let folder = self.folder();
        folder.iter().flat_map(|folder| folder.iter()).cloned().collect()
    }

    fn folder(&self) -> Option<Arc<ModelFolder>> {
        self.0.folder.borrow().clone()
    }

    /// Notes that the models of `steps` are about to run, and lets the weights of those go that were not used for
    /// longest, where all together are over the budget.
    pub fn touch(&self, steps: &[Step]) {
        for used in steps.iter().flat_map(Step::models) {
            let mut warm = self.0.warm.lock();
            warm.retain(|model| model != used);
            warm.push(Arc::clone(used));
            // One that is about to be loaded holds nothing yet.
            let held = |model: &Arc<Model>| model.memory_bytes().max(model.description().bytes);
            let mut bytes: u64 = warm.iter().map(held).sum();
            while bytes > self.0.budget && warm.len() > 1 {
                let coldest = warm.remove(0);
                bytes = bytes.saturating_sub(held(&coldest));
                coldest.release();
            }
        }
    }

    /// Answers a request for the list of models, for the ONNX file of one, or for a file of weights beside it.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotAllowed`] beside GET and HEAD, [`ErrorKind::NotFound`] for an unknown digest,
    /// [`ErrorKind::NotImplemented`] where weights are not served; as [`ready`](Self::ready).
    pub async fn answer(&self, parts: &Parts, wait: Duration) -> Result<Response<Body>> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Error::new(
                ErrorKind::MethodNotAllowed,
                "models are read by GET and HEAD; they are added in the gateway's folder",
            ));
        }
        self.ready(wait).await?;
        let rest = parts.uri.path().strip_prefix(MODELS_PATH).unwrap_or_default();
        let response = match rest.strip_prefix('/').filter(|digest| !digest.is_empty()) {
            None => self.list()?,
            Some(digest) => self.weights(digest).await?,
        };
        let head = parts.method == Method::HEAD;
        Ok(if head {
            response.map(|_| body::empty())
        } else {
            response
        })
    }

    fn list(&self) -> Result<Response<Body>> {
        let models = self.all();
        let models: Vec<_> = models.iter().map(|model| model.description()).collect();
        let json = serde_json::to_vec(&json!({ "models": models })).map_err(|error| {
            Error::new(ErrorKind::Internal, "the list of models has no JSON").with_source(error)
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
                "this gateway keeps the weights of its models to itself",
            ));
        }
        let unreadable = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "the model's file cannot be read").with_source(error)
        };
        let (folder, of) = (self.folder(), digest.to_owned());
        #[expect(
            clippy::disallowed_methods,
            reason = "opens a file, as `tokio::fs` does, and computes nothing"
        )]
        let opening = tokio::task::spawn_blocking(move || folder.and_then(|folder| folder.open_file(&of)));
        let opened = opening.await.map_err(|error| unreadable(error.into()))?;
        let file = opened.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!("no model here has the digest `{digest}`, nor a file of its weights"),
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

impl ModelResolver for ModelRegistry {
    fn find(&self, name: &str) -> pushdown::Result<Arc<Model>> {
        match self.folder() {
            Some(folder) => folder.find(name),
            None => NoModels.find(name),
        }
    }
}

fn look(models: &Models, threads: NonZeroUsize) -> anyhow::Result<ModelFolder> {
    let library = models.onnxruntime.display();
    let mut runtime = Runtime::load(&models.onnxruntime, threads.get());
    match &runtime {
        Ok(runtime) => info!(%library, version = runtime.identity().onnxruntime, "ONNX Runtime"),
        Err(error) => warn!("{error}; `model` steps are refused, everything else works"),
    }
    if let Ok(on_cpu) = runtime {
        runtime = Ok(on(models.execution_provider, on_cpu));
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
                "model"
            );
        }
        Err(error) => warn!(name, "the model cannot be used: {error}"),
    });
    Ok(folder)
}

fn unreadable(models: &Models) -> String {
    format!("models: the folder {} cannot be read", models.folder.display())
}

/// Tries a provider, once. Where it cannot be used models run all the same: values are alike, only slower to come.
fn on(provider: Provider, on_cpu: Runtime) -> Runtime {
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
    async fn whoever_names_a_model_waits_until_all_have_been_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("broken.onnx"), b"no model").unwrap();
        let models = ModelRegistry::new(Some(models(folder.path().to_owned())), 1 << 20).unwrap();
        assert!(!models.are_ready());
        let refused = models.ready(Duration::from_millis(1)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SlowDown);
        let waiting = models.clone();
        let waiting = tokio::spawn(async move { waiting.ready(Duration::from_mins(1)).await });
        models.clone().look(NonZeroUsize::MIN).await.unwrap();
        waiting.await.unwrap().unwrap();
        assert!(models.are_ready() && models.all().is_empty());
        let error = models.find("broken").unwrap_err().to_string();
        assert!(error.contains("the model `broken` cannot be used"), "{error}");
    }

    #[tokio::test]
    async fn a_folder_that_is_missing_is_told_at_once() {
        let error = ModelRegistry::new(Some(models("/nowhere".into())), 1 << 20).unwrap_err();
        assert!(error.to_string().contains("/nowhere"), "{error}");
        let none = ModelRegistry::new(None, 0).unwrap();
        none.ready(Duration::ZERO).await.unwrap();
        assert!(none.find("any").is_err());
    }
}
