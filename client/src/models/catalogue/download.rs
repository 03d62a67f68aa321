//! Downloads the files of a gateway's models by digest, and stores them in the user's cache.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
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
    transport::Answer,
};

/// Extension of ONNX files in the cache.
const ONNX: &str = "onnx";
/// Extension of weight files in the cache.
const DATA: &str = "data";
/// Bytes that a download in parts asks for at once: on a thin link they delay a batch by little.
const PART_BYTES: u64 = 512 << 10;
/// What a failed part counts as: it is tried again 50 times later.
const RETRY_TIME: Duration = Duration::from_millis(600);
/// How long a look at the download of another process counts.
const LOOK_TIME: Duration = Duration::from_millis(100);

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
        self.files(&|digest, max_bytes| self.runtime.block_on(self.file(digest, max_bytes)))
    }

    fn download(&self, pause: &dyn Fn(Duration) -> bool) -> pushdown::Result<()> {
        // One process of a host downloads, and the others wait for its files.
        let folder = self.store.model_cache().and_then(open_folder);
        while !self.is_local() {
            let is_alone = folder.as_ref().is_none_or(|folder| folder.try_lock().is_ok());
            if is_alone {
                return self
                    .files(&|digest, max_bytes| self.file_in_parts(digest, max_bytes, pause))
                    .map(drop);
            }
            if !pause(LOOK_TIME) {
                break;
            }
        }
        Ok(())
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

    /// All files, from the cache, or from the gateway by `download`, which gets the digest of a file and the most bytes that it may have.
    fn files(&self, download: &dyn Fn(&str, u64) -> Result<Bytes>) -> pushdown::Result<ModelFiles> {
        let mut all_cached = true;
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            let check = |bytes: &Arc<[u8]>| file.check(bytes);
            let of_file = || download(&file.digest, file.bytes);
            let (bytes, cached) = self.cached_or((&file.digest, DATA), of_file, check)?;
            files.data.insert(file.name.clone(), bytes);
            all_cached &= cached;
        }
        let digest = &self.description.digest;
        let check = |bytes: &Arc<[u8]>| {
            files.model = Arc::clone(bytes);
            self.description.check(&files)
        };
        let of_model = || download(digest, MAX_MODEL_BYTES as u64);
        let (_, cached) = self.cached_or((digest, ONNX), of_model, check)?;
        if !(all_cached && cached) {
            // If another thread was first, its files are the same.
            drop(self.uncached.set(files.clone()));
        }
        Ok(files)
    }

    /// A file of the model that passes `check`, from the cache or by `download`, and whether it is in the cache.
    fn cached_or(
        &self,
        (digest, extension): (&str, &str),
        download: impl FnOnce() -> Result<Bytes>,
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
        let bytes = download().map_err(unavailable)?;
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

    /// A file at the gateway.
    async fn file(&self, digest: &str, max_bytes: u64) -> Result<Bytes> {
        let ModelDescription { name, bytes, .. } = &self.description;
        tracing::info!(name, digest, bytes, "downloading the weights of a model");
        let answer = self.request(digest, HeaderMap::new()).await?;
        let body = answer.collect(max_bytes).await?;
        body.ok_or_else(|| self.too_long(max_bytes))
    }

    /// The same, with pauses. A part that fails is requested again later.
    fn file_in_parts(&self, digest: &str, max_bytes: u64, pause: &dyn Fn(Duration) -> bool) -> Result<Bytes> {
        let mut file = BytesMut::new();
        loop {
            let began = Instant::now();
            let part = self.runtime.block_on(self.part(digest, file.len() as u64));
            let time = match part {
                Ok((part, length)) => {
                    file.extend_from_slice(&part);
                    if length > max_bytes {
                        return Err(self.too_long(max_bytes));
                    }
                    if file.len() as u64 >= length {
                        return Ok(file.freeze());
                    }
                    began.elapsed()
                }
                Err(error) if error.is_retryable() => RETRY_TIME,
                Err(error) => return Err(error),
            };
            if !pause(time) {
                return Err(Error::config("the reader that needs the weights has ended"));
            }
        }
    }

    /// The part of a file that begins at `start`, and the length of the file.
    async fn part(&self, digest: &str, start: u64) -> Result<(Bytes, u64)> {
        let range = format!("bytes={start}-{}", start + PART_BYTES - 1);
        let range = HeaderValue::try_from(range).map_err(|error| Error::protocol(error.to_string()))?;
        let answer = self
            .request(digest, HeaderMap::from_iter([(header::RANGE, range)]))
            .await?;
        let content_range = answer.headers.get(header::CONTENT_RANGE);
        let length = content_range
            .and_then(|range| range.to_str().ok()?.rsplit_once('/')?.1.parse().ok())
            .ok_or_else(|| {
                Error::protocol("the gateway sends weights as a whole only: expected a range of them")
            })?;
        let part = answer.collect(PART_BYTES).await?.filter(|part| !part.is_empty());
        let part =
            part.ok_or_else(|| Error::protocol("a range of weights has another length than requested"))?;
        Ok((part, length))
    }

    async fn request(&self, digest: &str, headers: HeaderMap) -> Result<Answer> {
        let target = self.store.own_target(&format!("{MODELS_PATH}/{digest}")).await;
        let answer = self
            .store
            .send_to_gateway(Method::GET, &target, headers, Bytes::new())
            .await?;
        if matches!(answer.status, StatusCode::OK | StatusCode::PARTIAL_CONTENT) {
            return Ok(answer);
        }
        let what = format!("the weights of the model `{}`", self.description.name);
        Err(answer.refusal().await.into_error(&what))
    }

    fn too_long(&self, max_bytes: u64) -> Error {
        let name = &self.description.name;
        Error::protocol(format!(
            "a file of the model `{name}` has more than {max_bytes} bytes"
        ))
    }
}

/// The folder of weights, if it exists or can be created.
fn open_folder(folder: &Path) -> Option<File> {
    fs::create_dir_all(folder).ok()?;
    File::open(folder).ok()
}

fn write_file(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    write_atomically(file, |mut draft| {
        draft.write_all(bytes)?;
        Ok(draft)
    })
}
