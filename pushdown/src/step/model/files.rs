//! The files of a model: the ONNX file, and those beside it that have its weights.

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

use super::{Card, DataFile, MAX_MODEL_BYTES, graph::data_files};
use crate::{Error, Result};

/// All files of a model, in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The ONNX file.
    pub model: Arc<[u8]>,
    /// By their names the files that the ONNX file has weights in (ONNX's external data).
    pub data: BTreeMap<String, Arc<[u8]>>,
}

/// The SHA-256 of each file of a model.
pub(super) struct Digests {
    model: [u8; 32],
    data: BTreeMap<String, [u8; 32]>,
}

impl Files {
    /// Reads an ONNX file and those beside it that it has weights in. These have to be regular files: a link may lead
    /// anywhere.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for what cannot be read, or is no model;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when all together have more than [`MAX_MODEL_BYTES`], before more is read.
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
            let unreadable = |error: io::Error| {
                Error::model(format!(
                    "the file `{name}` of its weights cannot be read: {error}"
                ))
            };
            let file = open_data(folder, &name).map_err(unreadable)?;
            total = total.saturating_add(file.metadata().map_err(unreadable)?.len());
            if total > MAX_MODEL_BYTES as u64 {
                return Err(Error::too_large(format!(
                    "a model of {total} bytes with the file `{name}` of its weights is more than the limit of {MAX_MODEL_BYTES}"
                )));
            }
            let bytes = read(file).map_err(unreadable)?;
            data.insert(name, bytes);
        }
        Ok(Self { model, data })
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        let data = self.data.values().map(|bytes| bytes.len() as u64);
        self.model.len() as u64 + data.sum::<u64>()
    }
}

impl Digests {
    pub(super) fn of(files: &Files) -> Self {
        let data = files.data.iter();
        Self {
            model: Sha256::digest(&files.model).into(),
            data: data
                .map(|(name, bytes)| (name.clone(), Sha256::digest(bytes).into()))
                .collect(),
        }
    }

    /// What readers are told of the files beside the model.
    pub(super) fn data_files(&self, files: &Files) -> Vec<DataFile> {
        let data = self.data.iter().zip(files.data.values());
        data.map(|((name, digest), bytes)| DataFile {
            name: name.clone(),
            digest: hex::encode(digest),
            bytes: bytes.len() as u64,
        })
        .collect()
    }

    /// Holds the files beside a model against what is known of them.
    pub(super) fn check(&self, known: &[DataFile]) -> Result<()> {
        let mut found = known
            .iter()
            .filter_map(|file| Some((file, self.data.get(&file.name)?)));
        found.try_for_each(|(file, found)| file.check_digest(*found))
    }

    /// The digest of the model: SHA-256 of the ONNX file. With files beside it, of its digest and theirs, by the order of
    /// their names, which stand in the ONNX file. With a card, of that digest and the card's canonical JSON.
    pub(super) fn whole(&self, card: Option<&Card>) -> Result<String> {
        let mut digest = self.model;
        if !self.data.is_empty() {
            let mut all = Sha256::new_with_prefix(digest);
            self.data.values().for_each(|file| all.update(file));
            digest = all.finalize().into();
        }
        if let Some(card) = card {
            let card = serde_json::to_vec(card)
                .map_err(|error| Error::internal(format!("a card that cannot be written: {error}")))?;
            digest = Sha256::new_with_prefix(digest)
                .chain_update(card)
                .finalize()
                .into();
        }
        Ok(hex::encode(digest))
    }
}

/// Opens a file that has weights: a regular one in the folder, and no link to another.
///
/// # Errors
/// When there is none.
pub(super) fn open_data(folder: &Path, name: &str) -> io::Result<File> {
    // A pipe would hold up whoever opens it.
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

/// Reads a file into memory that can be shared.
///
/// # Errors
/// When it cannot be read, or gets shorter meanwhile.
pub fn read_file(path: &Path) -> io::Result<Arc<[u8]>> {
    read(File::open(path)?)
}

/// A vector would have to be copied.
fn read(mut file: File) -> io::Result<Arc<[u8]>> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes: Arc<[u8]> = iter::repeat_n(0, length).collect();
    // Nobody else has them yet.
    if let Some(bytes) = Arc::get_mut(&mut bytes) {
        file.read_exact(bytes)?;
    }
    Ok(bytes)
}
