//! A key: who its caller is, and who signs for it at the store.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

use super::grants::Grants;

/// The secret of a key. Its memory is wiped when it is dropped, and it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<Vec<u8>>);

/// Who signs the requests of a key at the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upstream {
    /// `self`: the caller, with the same key, which the store knows, too. The store decides; grants only narrow.
    Caller,
    /// `gateway`: the gateway, with its own identity. Nothing is allowed without a grant.
    Gateway,
}

/// The models that a key may list, run and download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelNames {
    /// All models.
    All,
    /// The models with these names.
    Named(BTreeSet<String>),
}

/// A caller's key.
#[derive(Debug)]
pub struct Key {
    settings: KeySettings,
    generation: u64,
}

/// A key as the keys file describes it, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeySettings {
    /// Identifies the key in a signature.
    pub(super) access_key: String,
    /// The current secret first; while it is rotated, also the previous one.
    pub(super) secrets: Vec<Secret>,
    /// The account of the key.
    pub(super) tenant: String,
    /// Who signs at the store.
    pub(super) upstream: Upstream,
    /// What the key may do.
    pub(super) grants: Grants,
    /// The models that the key may use.
    pub(super) models: ModelNames,
}

impl Secret {
    /// Wraps a secret without copying it.
    pub fn new(secret: String) -> Self {
        Self(Zeroizing::new(secret.into_bytes()))
    }

    /// The secret itself.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Upstream {
    /// The word for it in the keys file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "self",
            Self::Gateway => "gateway",
        }
    }
}

impl FromStr for Upstream {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "self" => Ok(Self::Caller),
            "gateway" => Ok(Self::Gateway),
            other => Err(format!("expected self or gateway, found `{other}`")),
        }
    }
}

impl ModelNames {
    /// Whether the model with this name is one of them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(name),
        }
    }
}

impl Key {
    pub(super) const fn new(settings: KeySettings, generation: u64) -> Self {
        Self { settings, generation }
    }

    pub(super) const fn settings(&self) -> &KeySettings {
        &self.settings
    }

    /// Identifies the key in a signature. It is no secret.
    pub fn access_key(&self) -> &str {
        &self.settings.access_key
    }

    /// The secrets that a caller may sign with: the current one first, and while it is rotated also the previous one.
    pub fn secrets(&self) -> &[Secret] {
        &self.settings.secrets
    }

    /// The account that pays for the key's requests. Default: the access key.
    pub fn tenant(&self) -> &str {
        &self.settings.tenant
    }

    /// Who signs the key's requests at the store.
    pub const fn upstream(&self) -> Upstream {
        self.settings.upstream
    }

    /// What the key may do. Without grants: everything that the store allows if `upstream` is `self`, and nothing otherwise.
    pub const fn grants(&self) -> &Grants {
        &self.settings.grants
    }

    /// The models that the key may list, run and download.
    pub const fn models(&self) -> &ModelNames {
        &self.settings.models
    }

    /// The generation of the keys file that changed this key last.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the store alone decides on the key's requests.
    pub fn is_unrestricted(&self) -> bool {
        self.upstream() == Upstream::Caller && self.grants().is_empty()
    }

    /// Whether a bucket belongs in the key's answer to `ListBuckets`.
    pub fn can_see_bucket(&self, bucket: impl AsRef<[u8]>) -> bool {
        self.is_unrestricted() || self.grants().has_bucket(bucket.as_ref())
    }
}
