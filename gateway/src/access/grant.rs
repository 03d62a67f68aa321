//! A grant: some actions on the keys of a bucket that begin with a prefix.

use std::collections::BTreeSet;

use super::action::{Access, Action, Target};

/// First segments of the paths under which stores serve their own administration: not buckets, unless a grant names them.
const RESERVED: [&[u8]; 4] = [b"admin", b"minio", b"rustfs", b"seaweedfs"];

/// The buckets of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BucketScope {
    /// `*`: all buckets but those with a name under which a store may serve its administration.
    All,
    /// The bucket with this name.
    Named(String),
}

/// Some actions on the keys of a bucket that begin with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub(super) bucket: BucketScope,
    /// Empty, or ends with `/`.
    pub(super) prefix: String,
    pub(super) allow: BTreeSet<Action>,
    pub(super) pipelines: bool,
}

impl Grant {
    /// The buckets.
    pub const fn bucket(&self) -> &BucketScope {
        &self.bucket
    }

    /// The prefix of the keys: empty, or ends with `/`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// What is allowed.
    pub fn actions(&self) -> impl Iterator<Item = Action> {
        self.allow.iter().copied()
    }

    /// Whether the gateway may run pipelines of the caller on objects that the grant allows to read.
    pub const fn allows_pipelines(&self) -> bool {
        self.pipelines
    }

    /// Whether the grant covers an access, pipelines aside.
    pub(super) fn covers(&self, access: &Access) -> bool {
        let action = access.action();
        let covers_all = self.prefix.is_empty();
        match access.target() {
            // The answer is filtered by `Key::can_see_bucket`.
            Target::Service if action == Action::List => true,
            Target::Service => self.allow.contains(&action) && covers_all && self.bucket == BucketScope::All,
            // Clients ask whether a bucket exists before they list a prefix of it.
            Target::Bucket { bucket } => {
                self.allows_in(action, bucket) && (covers_all || action == Action::List)
            }
            Target::Prefix { bucket, prefix: path } | Target::Object { bucket, key: path } => {
                self.allows_in(action, bucket) && path.starts_with(self.prefix.as_bytes())
            }
        }
    }

    fn allows_in(&self, action: Action, bucket: &[u8]) -> bool {
        self.allow.contains(&action) && self.bucket.contains(bucket)
    }
}

impl BucketScope {
    pub(super) fn contains(&self, bucket: &[u8]) -> bool {
        match self {
            Self::All => !RESERVED.contains(&bucket),
            Self::Named(name) => name.as_bytes() == bucket,
        }
    }

    /// The text for it in a grant.
    pub fn as_str(&self) -> &str {
        match self {
            Self::All => "*",
            Self::Named(name) => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the identity of the gateway, `GET /minio/admin/v3/export-iam` would read the secrets of all users.
    #[test]
    fn all_buckets_are_not_the_administration_of_a_store() {
        let named = BucketScope::Named("minio".to_owned());
        for name in ["admin", "minio", "rustfs", "seaweedfs"] {
            assert!(!BucketScope::All.contains(name.as_bytes()), "{name}");
        }
        assert!(BucketScope::All.contains(b"photos") && named.contains(b"minio"));
    }
}
