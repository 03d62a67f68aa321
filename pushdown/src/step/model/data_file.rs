//! Files beside a model that have its weights, as they are listed.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::MAX_MODEL_BYTES;
use crate::{Error, Result};

/// The most files that may have weights: exporters write one for each tensor, or one for all.
pub(super) const MAX_FILES: usize = 4096;
/// The most bytes of a file's name, as file systems have it.
const MAX_NAME: usize = 255;

/// A file beside a model that has weights of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its name in the model's folder, as the ONNX file has it.
    pub name: String,
    /// SHA-256 of its contents, in hex.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
}

impl DataFile {
    /// Holds the contents of the file against the digest.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) when they are others.
    pub fn check(&self, bytes: &[u8]) -> Result<()> {
        self.check_digest(Sha256::digest(bytes).into())
    }

    /// Holds a digest of them against the known one.
    pub(super) fn check_digest(&self, found: [u8; 32]) -> Result<()> {
        let found = hex::encode(found);
        if found == self.digest {
            return Ok(());
        }
        Err(Error::model(format!(
            "the file `{}` of its weights has the digest {found}, expected {}: has it been replaced?",
            self.name, self.digest
        )))
    }
}

/// Whether a name is a file's in the folder of the model, and nothing else: no path, no hidden file.
pub(super) fn is_bare(name: &str) -> bool {
    let harmless = |character: char| !matches!(character, '/' | '\\') && !character.is_control();
    (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('.') && name.chars().all(harmless)
}

/// Whether a text can be a digest: it becomes the name of a file.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether files that somebody else lists can be those of a model of so many bytes.
///
/// # Errors
/// What is wrong with them.
pub(super) fn check_list(files: &[DataFile], bytes: u64) -> Result<(), String> {
    if files.len() > MAX_FILES {
        return Err(format!(
            "{} files of weights, expected at most {MAX_FILES}",
            files.len()
        ));
    }
    let mut names = HashSet::new();
    if let Some(file) = files
        .iter()
        .find(|file| !is_bare(&file.name) || !names.insert(&file.name))
    {
        return Err(format!(
            "the file {:?} of weights, expected bare names, each once",
            file.name
        ));
    }
    if let Some(file) = files.iter().find(|file| !is_digest(&file.digest)) {
        return Err(format!(
            "the file `{}` with an invalid digest, expected 64 hex digits",
            file.name
        ));
    }
    let total = files
        .iter()
        .fold(0_u64, |total, file| total.saturating_add(file.bytes));
    if total > bytes.min(MAX_MODEL_BYTES as u64) {
        return Err(format!(
            "{total} bytes in files of weights, expected at most its {bytes}, and {MAX_MODEL_BYTES}"
        ));
    }
    Ok(())
}
