//! Settings that do not apply to what a reader reads. They are refused here, in one form.

use super::PushdownReaderBuilder;
use crate::{
    epoch::order::{SampleOrder, Tail},
    error::{Error, Result},
    shards::ColumnSelection,
};

/// What the samples of a reader are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleKind {
    /// Objects, and members of shards with an index.
    Objects,
    /// Members of shards without an index.
    Shards,
    /// Rows of Parquet objects.
    #[cfg(feature = "tables")]
    Rows,
}

impl SampleKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Objects => "objects",
            Self::Shards => "shards without an index",
            #[cfg(feature = "tables")]
            Self::Rows => "rows of a table",
        }
    }

    /// How a reader of these resumes.
    const fn resume(self) -> &'static str {
        match self {
            Self::Objects => "resume with start_position",
            Self::Shards => "resume with shards_read",
            #[cfg(feature = "tables")]
            Self::Rows => "resume with rows_read",
        }
    }
}

/// The error of a setting that does not apply to a source.
pub(super) fn does_not_apply(setting: &str, source: &str, expected: &str) -> Error {
    Error::config(format!(
        "{setting} does not apply to {source}: expected {expected}"
    ))
}

impl PushdownReaderBuilder {
    /// Refuses settings that do not apply to these samples.
    pub(super) fn check_applies(&self, kind: SampleKind) -> Result<()> {
        let spec = &self.spec;
        let refuse = |setting: &str, expected: &str| Err(does_not_apply(setting, kind.name(), expected));
        if kind != SampleKind::Objects && spec.start_position != 0 {
            let setting = format!("start_position={}", spec.start_position);
            return refuse(&setting, &format!("0; {}", kind.resume()));
        }
        if kind != SampleKind::Shards && !spec.shards_read.is_empty() {
            return refuse("shards_read", &format!("none; {}", kind.resume()));
        }
        if kind != SampleKind::Shards && spec.columns != ColumnSelection::default() {
            return refuse(
                "columns",
                "none; those of an index are selected by `ShardIndex::samples`",
            );
        }
        #[cfg(feature = "tables")]
        if kind != SampleKind::Rows && !spec.rows_read.is_empty() {
            return refuse("rows_read", &format!("none; {}", kind.resume()));
        }
        match kind {
            SampleKind::Objects => Ok(()),
            SampleKind::Shards if spec.start_batch != 0 => {
                let setting = format!("start_at={}", spec.start_batch);
                refuse(&setting, &format!("0; {}", kind.resume()))
            }
            SampleKind::Shards if spec.value_cache.is_some() => {
                refuse("value_cache", "none; each epoch streams all shards")
            }
            SampleKind::Shards if spec.tail != Tail::Short => {
                refuse(tail_setting(spec.tail), "short; the number of samples is unknown")
            }
            SampleKind::Shards if self.is_shuffled() && spec.order == SampleOrder::Global => refuse(
                "order=global",
                "shards; a shuffle of all samples requires an index, which `pushdown index` makes",
            ),
            SampleKind::Shards => Ok(()),
            #[cfg(feature = "tables")]
            SampleKind::Rows if spec.workers != 1 => {
                let setting = format!("worker={} of {}", spec.worker, spec.workers);
                refuse(&setting, "0 of 1; divide them by ranks")
            }
            #[cfg(feature = "tables")]
            SampleKind::Rows if spec.order != SampleOrder::Global => refuse(
                "order=shards",
                "global; row groups are shuffled, and the rows of each",
            ),
            #[cfg(feature = "tables")]
            SampleKind::Rows if spec.tail == Tail::Pad => {
                refuse(tail_setting(spec.tail), "short, even or drop; no row is padding")
            }
            #[cfg(feature = "tables")]
            SampleKind::Rows => Ok(()),
        }
    }

    /// Whether samples are shuffled: nothing is without a seed.
    pub(super) const fn is_shuffled(&self) -> bool {
        self.spec.seed.is_some() && self.spec.shuffle
    }
}

/// A tail policy as a setting in a message.
const fn tail_setting(tail: Tail) -> &'static str {
    match tail {
        Tail::Short => "tail=short",
        Tail::Even => "tail=even",
        Tail::Drop => "tail=drop",
        Tail::Pad => "tail=pad",
    }
}
