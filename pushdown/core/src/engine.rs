//! The engine: versions of the steps and of the model runtime, which affect values besides object, pipeline and seed.

mod family;
mod identity;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

pub use family::Family;
use family::FamilyVersions;
pub use identity::RuntimeIdentity;

use crate::{Error, Result};

/// Maximum length of the text of an engine, which is untrusted input.
const MAX_BYTES: usize = 512;

/// The text of an engine without steps.
const NONE: &str = "none";

/// The versions that a value was computed with: those of the [families](Family) of its steps, and the model runtime if the steps
/// have models.
///
/// Part of every ETag and every answer, as text `decode=4 resample=4` or
/// `decode=4 tensor=4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma`, and `none` for a value that no step computed. The
/// text `4` of older gateways means that all families have this version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Engine {
    versions: FamilyVersions,
    models: Option<RuntimeIdentity>,
}

impl Engine {
    /// The engine of this host for steps of these families, whose models run on `runtime`, if they have any.
    pub fn new(families: impl IntoIterator<Item = Family>, runtime: Option<RuntimeIdentity>) -> Self {
        let mut versions = FamilyVersions::default();
        for family in families {
            versions.set(family, family.version());
        }
        Self {
            versions,
            models: runtime,
        }
    }

    /// The engine of this host for all families, without models.
    pub fn all() -> Self {
        Self::new(Family::ALL, None)
    }

    /// The same engine with the versions of `other` for the families that both have.
    #[must_use]
    pub fn with_versions_of(mut self, other: &Self) -> Self {
        for (family, version) in other.versions.iter() {
            if self.version(family).is_some() {
                self.versions.set(family, version);
            }
        }
        self
    }

    /// The version of a family, if a step of it ran.
    pub const fn version(&self, family: Family) -> Option<u32> {
        self.versions.get(family)
    }

    /// What ran the models, if there are any.
    pub const fn runtime(&self) -> Option<&RuntimeIdentity> {
        self.models.as_ref()
    }

    /// Whether values of both engines can be mixed: the families that both have agree in their versions, and, if both run models,
    /// their versions of ONNX Runtime agree.
    ///
    /// Other providers or processors round differently, within the tolerance of law 1, and are compatible.
    pub fn is_compatible_with(&self, other: &Self) -> bool {
        let runtimes = self.models.as_ref().zip(other.models.as_ref());
        let agrees =
            |(family, version): (Family, u32)| other.version(family).is_none_or(|other| other == version);
        self.versions.iter().all(agrees)
            && runtimes.is_none_or(|(one, other)| one.onnxruntime == other.onnxruntime)
    }

    /// Whether both engines run models, on different runtimes, providers or processors.
    pub fn has_other_rounding(&self, other: &Self) -> bool {
        let runtimes = self.models.as_ref().zip(other.models.as_ref());
        runtimes.is_some_and(|(one, other)| one != other)
    }

    /// The part of the text that compatible engines of the same steps have in common.
    pub fn compatibility_key(&self) -> String {
        let families = self.families_text();
        let version = self.models.as_ref().map(|models| &models.onnxruntime);
        version.map_or_else(
            || families.clone(),
            |version| format!("{families}; onnxruntime={version}"),
        )
    }

    fn families_text(&self) -> String {
        if self.versions.is_empty() {
            return NONE.to_owned();
        }
        let versions = self.versions.iter();
        let versions: Vec<_> = versions
            .map(|(family, version)| format!("{}={version}", family.name()))
            .collect();
        versions.join(" ")
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.families_text())?;
        self.models
            .as_ref()
            .map_or(Ok(()), |models| write!(f, "; {models}"))
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (versions, models) = match text.split_once("; ") {
            _ if text.len() > MAX_BYTES => ("", None),
            Some((versions, models)) => (versions, Some(models.parse())),
            None => (text, None),
        };
        let read = parse_versions(versions).zip(models.transpose().ok());
        let (versions, models) = read.ok_or_else(|| {
            let found: String = text.chars().take(MAX_BYTES).flat_map(char::escape_default).collect();
            Error::wire(format!(
                "invalid engine: expected text like `decode=4 resample=4; onnxruntime=1.31.1; provider=cpu; processor=avx2`, \
                 found `{found}`"
            ))
        })?;
        Ok(Self { versions, models })
    }
}

/// The versions of `decode=4 resample=4`, of `none`, or of a single number for all families. Families of later versions are
/// ignored: this host has no step of them.
fn parse_versions(text: &str) -> Option<FamilyVersions> {
    if text == NONE {
        return Some(FamilyVersions::default());
    }
    if let Ok(version) = text.parse() {
        return Some(FamilyVersions::uniform(version));
    }
    let mut versions = FamilyVersions::default();
    for part in text.split(' ') {
        let (name, version) = part.split_once('=')?;
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_name) {
            return None;
        }
        let version = version.parse().ok()?;
        if let Some(family) = Family::ALL.into_iter().find(|family| family.name() == name) {
            versions.set(family, version);
        }
    }
    Some(versions)
}
