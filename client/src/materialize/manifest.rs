//! The manifest of a target: its parts, written last.

use pushdown::part::{PartNote, unpack};
use serde::{Deserialize, Serialize};

use super::recipe::{Recipe, document};
use crate::error::{Error, Result};

/// Name of the manifest in the target.
pub(super) const MANIFEST_NAME: &str = "_manifest.json";
/// The most bytes of a manifest: 10,000,000 keys take a tenth of it.
pub(super) const MAX_MANIFEST_BYTES: u64 = 1 << 30;

/// What a complete target has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What the values are made of.
    pub recipe: Recipe,
    /// Samples in all parts.
    pub samples: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// Samples that are in no part, because a step cannot process their objects.
    pub errors: u64,
    /// The parts in the order of their numbers.
    pub parts: Vec<ManifestPart>,
}

/// A part of a complete target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestPart {
    /// Its name in the target.
    pub name: String,
    /// Samples in it.
    pub samples: u32,
    /// Bytes of the object.
    pub bytes: u64,
    /// Objects that are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<BadSample>,
    /// The names of the objects that it was made of: a JSON list, as gzip in base64.
    pub names: String,
}

/// An object that a step cannot process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadSample {
    /// Its name: the key, and the member for a sample of a shard.
    pub name: String,
    /// S3 error code.
    pub code: String,
    /// What failed.
    pub message: String,
}

impl From<PartNote> for BadSample {
    fn from(note: PartNote) -> Self {
        let PartNote { name, code, message } = note;
        Self { name, code, message }
    }
}

impl Manifest {
    /// The document, with a line break at its end.
    ///
    /// # Errors
    /// For a bug.
    pub(super) fn to_json(&self) -> Result<Vec<u8>> {
        document(self)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If the text is not a manifest.
    pub(super) fn parse(json: &[u8], name: &str) -> Result<Self> {
        serde_json::from_slice(json).map_err(|error| {
            Error::config(format!(
                "{name} is no manifest of `pushdown materialize`: {error}"
            ))
        })
    }
}

impl ManifestPart {
    /// The names of its objects.
    ///
    /// # Errors
    /// If they are invalid.
    pub(super) fn object_names(&self) -> Result<Vec<String>> {
        unpack(&self.names).map_err(|error| {
            Error::config(format!(
                "invalid names of {} in {MANIFEST_NAME}: {error}",
                self.name
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use pushdown::part::pack;

    use super::*;

    fn part(names: &[&str]) -> ManifestPart {
        ManifestPart {
            name: "part-00000-0.tar".to_owned(),
            samples: 2,
            bytes: 1024,
            errors: Vec::new(),
            names: pack(&names).unwrap(),
        }
    }

    #[test]
    fn names_come_back() {
        let names = ["a/1.jpg", "a/\u{e9} \n\"2\".jpg", ""];
        assert_eq!(part(&names).object_names().unwrap(), names);
        let many: Vec<String> = (0..4096)
            .map(|number| format!("train/n0144/{number:08}.jpg"))
            .collect();
        let packed = pack(&many).unwrap();
        assert!(packed.len() < 5 * many.len(), "{} bytes", packed.len());
    }

    #[test]
    fn invalid_names_are_refused() {
        for (names, expected) in [("?", "expected base64"), ("AAAA", "expected gzip")] {
            let part = ManifestPart {
                names: names.to_owned(),
                ..part(&[])
            };
            let error = part.object_names().unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("part-00000-0.tar"),
                "{error}"
            );
        }
    }
}
