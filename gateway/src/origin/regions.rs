//! The regions of buckets, as far as the store has named them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

/// Most buckets whose region is remembered. Past it, another one is forgotten, which costs one more request.
const MAX_BUCKETS: usize = 10_000;

/// The region of each bucket: the store's own, until an answer names another one.
#[derive(Debug)]
pub(super) struct Regions {
    default: Arc<str>,
    learnt: RwLock<HashMap<String, Arc<str>>>,
}

impl Regions {
    pub(super) fn new(default: &str) -> Self {
        Self {
            default: default.into(),
            learnt: RwLock::default(),
        }
    }

    /// The region of a bucket; `None` is the list of buckets.
    pub(super) fn region(&self, bucket: Option<&str>) -> Arc<str> {
        let learnt = bucket.and_then(|bucket| self.learnt.read().get(bucket).cloned());
        learnt.unwrap_or_else(|| Arc::clone(&self.default))
    }

    /// Remembers the region that an answer names for a bucket. Returns `false`, and remembers nothing, if it is no name of a
    /// region.
    pub(super) fn learn(&self, bucket: &str, region: &str) -> bool {
        if !is_region(region) {
            return false;
        }
        let mut learnt = self.learnt.write();
        if region == &*self.default {
            learnt.remove(bucket);
            return true;
        }
        if learnt.len() >= MAX_BUCKETS
            && !learnt.contains_key(bucket)
            && let Some(other) = learnt.keys().next().cloned()
        {
            learnt.remove(&other);
        }
        learnt.insert(bucket.to_owned(), region.into());
        true
    }

    /// Forgets the region of a bucket, such as one whose host cannot be reached.
    pub(super) fn forget(&self, bucket: &str) {
        self.learnt.write().remove(bucket);
    }
}

/// Whether a text is the name of a region, such as `us-gov-west-1`. It becomes a part of the store's host.
fn is_region(text: &str) -> bool {
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 63
        && text
            .rsplit_once('-')
            .is_some_and(|(words, number)| words.split('-').all(is_word) && is_number(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_learnt_per_bucket_until_another_one_is_named() {
        let regions = Regions::new("eu-central-1");
        assert!(regions.learn("photos", "us-west-2"));
        assert_eq!(&*regions.region(Some("photos")), "us-west-2");
        for bucket in [None, Some("others")] {
            assert_eq!(&*regions.region(bucket), "eu-central-1");
        }
        for wrong in [
            "evil.example",
            "evil",
            "a.b-1",
            "",
            "-1",
            "A-1",
            "us-",
            "us--1",
            "us-west-2:80",
            "us-west-2/",
        ] {
            assert!(!regions.learn("photos", wrong), "{wrong}");
        }
        assert_eq!(&*regions.region(Some("photos")), "us-west-2");
        assert!(regions.learn("photos", "eu-central-1"));
        assert_eq!(&*regions.region(Some("photos")), "eu-central-1");
        assert!(regions.learn("photos", "us-gov-west-1"));
        regions.forget("photos");
        assert_eq!(&*regions.region(Some("photos")), "eu-central-1");
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let regions = Regions::new("eu-central-1");
        for number in 0..=MAX_BUCKETS {
            assert!(regions.learn(&format!("bucket-{number}"), "us-west-2"));
        }
        assert_eq!(regions.learnt.read().len(), MAX_BUCKETS);
    }
}
