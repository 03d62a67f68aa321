//! When rows that the gateway should compute are computed on this host.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// One of this many row groups may be read twice, since the gateway lacks memory for one of its values.
const REPEAT_PERIOD: u64 = 16;

/// What the gateway did not compute so far.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// Row groups that the gateway computed, those with an error of memory included.
    computed_groups: AtomicU64,
    /// Those that were read a second time.
    repeated_groups: AtomicU64,
    is_local: AtomicBool,
}

impl Fallback {
    /// Whether all rows are computed on this host from now on.
    pub(super) fn is_local(&self) -> bool {
        self.is_local.load(Relaxed)
    }

    /// Records that the gateway refused to compute rows. Returns whether it is the first time.
    pub(super) fn observe_refusal(&self) -> bool {
        !self.is_local.swap(true, Relaxed)
    }

    /// Records that the gateway computed a row group, and whether it lacked memory for a value. Such a row group is read again on
    /// this host. If that happens to more than a few, reading plainly costs less.
    pub(super) fn observe_group(&self, lacked_memory: bool) {
        let computed = self.computed_groups.fetch_add(1, Relaxed) + 1;
        if lacked_memory {
            let repeated = self.repeated_groups.fetch_add(1, Relaxed) + 1;
            if repeated > 1 + computed / REPEAT_PERIOD && !self.is_local.swap(true, Relaxed) {
                tracing::warn!(
                    "the gateway lacks memory for values of many row groups: all steps run on this host; raise its \
                     --memory-budget"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_permanent() {
        let fallback = Fallback::default();
        assert!(!fallback.is_local());
        assert!(fallback.observe_refusal());
        assert!(!fallback.observe_refusal(), "not the first one");
        assert!(fallback.is_local());
    }

    /// A data set with a value in each row group that is too large for the gateway is not read twice.
    #[test]
    fn few_row_groups_are_read_twice() {
        let often = Fallback::default();
        often.observe_group(true);
        assert!(!often.is_local(), "a single one");
        often.observe_group(true);
        assert!(often.is_local());

        let rarely = Fallback::default();
        for group in 0..10 * REPEAT_PERIOD {
            rarely.observe_group(group % REPEAT_PERIOD == 3);
        }
        assert!(!rarely.is_local());
    }
}
