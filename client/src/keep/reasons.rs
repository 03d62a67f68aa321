//! Why values are not kept, and how many.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Why a value is not in the folder of kept values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Larger,
    Random,
    AfterRandom,
    Unlisted,
    NoModels,
    Table,
    FolderFull,
    Unwritable,
}

/// How many samples came whose values were not kept in the folder of [`keep`](crate::PushdownReaderBuilder::keep), by the reason.
/// Without that folder there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotKept {
    /// The value has more bytes than its object, at every stage.
    pub larger: u64,
    /// The value has more bytes than its object at every stage before the first random step; later ones differ in each epoch.
    pub random: u64,
    /// The gateway had run random steps when the value came: where to stop was left to it, since the value's size was not known.
    pub after_random: u64,
    /// The same, since the object's size was not known: of keys that are given, nothing is listed.
    pub unlisted: u64,
    /// The value belongs before a model that this host cannot run.
    pub no_models: u64,
    /// The value is a table: these are never kept.
    pub table: u64,
    /// The folder has [as many bytes as it may](crate::PushdownReaderBuilder::keep_bytes).
    pub folder_full: u64,
    /// The folder cannot be written.
    pub unwritable: u64,
}

/// Counts of each reason.
#[derive(Debug, Default)]
pub(crate) struct NotKeptCounters([AtomicU64; 8]);

impl NotKeptCounters {
    pub(crate) fn count(&self, reason: Reason) {
        self.0[reason as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> NotKept {
        let of = |reason: Reason| self.0[reason as usize].load(Relaxed);
        NotKept {
            larger: of(Reason::Larger),
            random: of(Reason::Random),
            after_random: of(Reason::AfterRandom),
            unlisted: of(Reason::Unlisted),
            no_models: of(Reason::NoModels),
            table: of(Reason::Table),
            folder_full: of(Reason::FolderFull),
            unwritable: of(Reason::Unwritable),
        }
    }
}

impl NotKept {
    /// Each count with its name and the reason in words.
    pub const fn reasons(&self) -> [(&'static str, &'static str, u64); 8] {
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
        ]
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.reasons().iter().map(|(_, _, count)| count).sum()
    }
}

/// The reasons that there are, each with its count.
impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let there = self.reasons().into_iter().filter(|(_, _, count)| *count > 0);
        for (index, (_, reason, count)) in there.enumerate() {
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
    fn each_reason_has_a_count_of_its_own() {
        let counters = NotKeptCounters::default();
        let all = [
            Reason::Larger,
            Reason::Random,
            Reason::AfterRandom,
            Reason::Unlisted,
            Reason::NoModels,
            Reason::Table,
            Reason::FolderFull,
            Reason::Unwritable,
        ];
        for (times, reason) in all.into_iter().enumerate() {
            (0..=times).for_each(|_| counters.count(reason));
        }
        let counted = counters.snapshot();
        let counts = counted.reasons().map(|(_, _, count)| count);
        assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(counted.total(), 36);
        assert_eq!(NotKept::default().to_string(), "");
        let some = NotKept {
            larger: 3,
            folder_full: 1,
            ..NotKept::default()
        };
        assert_eq!(
            some.to_string(),
            "3 larger than their objects, 1 without room in the folder, which is full"
        );
    }
}
