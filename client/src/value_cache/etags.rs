//! ETags of objects whose list has none, as the store states them.
//!
//! Without an ETag nothing says whether an object is still the one from which a value was computed: another object may have the same size,
//! and times of change are in seconds. So the store is asked, once per object and reader, as a listing is made once.

use std::{borrow::Cow, collections::HashMap};

use pushdown_exec::sync::Mutex;

use super::ListedSample;

/// What the store has answered, by the index of the object in its list: at most what a list with ETags holds.
#[derive(Debug, Default)]
pub(super) struct Etags(Mutex<HashMap<usize, Option<Box<str>>>>);

impl Etags {
    /// The ETag of a sample's object, if one is known that changes with each byte.
    pub(super) fn get<'a>(&self, sample: ListedSample<'a>) -> Option<Cow<'a, str>> {
        if let Some(listed) = listed(sample) {
            return Some(listed.into());
        }
        let answers = self.0.lock();
        let answer = answers.get(&sample.index())?.as_deref()?;
        Some(answer.to_owned().into())
    }

    /// Whether the list has no ETag, and the store was not asked yet.
    pub(super) fn is_unknown(&self, sample: ListedSample<'_>) -> bool {
        listed(sample).is_none() && !self.0.lock().contains_key(&sample.index())
    }

    /// Whether neither the list nor the store has an ETag.
    pub(super) fn is_missing(&self, sample: ListedSample<'_>) -> bool {
        listed(sample).is_none() && matches!(self.0.lock().get(&sample.index()), Some(None))
    }

    /// Records what the store has answered.
    pub(super) fn set(&self, index: usize, etag: Option<&str>) {
        let strong = etag.filter(|etag| is_strong(etag)).map(Box::from);
        self.0.lock().insert(index, strong);
    }
}

fn listed(sample: ListedSample<'_>) -> Option<&str> {
    sample.object().etag.filter(|etag| is_strong(etag))
}

/// A weak ETag may stay when bytes change.
fn is_strong(etag: &str) -> bool {
    !etag.is_empty() && !etag.starts_with("W/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::{Object, Objects};

    #[test]
    fn the_store_is_asked_where_the_list_has_no_strong_etag() {
        let etags = Etags::default();
        let listed = [Some("\"a\""), None, Some("W/\"a\""), Some(""), None];
        let objects = listed.map(|etag| Object {
            key: "k",
            bytes: Some(5),
            etag,
            member: None,
        });
        let objects = Objects::from_objects("b", objects);
        let sample = |index| ListedSample::new(&objects, index);
        let unknown = |index| (etags.is_unknown(sample(index)), etags.is_missing(sample(index)));
        assert_eq!(unknown(0), (false, false));
        for index in 1..5 {
            assert_eq!((unknown(index), etags.get(sample(index))), ((true, false), None));
        }
        etags.set(1, Some("\"b\""));
        etags.set(2, Some("W/\"b\""));
        etags.set(3, None);
        let known = |index| etags.get(sample(index)).map(Cow::into_owned);
        let expected = [Some("\"a\""), Some("\"b\""), None, None, None];
        assert_eq!(
            [0, 1, 2, 3, 4].map(known),
            expected.map(|etag| etag.map(str::to_owned))
        );
        assert_eq!(
            [1, 2, 3, 4].map(|index| unknown(index).1),
            [false, true, true, false]
        );
        assert_eq!(
            [1, 2, 3, 4].map(|index| unknown(index).0),
            [false, false, false, true]
        );
    }
}
