//! Settings that do not apply to what a reader reads. They are refused here, in one form.

use super::PushdownReaderBuilder;
#[cfg(feature = "tables")]
use crate::units::rows;
use crate::{
    epoch::{
        Promises, SavedState,
        order::{SampleOrder, Tail},
    },
    error::{Error, Result},
    shards::ColumnSelection,
    units::{objects, shards},
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

    /// What a reader of these promises.
    const fn promises(self) -> Promises {
        match self {
            Self::Objects => objects::PROMISES,
            Self::Shards => shards::PROMISES,
            #[cfg(feature = "tables")]
            Self::Rows => rows::PROMISES,
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
        let Promises { is_counted, state } = kind.promises();
        let resume = format!("resume with {}", state.setting());
        let refuse = |setting: &str, expected: &str| Err(does_not_apply(setting, kind.name(), expected));
        if state != SavedState::StartPosition && spec.start_position != 0 {
            let setting = format!("start_position={}", spec.start_position);
            return refuse(&setting, &format!("0; {resume}"));
        }
        if state != SavedState::ShardsRead && !spec.shards_read.is_empty() {
            return refuse("shards_read", &format!("none; {resume}"));
        }
        if kind != SampleKind::Shards && spec.columns != ColumnSelection::default() {
            return refuse(
                "columns",
                "none; those of an index are selected by `ShardIndex::samples`",
            );
        }
        #[cfg(feature = "tables")]
        if state != SavedState::RowsRead && !spec.rows_read.is_empty() {
            return refuse("rows_read", &format!("none; {resume}"));
        }
        if !is_counted && spec.start_batch != 0 {
            let setting = format!("start_at={}", spec.start_batch);
            return refuse(&setting, &format!("0; {resume}"));
        }
        if kind == SampleKind::Shards && spec.value_cache.is_some() {
            return refuse("value_cache", "none; each epoch streams all shards");
        }
        if !is_counted && spec.tail != Tail::Short {
            return refuse(tail_setting(spec.tail), "short; the number of samples is unknown");
        }
        if !is_counted && self.is_shuffled() && spec.order == SampleOrder::Global {
            return refuse(
                "order=global",
                "shards; a shuffle of all samples requires an index, which `pushdown index` makes",
            );
        }
        match kind {
            SampleKind::Objects | SampleKind::Shards => Ok(()),
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
