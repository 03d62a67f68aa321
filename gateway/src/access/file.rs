//! The keys file: read and checked as a whole, with all its faults reported at once.

mod fields;
mod parse;
mod secrets;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};

use super::key::KeySettings;
use crate::private;
use secrets::SecretSources;

/// Most bytes of a keys file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The faults of a keys file. Each is a sentence that names its key and its field, and none shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct KeyFaults {
    file: Option<PathBuf>,
    faults: Vec<String>,
}

impl fmt::Display for KeyFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "invalid keys file {}:", file.display())?,
            None => f.write_str("invalid keys:")?,
        }
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, "\n  - {fault}"))
    }
}

impl KeyFaults {
    /// The single fault of a file that could not be read.
    pub(super) fn from_fault(path: &Path, fault: String) -> Self {
        Self {
            file: Some(path.to_owned()),
            faults: vec![fault],
        }
    }

    /// The faults.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

/// Reads the keys of a file, and the secrets in other files and in environment variables. A relative `secret-file` is relative
/// to the folder of the keys file.
pub(super) fn load(path: &Path) -> Result<Vec<KeySettings>, KeyFaults> {
    let mut faults = Vec::new();
    let mut keys = Vec::new();
    match private::file::read(path, MAX_FILE_BYTES) {
        Ok(file) => {
            faults.extend(file.mode_fault);
            let sources = SecretSources {
                folder: path.parent().unwrap_or_else(|| Path::new("")),
                environment: &environment,
            };
            keys = parse::parse(&file.text, &sources, &mut faults);
        }
        Err(error) => faults.push(error.to_string()),
    }
    if faults.is_empty() {
        return Ok(keys);
    }
    Err(KeyFaults {
        file: Some(path.to_owned()),
        faults,
    })
}

/// Reads keys from a text.
pub(super) fn from_text(text: &str) -> Result<Vec<KeySettings>, KeyFaults> {
    let mut faults = Vec::new();
    let sources = SecretSources {
        folder: Path::new(""),
        environment: &environment,
    };
    let keys = parse::parse(text, &sources, &mut faults);
    if faults.is_empty() {
        return Ok(keys);
    }
    Err(KeyFaults { file: None, faults })
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
