//! Downloads the files of a gateway's models by digest, and stores them in the user's cache.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use pushdown::{
    step::model::{MAX_MODEL_BYTES, ModelDescription, ModelFiles, Runtime, WeightSource, read_file},
    wire::header::MODELS_PATH,
};
use tokio::runtime::Handle;

use super::host_runtime;
use crate::{
    atomic_write::write_atomically,
    error::{Error, Result},
    store::Store,
};

/// Extension of ONNX files in the cache.
const ONNX: &str = "onnx";
/// Extension of weight files in the cache.
const DATA: &str = "data";

/// The files of a model at a gateway, cached on this host after the first download.
#[derive(Debug)]
pub(super) struct Download {
    store: Store,
    description: ModelDescription,
    runtime: Handle,
    /// The files, if the cache cannot store them: `fetch` is called more than once.
    uncached: OnceLock<ModelFiles>,
}

impl WeightSource for Download {
    fn fetch(&self) -> pushdown::Result<ModelFiles> {
        if let Some(files) = self.uncached.get() {
            return Ok(files.clone());
        }
        if let Some(files) = self.cached()
            && self.description.check(&files).is_ok()
        {
            return Ok(files);
        }
        let mut all_cached = true;
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            let check = |bytes: &Arc<[u8]>| file.check(bytes);
            let (bytes, cached) = self.file((file.digest.as_str(), DATA), file.bytes, check)?;
            files.data.insert(file.name.clone(), bytes);
            all_cached &= cached;
        }
        let check = |bytes: &Arc<[u8]>| {
            files.model = Arc::clone(bytes);
            self.description.check(&files)
        };
        let (_, cached) = self.file(
            (self.description.digest.as_str(), ONNX),
            MAX_MODEL_BYTES as u64,
            check,
        )?;
        if !(all_cached && cached) {
            // If another thread was first, its files are the same.
            drop(self.uncached.set(files.clone()));
        }
        Ok(files)
    }

    fn is_local(&self) -> bool {
        let mut paths = self
            .names()
            .map(|(digest, extension)| self.cache_path(digest, extension));
        self.uncached.get().is_some() || paths.all(|path| path.is_some_and(|file| file.is_file()))
    }

    fn runtime(&self) -> pushdown::Result<Runtime> {
        host_runtime()
    }
}

impl Download {
    /// The files of a model that a gateway has described.
    pub(super) const fn new(store: Store, description: ModelDescription, runtime: Handle) -> Self {
        Self {
            store,
            description,
            runtime,
            uncached: OnceLock::new(),
        }
    }

    /// Digests and kinds of the model's files.
    fn names(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let data = self.description.files.iter();
        data.map(|file| (file.digest.as_str(), DATA))
            .chain([(self.description.digest.as_str(), ONNX)])
    }

    /// The path of a file in the user's cache.
    fn cache_path(&self, digest: &str, extension: &str) -> Option<PathBuf> {
        Some(self.store.model_cache()?.join(format!("{digest}.{extension}")))
    }

    /// The files, if the cache has all of them.
    fn cached(&self) -> Option<ModelFiles> {
        let read = |digest: &str, extension| read_file(&self.cache_path(digest, extension)?).ok();
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            files.data.insert(file.name.clone(), read(&file.digest, DATA)?);
        }
        files.model = read(&self.description.digest, ONNX)?;
        Some(files)
    }

    /// A file of the model that passes `check`, from the cache or the gateway, and whether it is in the cache.
    fn file(
        &self,
        (digest, extension): (&str, &str),
        max_bytes: u64,
        mut check: impl FnMut(&Arc<[u8]>) -> pushdown::Result<()>,
    ) -> pushdown::Result<(Arc<[u8]>, bool)> {
        let path = self.cache_path(digest, extension);
        if let Some(bytes) = path.as_ref().and_then(|file| read_file(file).ok())
            && check(&bytes).is_ok()
        {
            return Ok((bytes, true));
        }
        let unavailable =
            |error: Error| pushdown::Error::new(pushdown::ErrorKind::InvalidModel, error.to_string());
        let download = self.download(digest, max_bytes);
        let bytes = self.runtime.block_on(download).map_err(unavailable)?;
        let bytes: Arc<[u8]> = Arc::from(&*bytes);
        check(&bytes)?;
        let cached = path.is_some_and(|file| match write_file(&file, &bytes) {
            Ok(()) => true,
            Err(error) => {
                tracing::info!(%error, file = %file.display(), "cannot cache the weights");
                false
            }
        });
        Ok((bytes, cached))
    }

    async fn download(&self, digest: &str, max_bytes: u64) -> Result<Bytes> {
        let ModelDescription { name, bytes, .. } = &self.description;
        tracing::info!(name, digest, bytes, "downloading the weights of a model");
        let target = self.store.own_target(&format!("{MODELS_PATH}/{digest}")).await;
        let answer = self
            .store
            .send_to_gateway(Method::GET, &target, HeaderMap::new(), Bytes::new())
            .await?;
        if answer.status != StatusCode::OK {
            let refusal = answer.refusal().await;
            return Err(refusal.into_error(&format!("the weights of the model `{name}`")));
        }
        let body = answer.collect(max_bytes).await?;
        body.ok_or_else(|| {
            Error::protocol(format!(
                "a file of the model `{name}` has more than {max_bytes} bytes"
            ))
        })
    }
}

fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    write_atomically(file, |mut draft| {
        draft.write_all(bytes)?;
        Ok(draft)
    })
}
