//! Sets of names.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
};

use crate::{ShardError, limits::ShardLimits, name::quoted};

/// A set of names. It holds 128 bits of each name, under keys that nobody can guess, rather than the names.
#[derive(Debug, Default)]
pub(crate) struct NameSet {
    digests: HashSet<u128>,
    hashers: [RandomState; 2],
}

/// The names of a shard so far. Refuses a name that is there already, and more than the limits allow.
#[derive(Debug)]
pub(crate) struct Names {
    limits: ShardLimits,
    total_bytes: u64,
    seen: NameSet,
}

impl NameSet {
    /// Adds a name. `false` if it is there already.
    pub(crate) fn insert(&mut self, name: &str) -> bool {
        let [high, low] = self
            .hashers
            .each_ref()
            .map(|hasher| u128::from(hasher.hash_one(name)));
        self.digests.insert(high << 64 | low)
    }
}

impl Names {
    pub(crate) fn new(limits: ShardLimits) -> Self {
        Self {
            limits,
            total_bytes: 0,
            seen: NameSet::default(),
        }
    }

    /// Adds the name of the member at byte `offset`.
    pub(crate) fn insert(&mut self, name: &str, offset: u64) -> Result<(), ShardError> {
        let too_large = |what, limit| ShardError::TooLarge { what, limit, offset };
        if self.seen.digests.len() >= self.limits.max_members {
            return Err(too_large("members", self.limits.max_members as u64));
        }
        self.total_bytes += name.len() as u64;
        if self.total_bytes > self.limits.max_total_name_bytes {
            let limit = self.limits.max_total_name_bytes;
            return Err(too_large("bytes of names", limit));
        }
        if !self.seen.insert(name) {
            return Err(ShardError::Duplicate {
                name: quoted(name.as_bytes()),
                offset,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_added_once_and_within_the_limits() {
        let mut names = Names::new(ShardLimits {
            max_members: 3,
            max_total_name_bytes: 7,
        });
        assert_eq!(names.insert("ab", 0), Ok(()));
        assert!(matches!(
            names.insert("ab", 512),
            Err(ShardError::Duplicate { offset: 512, .. })
        ));
        assert_eq!(names.insert("abc", 1024), Ok(()));
        assert!(matches!(
            names.insert("b", 0),
            Err(ShardError::TooLarge { limit: 7, .. })
        ));
        let mut names = Names::new(ShardLimits {
            max_members: 1,
            ..ShardLimits::default()
        });
        assert_eq!(names.insert("a", 0), Ok(()));
        assert!(matches!(
            names.insert("b", 0),
            Err(ShardError::TooLarge { limit: 1, .. })
        ));
    }
}
