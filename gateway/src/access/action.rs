//! What a request needs: actions on buckets, prefixes and objects.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

/// A kind of operation that a grant allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// `list`: list the keys and multipart uploads of a bucket; ask whether it exists, and where.
    List,
    /// `read`: read an object, its metadata and its tags.
    Read,
    /// `write`: write an object or its tags, upload its parts, copy to it.
    Write,
    /// `delete`: delete an object.
    Delete,
    /// `versions`: address a version of an object, or list versions. Needed in addition to the action itself.
    Versions,
    /// `admin`: everything else, and every operation that the gateway does not know.
    Admin,
}

/// What an action applies to. Names are decoded bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// No bucket: the list of all buckets.
    Service,
    /// A bucket as a whole.
    Bucket {
        /// Name of the bucket.
        bucket: Bytes,
    },
    /// All keys of a bucket that begin with a prefix.
    Prefix {
        /// Name of the bucket.
        bucket: Bytes,
        /// The prefix; empty for all keys.
        prefix: Bytes,
    },
    /// An object, whether it exists or not.
    Object {
        /// Name of the bucket.
        bucket: Bytes,
        /// Key of the object.
        key: Bytes,
    },
}

/// An action on a target. A request needs one or more of them: a copy reads its source and writes its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    action: Action,
    target: Target,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 6] = [
        Self::List,
        Self::Read,
        Self::Write,
        Self::Delete,
        Self::Versions,
        Self::Admin,
    ];

    /// The word for it in a grant.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Versions => "versions",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let action = Self::ALL.into_iter().find(|action| action.as_str() == text);
        action.ok_or_else(|| format!("expected list, read, write, delete, versions or admin, found `{text}`"))
    }
}

impl Access {
    /// An action without a bucket: [`Action::List`] for the list of buckets.
    pub const fn service(action: Action) -> Self {
        Self {
            action,
            target: Target::Service,
        }
    }

    /// An action on a bucket as a whole.
    pub fn bucket(action: Action, bucket: impl AsRef<[u8]>) -> Self {
        let bucket = Bytes::copy_from_slice(bucket.as_ref());
        Self {
            action,
            target: Target::Bucket { bucket },
        }
    }

    /// An action on all keys that begin with a prefix, such as a listing.
    pub fn prefix(action: Action, bucket: impl AsRef<[u8]>, prefix: impl AsRef<[u8]>) -> Self {
        let bucket = Bytes::copy_from_slice(bucket.as_ref());
        let prefix = Bytes::copy_from_slice(prefix.as_ref());
        Self {
            action,
            target: Target::Prefix { bucket, prefix },
        }
    }

    /// An action on an object.
    pub fn object(action: Action, bucket: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let bucket = Bytes::copy_from_slice(bucket.as_ref());
        let key = Bytes::copy_from_slice(key.as_ref());
        Self {
            action,
            target: Target::Object { bucket, key },
        }
    }

    /// The action.
    pub const fn action(&self) -> Action {
        self.action
    }

    /// What the action applies to.
    pub const fn target(&self) -> &Target {
        &self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_read_as_they_are_written() {
        for action in Action::ALL {
            assert_eq!(action.as_str().parse(), Ok(action));
        }
        for wrong in ["", "Read", "read ", "*", "all", "reads"] {
            assert!(wrong.parse::<Action>().is_err(), "{wrong}");
        }
    }
}
