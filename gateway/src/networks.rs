//! The networks that pipelines may name: opened at start, described to readers, kept in memory while they are used.

use std::{num::NonZeroUsize, sync::Arc};

use anyhow::Context as _;
use futures::TryStreamExt as _;
use http::{HeaderValue, Method, Response, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use parking_lot::Mutex;
use pushdown::{
    Step,
    step::model::{Folder, Network, Networks as Lookup, NoNetworks, Provider, Runtime},
};
use serde_json::json;
use tokio_util::io::ReaderStream;
use tracing::{info, warn};

use crate::{
    body::{self, Body},
    compute::{CpuPool, Tenant},
    config::Models,
    error::{Error, ErrorKind, Result},
    s3::request::MODELS_PATH,
};

/// A folder of networks, or none. Clones share it.
#[derive(Debug, Clone)]
pub struct Networks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// `None` where no networks are served.
    folder: Option<Folder>,
    serve_weights: bool,
    /// Networks whose weights are in memory, the last one used at the end.
    warm: Mutex<Vec<Arc<Network>>>,
    /// Bytes of weights that are kept.
    budget: u64,
}

impl Networks {
    /// Looks at every network of the folder, and says in the log what can be used. Each run takes up to `threads`
    /// threads; weights of up to `budget` bytes stay in memory.
    pub async fn open(
        models: Option<&Models>,
        cpu: &CpuPool,
        threads: NonZeroUsize,
        budget: u64,
    ) -> anyhow::Result<Self> {
        let (folder, serve_weights) = match models {
            None => (None, false),
            Some(models) => {
                let serve_weights = models.serve_weights;
                let models = models.clone();
                let open = move || look(&models, threads);
                (Some(cpu.run(&Tenant::default(), open).await??), serve_weights)
            }
        };
        Ok(Self(Arc::new(Inner {
            folder,
            serve_weights,
            warm: Mutex::default(),
            budget,
        })))
    }

    /// The networks that can be used.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Network>> {
        self.0.folder.iter().flat_map(Folder::iter)
    }

    /// Notes that the networks of `steps` are about to run, and lets the weights of those go that were not used for
    /// longest, where all together are over the budget.
    pub fn touch(&self, steps: &[Step]) {
        for step in steps {
            let Step::Model(model) = step else { continue };
            let mut warm = self.0.warm.lock();
            warm.retain(|network| network != model.network());
            warm.push(Arc::clone(model.network()));
            let mut bytes: u64 = warm.iter().map(|network| network.description().bytes).sum();
            while bytes > self.0.budget && warm.len() > 1 {
                let coldest = warm.remove(0);
                bytes -= coldest.description().bytes;
                coldest.release();
            }
        }
    }

    /// Answers a request for the list of networks, or for the weights of one.
    ///
    /// # Errors
    /// [`ErrorKind::MethodNotAllowed`] beside GET and HEAD, [`ErrorKind::NotFound`] for an unknown digest,
    /// [`ErrorKind::NotImplemented`] where weights are not served.
    pub async fn answer(&self, parts: &Parts) -> Result<Response<Body>> {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return Err(Error::new(
                ErrorKind::MethodNotAllowed,
                "networks are read by GET and HEAD; they are added in the gateway's folder",
            ));
        }
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
        let models: Vec<_> = self.iter().map(|network| network.description()).collect();
        let json = serde_json::to_vec(&json!({ "models": models })).map_err(|error| {
            Error::new(ErrorKind::Internal, "the list of networks has no JSON").with_source(error)
        })?;
        Ok(respond(
            "application/json",
            json.len() as u64,
            None,
            body::full(json),
        ))
    }

    async fn weights(&self, digest: &str) -> Result<Response<Body>> {
        if !self.0.serve_weights {
            return Err(Error::new(
                ErrorKind::NotImplemented,
                "this gateway keeps the weights of its networks to itself",
            ));
        }
        let path = self
            .0
            .folder
            .as_ref()
            .and_then(|folder| folder.path(digest))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("no network here has the digest `{digest}`"),
                )
            })?;
        let unreadable = |error: std::io::Error| {
            Error::new(ErrorKind::Internal, "the network's file cannot be read").with_source(error)
        };
        let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
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

impl Lookup for Networks {
    fn find(&self, name: &str) -> pushdown::Result<Arc<Network>> {
        match &self.0.folder {
            Some(folder) => folder.find(name),
            None => NoNetworks.find(name),
        }
    }
}

fn look(models: &Models, threads: NonZeroUsize) -> anyhow::Result<Folder> {
    let library = models.onnxruntime.display();
    let mut runtime = Runtime::load(&models.onnxruntime, threads.get());
    match &runtime {
        Ok(_) => info!(%library, version = Runtime::version(), "ONNX Runtime"),
        Err(error) => warn!("{error}; `model` steps are refused, everything else works"),
    }
    if let Ok(on_cpu) = runtime {
        runtime = Ok(on(models.execution_provider, on_cpu));
    }
    let folder_name = models.folder.display();
    Folder::open(&models.folder, &runtime, |name, network| match network {
        Ok(network) => {
            let description = network.description();
            info!(
                name,
                digest = description.digest,
                cut_points = description.cut_points.len(),
                batched = description.batched,
                "network"
            );
        }
        Err(error) => warn!(name, "the network cannot be used: {error}"),
    })
    .with_context(|| format!("the folder {folder_name} cannot be read"))
}

/// Tries a provider, once. Where it cannot be used networks run all the same: values are alike, only slower to come.
fn on(provider: Provider, on_cpu: Runtime) -> Runtime {
    if provider == Provider::Cpu {
        return on_cpu;
    }
    match on_cpu.on(provider) {
        Ok(runtime) => {
            info!("networks run on {provider}");
            runtime
        }
        Err(error) => {
            warn!("{error}; networks run on the CPU");
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
