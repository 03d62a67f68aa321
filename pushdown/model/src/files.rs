//! The files of a model: the ONNX file, and the data files that store its weights.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    iter,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::{DataFile, MAX_MODEL_BYTES, ModelCard, graph::data_files};
use pushdown_core::{Error, Result};

/// All files of a model in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct ModelFiles {
    /// The ONNX file.
    pub model: Arc<[u8]>,
    /// The data files by name (ONNX's external data).
    pub data: BTreeMap<String, Arc<[u8]>>,
}

/// The SHA-256 of each file of a model.
pub(super) struct FileDigests {
    model: [u8; 32],
    data: BTreeMap<String, [u8; 32]>,
}

impl ModelFiles {
    /// Reads an ONNX file and its data files. Data files have to be regular files: a symbolic link could point anywhere.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a file that cannot be read, or is not an ONNX model;
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) if their sizes add up to more than [`MAX_MODEL_BYTES`]. No file that exceeds
    /// the limit is read.
    pub fn read(path: &Path) -> Result<Self> {
        let unreadable = |error: io::Error| Error::model(format!("its file cannot be read: {error}"));
        let file = File::open(path).map_err(unreadable)?;
        let mut total = file.metadata().map_err(unreadable)?.len();
        if total > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "a model of {total} bytes is more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        let model = read(file).map_err(unreadable)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut data = BTreeMap::new();
        for name in data_files(&model)? {
            let unreadable =
                |error: io::Error| Error::model(format!("the data file `{name}` cannot be read: {error}"));
            let file = open_data_file(folder, &name).map_err(unreadable)?;
            total = total.saturating_add(file.metadata().map_err(unreadable)?.len());
            if total > MAX_MODEL_BYTES as u64 {
                return Err(Error::too_large(format!(
                    "a model of {total} bytes with the data file `{name}` is more than the limit of {MAX_MODEL_BYTES}"
                )));
            }
            let bytes = read(file).map_err(unreadable)?;
            data.insert(name, bytes);
        }
        Ok(Self { model, data })
    }

    /// Total bytes of all files.
    pub fn bytes(&self) -> u64 {
        let data = self.data.values().map(|bytes| bytes.len() as u64);
        self.model.len() as u64 + data.sum::<u64>()
    }
}

impl FileDigests {
    pub(super) fn new(files: &ModelFiles) -> Self {
        let data = files.data.iter();
        Self {
            model: Sha256::digest(&files.model).into(),
            data: data
                .map(|(name, bytes)| (name.clone(), Sha256::digest(bytes).into()))
                .collect(),
        }
    }

    /// The data files as the description lists them.
    pub(super) fn data_files(&self, files: &ModelFiles) -> Vec<DataFile> {
        let data = self.data.iter().zip(files.data.values());
        data.map(|((name, digest), bytes)| DataFile {
            name: name.clone(),
            digest: hex::encode(digest),
            bytes: bytes.len() as u64,
        })
        .collect()
    }

    /// Compares the data files with their known digests.
    pub(super) fn check(&self, known: &[DataFile]) -> Result<()> {
        let mut found = known
            .iter()
            .filter_map(|file| Some((file, self.data.get(&file.name)?)));
        found.try_for_each(|(file, found)| file.check_digest(*found))
    }

    /// The digest of the model: SHA-256 of the ONNX file. With data files, the SHA-256 of that digest and theirs in the
    /// order of their names, which the ONNX file contains. With a card, the SHA-256 of that digest and the card's canonical
    /// JSON.
    pub(super) fn combined(&self, card: Option<&ModelCard>) -> Result<String> {
        let mut digest = self.model;
        if !self.data.is_empty() {
            let mut all = Sha256::new_with_prefix(digest);
            self.data.values().for_each(|file| all.update(file));
            digest = all.finalize().into();
        }
        if let Some(card) = card {
            let card = serde_json::to_vec(card)
                .map_err(|error| Error::internal(format!("the model card cannot be serialized: {error}")))?;
            digest = Sha256::new_with_prefix(digest)
                .chain_update(card)
                .finalize()
                .into();
        }
        Ok(hex::encode(digest))
    }
}

/// Opens a data file: a regular file in the folder.
///
/// # Errors
/// For a missing file, a symbolic link, and anything else that is not a regular file.
pub(super) fn open_data_file(folder: &Path, name: &str) -> io::Result<File> {
    // Opening a pipe would block.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(folder.join(name));
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP) => io::Error::other("found a symbolic link, expected a regular file"),
        _ => error,
    })?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("expected a regular file"))
    }
}

/// Reads a file into shared memory.
///
/// # Errors
/// If it cannot be read, or becomes shorter while it is read.
pub fn read_file(path: &Path) -> io::Result<Arc<[u8]>> {
    read(File::open(path)?)
}

/// Reads into the `Arc` directly: converting a vector would copy it.
fn read(mut file: File) -> io::Result<Arc<[u8]>> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes: Arc<[u8]> = iter::repeat_n(0, length).collect();
    // Always succeeds: this is the only reference.
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        file.read_exact(bytes)?;
    }
    Ok(bytes)
}
