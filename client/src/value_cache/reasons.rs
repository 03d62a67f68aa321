//! Why values are not cached, with counters.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Why a value is not in the value cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotCachedReason {
    Larger,
    Random,
    AfterRandom,
    Unlisted,
    NoModels,
    Table,
    FolderFull,
    Unwritable,
    NoEtag,
}

/// Received samples whose values were not written to the [`value_cache`](crate::reader::PushdownReaderBuilder::value_cache), counted by
/// reason. All are 0 without a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotCached {
    /// The value has more bytes than its object, at every stage.
    pub larger: u64,
    /// The value has more bytes than its object at every stage before the first random step; later values differ per epoch.
    pub random: u64,
    /// The gateway had already run random steps: it chose the stage, since the value's size was not known.
    pub after_random: u64,
    /// The same, because the object's size was not known: readers built from keys have no listing.
    pub unlisted: u64,
    /// The cached stage is before a model that this host cannot run.
    pub no_models: u64,
    /// The value is a table: tables are never cached.
    pub table: u64,
    /// The folder has reached its [limit](crate::reader::PushdownReaderBuilder::value_cache_bytes).
    pub folder_full: u64,
    /// The folder cannot be written.
    pub unwritable: u64,
    /// Neither the list nor the store has an ETag of the object, so that a replaced object would go unnoticed.
    pub no_etag: u64,
}

/// Counts by reason.
#[derive(Debug, Default)]
pub(crate) struct NotCachedCounters([AtomicU64; 9]);

impl NotCachedCounters {
    pub(crate) fn count(&self, reason: NotCachedReason) {
        self.0[reason as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> NotCached {
        let count = |reason: NotCachedReason| self.0[reason as usize].load(Relaxed);
        NotCached {
            larger: count(NotCachedReason::Larger),
            random: count(NotCachedReason::Random),
            after_random: count(NotCachedReason::AfterRandom),
            unlisted: count(NotCachedReason::Unlisted),
            no_models: count(NotCachedReason::NoModels),
            table: count(NotCachedReason::Table),
            folder_full: count(NotCachedReason::FolderFull),
            unwritable: count(NotCachedReason::Unwritable),
            no_etag: count(NotCachedReason::NoEtag),
        }
    }
}

impl NotCached {
    /// Each count with its name and its reason in words.
    pub const fn reasons(&self) -> [(&'static str, &'static str, u64); 9] {
        [
            ("larger", "larger than their objects", self.larger),
            (
                "random",
                "larger than their objects before the first random step",
                self.random,
            ),
            (
                "after_random",
                "sent by the gateway after random steps",
                self.after_random,
            ),
            (
                "unlisted",
                "sent by the gateway after random steps, since keys without a listing have no sizes",
                self.unlisted,
            ),
            (
                "no_models",
                "before models that this host cannot run",
                self.no_models,
            ),
            ("table", "tables", self.table),
            (
                "folder_full",
                "without room in the folder, which is full",
                self.folder_full,
            ),
            (
                "unwritable",
                "in a folder that cannot be written",
                self.unwritable,
            ),
            (
                "no_etag",
                "of objects without an ETag, whose replacement would go unnoticed",
                self.no_etag,
            ),
        ]
    }

    /// Sum of all counts.
    pub fn total(&self) -> u64 {
        self.reasons().iter().map(|(_, _, count)| count).sum()
    }
}

/// The reasons with a count above 0.
impl fmt::Display for NotCached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.reasons().into_iter().filter(|(_, _, count)| *count > 0);
        for (index, (_, reason, count)) in counted.enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{count} {reason}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_count() {
        let counters = NotCachedCounters::default();
        let all = [
            NotCachedReason::Larger,
            NotCachedReason::Random,
            NotCachedReason::AfterRandom,
            NotCachedReason::Unlisted,
            NotCachedReason::NoModels,
            NotCachedReason::Table,
            NotCachedReason::FolderFull,
            NotCachedReason::Unwritable,
            NotCachedReason::NoEtag,
        ];
        for (times, reason) in all.into_iter().enumerate() {
            (0..=times).for_each(|_| counters.count(reason));
        }
        let counted = counters.snapshot();
        let counts = counted.reasons().map(|(_, _, count)| count);
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(counted.total(), 45);
        assert_eq!(NotCached::default().to_string(), "");
        let some = NotCached {
            larger: 3,
            folder_full: 1,
            ..NotCached::default()
        };
        assert_eq!(
            some.to_string(),
            "3 larger than their objects, 1 without room in the folder, which is full"
        );
    }
}
