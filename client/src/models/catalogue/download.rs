//! Downloads the files of a gateway's models by digest, and stores them in the user's cache.

mod parts;

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
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
    store::{GatewayRoute, Replica, Store},
    transport::Answer,
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
    /// Whether the cache was found to have all files.
    is_cached: AtomicBool,
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
        self.fetch_missing()
    }

    fn download(&self, pause: &dyn Fn(Duration) -> bool) -> pushdown::Result<()> {
        let unavailable =
            |error: Error| pushdown::Error::new(pushdown::ErrorKind::InvalidModel, error.to_string());
        self.download_in_parts(pause).map_err(unavailable)
    }

    fn is_local(&self) -> bool {
        // Asked for each chunk of an answer.
        if self.is_cached.load(Relaxed) || self.uncached.get().is_some() {
            return true;
        }
        let mut paths = self
            .files()
            .map(|(digest, extension, _)| self.cache_path(digest, extension));
        let is_cached = paths.all(|path| path.is_some_and(|file| file.is_file()));
        self.is_cached.store(is_cached, Relaxed);
        is_cached
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
            is_cached: AtomicBool::new(false),
        }
    }

    /// Digest, extension in the cache and maximum bytes of each of the model's files, the ONNX file last.
    fn files(&self) -> impl Iterator<Item = (&str, &'static str, u64)> {
        let data = self.description.files.iter();
        let model = (self.description.digest.as_str(), ONNX, MAX_MODEL_BYTES as u64);
        data.map(|file| (file.digest.as_str(), DATA, file.bytes))
            .chain([model])
    }

    /// The path of a file in the user's cache.
    fn cache_path(&self, digest: &str, extension: &str) -> Option<PathBuf> {
        Some(self.store.model_cache()?.join(format!("{digest}.{extension}")))
    }

    /// The files, if the cache has all of them.
    fn cached(&self) -> Option<ModelFiles> {
        let mut files = self.cached_data()?;
        files.model = self.read_cached(&self.description.digest, ONNX)?;
        Some(files)
    }

    /// The data files, if the cache has all of them.
    fn cached_data(&self) -> Option<ModelFiles> {
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            let bytes = self.read_cached(&file.digest, DATA)?;
            files.data.insert(file.name.clone(), bytes);
        }
        Some(files)
    }

    fn read_cached(&self, digest: &str, extension: &str) -> Option<Arc<[u8]>> {
        read_file(&self.cache_path(digest, extension)?).ok()
    }

    /// All files, from the cache or from the gateway.
    fn fetch_missing(&self) -> pushdown::Result<ModelFiles> {
        let mut all_cached = true;
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            let check = |bytes: &Arc<[u8]>| file.check(bytes);
            let (bytes, cached) = self.file((&file.digest, DATA), file.bytes, check)?;
            files.data.insert(file.name.clone(), bytes);
            all_cached &= cached;
        }
        let digest = &self.description.digest;
        let check = |bytes: &Arc<[u8]>| {
            files.model = Arc::clone(bytes);
            self.description.check(&files)
        };
        let (_, cached) = self.file((digest, ONNX), MAX_MODEL_BYTES as u64, check)?;
        if !(all_cached && cached) {
            // If another thread was first, its files are the same.
            drop(self.uncached.set(files.clone()));
        }
        Ok(files)
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
        let whole = self.runtime.block_on(self.whole_file(digest, max_bytes));
        let bytes = whole.map_err(unavailable)?;
        let bytes: Arc<[u8]> = Arc::from(&*bytes);
        check(&bytes)?;
        let cached = path.is_some_and(|file| match write_file(&file, &bytes) {
            Ok(()) => {
                // What arrived of it in parts is of no use any more.
                drop(fs::remove_file(parts::draft_of(&file)));
                true
            }
            Err(error) => {
                tracing::info!(%error, file = %file.display(), "cannot cache the weights");
                false
            }
        });
        Ok((bytes, cached))
    }

    /// A file at the gateway.
    async fn whole_file(&self, digest: &str, max_bytes: u64) -> Result<Bytes> {
        let ModelDescription { name, bytes, .. } = &self.description;
        tracing::info!(name, digest, bytes, "downloading the weights of a model");
        let answer = self.request(digest, HeaderMap::new()).await?;
        let body = answer.collect(max_bytes).await?;
        body.ok_or_else(|| {
            Error::protocol(format!(
                "a file of the model `{name}` has more than {max_bytes} bytes"
            ))
        })
    }

    async fn request(&self, digest: &str, headers: HeaderMap) -> Result<Answer> {
        request(&self.store, &self.description.name, digest, headers).await
    }
}

/// The answer with a file of the model `name`, or with a part of it.
async fn request(store: &Store, name: &str, digest: &str, headers: HeaderMap) -> Result<Answer> {
    let target = store.own_target(&format!("{MODELS_PATH}/{digest}")).await;
    let (store, target) = (&store, &target);
    let request = |replica: Arc<Replica>| {
        let headers = headers.clone();
        async move {
            let sent = store.send_to_replica(&replica, Method::GET, target, headers, Bytes::new());
            sent.await
        }
    };
    let answer = store.at_replica(GatewayRoute::ANY, request).await?;
    if matches!(answer.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
        return Ok(answer);
    }
    let what = format!("the weights of the model `{name}`");
    Err(answer.refusal().await.into_error(&what))
}

/// Writes a file that is complete as soon as it exists, in a folder that is created if need be.
pub(super) fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    write_atomically(file, |mut draft| {
        draft.write_all(bytes)?;
        Ok(draft)
    })
}
