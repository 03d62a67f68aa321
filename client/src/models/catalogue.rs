//! The models of a gateway, whose weights are downloaded when layers run on this host, and those of a folder.

mod download;
mod saved_list;

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use pushdown::{
    Pipeline,
    pipeline::{NamedModel, Resolver},
    step::{
        model::{Model, ModelDescription, ModelFolder, Runtime},
        nearest,
    },
    wire::header::MODELS_PATH,
};
use serde::Deserialize;
use tokio::runtime::Handle;

use self::download::Download;
use crate::{
    error::{Error, ErrorKind, Result},
    store::{GatewayRoute, Replica, Store},
};

/// The most bytes of a list of models.
const LIST_BYTES: u64 = 64 << 20;
/// The most model names in an error.
const NEAREST: usize = 8;

/// The models that a gateway serves.
#[derive(Debug)]
struct GatewayModels {
    models: BTreeMap<String, Arc<Model>>,
    endpoint: String,
}

#[derive(Deserialize)]
struct List {
    models: Vec<ModelDescription>,
}

impl Store {
    /// Parses a pipeline. Its models are those of the gateway at this endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Pipeline`] with the position; [`ErrorKind::NotAGateway`] if the pipeline names a model and the
    /// endpoint serves no models.
    pub async fn pipeline(&self, text: &str) -> Result<Pipeline> {
        match Pipeline::parse(text) {
            Err(error) if error.kind() == pushdown::ErrorKind::ModelRuntime => {
                Ok(Pipeline::parse_with(text, &self.models().await?)?)
            }
            parsed => Ok(parsed?),
        }
    }

    /// The target of a route of the gateway, signed if there are credentials: in re-sign mode the gateway serves nobody else.
    async fn own_target(&self, path: &str) -> String {
        match self.gateway_presigner().await {
            Ok(Some(presigner)) => presigner.target(path),
            Ok(None) | Err(_) => path.to_owned(),
        }
    }

    async fn models(&self) -> Result<GatewayModels> {
        if !self.has_gateway() {
            let text = format!(
                "{} serves no models: use a pushdown gateway as the endpoint, or set a folder of models",
                self.gateway_name()
            );
            return Err(Error::new(ErrorKind::NotAGateway, text));
        }
        let request = |replica: Arc<Replica>| async move { self.request_models(&replica).await };
        let requested = self
            .at_replica(
                GatewayRoute::ANY.dispensable_if(self.has_gateway_beside()),
                request,
            )
            .await;
        let list = match requested {
            Ok(list) => list,
            Err(error) if error.is_retryable() && self.has_gateway_beside() => {
                let saved = self.saved_models();
                let saved = saved.and_then(|list| serde_json::from_slice(&list).ok());
                saved.ok_or_else(|| {
                    let text =
                        format!("{error}; the pipeline names a model, which only the gateway describes");
                    Error::new(error.kind(), text).with_source(error)
                })?
            }
            Err(error) => return Err(error),
        };
        let List { models } = list;
        let models = models.into_iter().map(|description| {
            let weights = Download::new(self.clone(), description.clone(), Handle::current());
            let name = description.name.clone();
            Ok((name, Arc::new(Model::from_description(description, weights)?)))
        });
        Ok(GatewayModels {
            models: models.collect::<Result<_>>()?,
            endpoint: self.gateway_name(),
        })
    }

    /// Asks the gateway for its models, and saves the list.
    async fn request_models(&self, replica: &Replica) -> Result<List> {
        let target = self.own_target(MODELS_PATH).await;
        let answer = self
            .send_to_replica(replica, Method::GET, &target, HeaderMap::new(), Bytes::new())
            .await?;
        let status = answer.status;
        if status.is_server_error() && self.has_gateway_beside() {
            return Err(answer.refusal().await.into_error("the list of models"));
        }
        let body = answer.collect(LIST_BYTES).await?;
        let list = body.filter(|_| status == StatusCode::OK).and_then(|body| {
            let list = serde_json::from_slice(&body).ok()?;
            self.save_models(&body);
            Some(list)
        });
        list.ok_or_else(|| {
            let text = format!(
                "{} serves no models ({status}): use a pushdown gateway as the endpoint, or set a folder of models",
                self.gateway_name()
            );
            Error::new(ErrorKind::NotAGateway, text)
        })
    }
}

/// Parses a pipeline whose models are those of a folder.
///
/// # Errors
/// [`ErrorKind::Pipeline`] with the position; [`ErrorKind::Config`] if the folder cannot be read.
pub fn parse_with_model_folder(text: &str, folder: &Path) -> Result<Pipeline> {
    let unreadable = |error: io::Error| {
        let text = format!("cannot read the folder of models {}", folder.display());
        Error::config(text).with_source(error)
    };
    let folder = ModelFolder::open(folder, host_runtime()).map_err(unreadable)?;
    Ok(Pipeline::parse_with(text, &folder)?)
}

impl Resolver for GatewayModels {
    fn resolve(&self, name: &str) -> pushdown::Result<Arc<dyn NamedModel>> {
        let model = self.models.get(name).cloned().ok_or_else(|| {
            let mut known = nearest(self.models.keys().map(String::as_str), name);
            known.truncate(NEAREST);
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            pushdown::Error::new(
                pushdown::ErrorKind::InvalidPipeline,
                format!(
                    "unknown model `{name}`: expected one of those that {} serves: {known}",
                    self.endpoint
                ),
            )
        })?;
        Ok(model)
    }
}

/// ONNX Runtime of this host, loaded once: the library that `ORT_DYLIB_PATH` names, or the system's.
fn host_runtime() -> pushdown::Result<Runtime> {
    static HOST: OnceLock<pushdown::Result<Runtime>> = OnceLock::new();
    HOST.get_or_init(|| {
        let library = std::env::var_os("ORT_DYLIB_PATH").unwrap_or_else(|| "libonnxruntime.so".into());
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Runtime::load(Path::new(&library), threads)
    })
    .clone()
}
