//! The files of a gateway's models: fetched by digest, and kept in the user's cache.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use pushdown::step::model::{
    MAX_MODEL_BYTES, ModelDescription, ModelFiles, Runtime, WeightSource, read_file,
};
use tokio::runtime::Handle;

use super::{PATH, host};
use crate::{
    error::{Error, Result},
    store::Store,
};

/// What names of ONNX files in the cache end with.
const ONNX: &str = "onnx";
/// And those of files with weights.
const DATA: &str = "data";

/// Files of a model at a gateway, kept in the user's cache once they were here.
#[derive(Debug)]
pub(super) struct Download {
    store: Store,
    description: ModelDescription,
    runtime: Handle,
    /// Where no cache takes them: they are asked for more than once.
    unkept: OnceLock<ModelFiles>,
}

impl WeightSource for Download {
    fn fetch(&self) -> pushdown::Result<ModelFiles> {
        if let Some(files) = self.unkept.get() {
            return Ok(files.clone());
        }
        if let Some(files) = self.kept()
            && self.description.check(&files).is_ok()
        {
            return Ok(files);
        }
        let mut all_kept = true;
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            let check = |bytes: &Arc<[u8]>| file.check(bytes);
            let (bytes, kept) = self.file((file.digest.as_str(), DATA), file.bytes, check)?;
            files.data.insert(file.name.clone(), bytes);
            all_kept &= kept;
        }
        let check = |bytes: &Arc<[u8]>| {
            files.model = Arc::clone(bytes);
            self.description.check(&files)
        };
        let (_, kept) = self.file(
            (self.description.digest.as_str(), ONNX),
            MAX_MODEL_BYTES as u64,
            check,
        )?;
        if !(all_kept && kept) {
            // Another thread's are the same.
            drop(self.unkept.set(files.clone()));
        }
        Ok(files)
    }

    fn is_local(&self) -> bool {
        let mut places = self
            .names()
            .map(|(digest, extension)| self.place(digest, extension));
        self.unkept.get().is_some() || places.all(|place| place.is_some_and(|file| file.is_file()))
    }

    fn runtime(&self) -> pushdown::Result<Runtime> {
        host()
    }
}

impl Download {
    /// Of the model that a gateway has described.
    pub(super) const fn new(store: Store, description: ModelDescription, runtime: Handle) -> Self {
        Self {
            store,
            description,
            runtime,
            unkept: OnceLock::new(),
        }
    }

    /// Digests and kinds of the model's files.
    fn names(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let data = self.description.files.iter();
        data.map(|file| (file.digest.as_str(), DATA))
            .chain([(self.description.digest.as_str(), ONNX)])
    }

    /// The place of a file in the user's cache.
    fn place(&self, digest: &str, extension: &str) -> Option<PathBuf> {
        Some(self.store.cache()?.join(format!("{digest}.{extension}")))
    }

    /// The files of the cache, where it has all of them.
    fn kept(&self) -> Option<ModelFiles> {
        let read = |digest: &str, extension| read_file(&self.place(digest, extension)?).ok();
        let mut files = ModelFiles::default();
        for file in &self.description.files {
            files.data.insert(file.name.clone(), read(&file.digest, DATA)?);
        }
        files.model = read(&self.description.digest, ONNX)?;
        Some(files)
    }

    /// A file of the model that passes `check`, from the cache or the gateway, and whether the cache has it.
    fn file(
        &self,
        (digest, extension): (&str, &str),
        max_bytes: u64,
        mut check: impl FnMut(&Arc<[u8]>) -> pushdown::Result<()>,
    ) -> pushdown::Result<(Arc<[u8]>, bool)> {
        let place = self.place(digest, extension);
        if let Some(bytes) = place.as_ref().and_then(|file| read_file(file).ok())
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
        let kept = place.is_some_and(|file| match keep(&file, &bytes) {
            Ok(()) => true,
            Err(error) => {
                tracing::info!(%error, file = %file.display(), "the weights are not kept");
                false
            }
        });
        Ok((bytes, kept))
    }

    async fn download(&self, digest: &str, max_bytes: u64) -> Result<Bytes> {
        let ModelDescription { name, bytes, .. } = &self.description;
        tracing::info!(name, digest, bytes, "fetching the weights of a model");
        let path = format!("{PATH}/{digest}");
        let transport = self.store.transport();
        let answer = transport
            .send(Method::GET, &path, HeaderMap::new(), Bytes::new())
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

/// Written beside and renamed, so that no one reads half of it.
fn keep(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    // Several models may come at once.
    let draft = file.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&draft, bytes)?;
    fs::rename(draft, file)
}
