//! Data files: files next to an ONNX file that store its weights (ONNX's external data).

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::MAX_MODEL_BYTES;
use pushdown_core::{Error, Result};

/// Maximum number of data files. Exporters write one per tensor, or one for all tensors.
pub(super) const MAX_FILES: usize = 4096;
/// Maximum bytes of a file name, as in common file systems.
const MAX_NAME_BYTES: usize = 255;

/// A data file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// Its name in the model's folder, as stated in the ONNX file.
    pub name: String,
    /// SHA-256 of its contents, in hex.
    pub digest: String,
    /// Its size.
    pub bytes: u64,
}

impl DataFile {
    /// Compares contents with the digest.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) if they differ.
    pub fn check(&self, bytes: &[u8]) -> Result<()> {
        self.check_digest(Sha256::digest(bytes).into())
    }

    /// Compares a digest with the known one.
    pub(super) fn check_digest(&self, found: [u8; 32]) -> Result<()> {
        let found = hex::encode(found);
        if found == self.digest {
            return Ok(());
        }
        Err(Error::model(format!(
            "the data file `{}` has the digest {found}, expected {}: has it been replaced?",
            self.name, self.digest
        )))
    }
}

/// Whether `name` is the name of a file in the model's folder: no path, and no hidden file.
pub(super) fn is_bare_name(name: &str) -> bool {
    let is_allowed = |character: char| !matches!(character, '/' | '\\') && !character.is_control();
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.starts_with('.') && name.chars().all(is_allowed)
}

/// Whether `text` has the form of a digest. Digests become file names.
pub(super) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Checks a list of data files that was received. `model_bytes` is the stated size of the whole model.
///
/// # Errors
/// The fault, as a phrase that follows "the model `NAME` has".
pub(super) fn check_list(files: &[DataFile], model_bytes: u64) -> Result<(), String> {
    if files.len() > MAX_FILES {
        return Err(format!(
            "{} data files, expected at most {MAX_FILES}",
            files.len()
        ));
    }
    let mut names = HashSet::new();
    if let Some(file) = files
        .iter()
        .find(|file| !is_bare_name(&file.name) || !names.insert(&file.name))
    {
        return Err(format!(
            "the data file {:?}, expected bare names, each once",
            file.name
        ));
    }
    if let Some(file) = files.iter().find(|file| !is_digest(&file.digest)) {
        return Err(format!(
            "the data file `{}` with an invalid digest, expected 64 hex digits",
            file.name
        ));
    }
    let total = files
        .iter()
        .fold(0_u64, |total, file| total.saturating_add(file.bytes));
    if total > model_bytes.min(MAX_MODEL_BYTES as u64) {
        return Err(format!(
            "{total} bytes in data files, expected at most {model_bytes}, the model's size, and {MAX_MODEL_BYTES}, the limit"
        ));
    }
    Ok(())
}
