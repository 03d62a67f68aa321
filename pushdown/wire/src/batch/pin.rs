//! What a batch request states about how long its values stay in the result cache.

use pushdown_core::{Error, Result};
use serde::{Deserialize, Serialize};

/// A lease on a part of the result cache for the values of a batch that is not delivered. It never changes a value. For a gateway with
/// the feature [`DELIVER`](crate::Features::DELIVER).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Time from now in seconds, 1 to 2,592,000 (30 days). A later pin of the same data set renews the lease.
    pub keep_seconds: u32,
}

impl Pin {
    /// Longest lease: 30 days.
    pub const MAX_KEEP_SECONDS: u32 = 30 * 24 * 60 * 60;

    /// Checks the time.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) if it is outside of the range above.
    pub fn check(&self) -> Result<()> {
        if (1..=Self::MAX_KEEP_SECONDS).contains(&self.keep_seconds) {
            return Ok(());
        }
        Err(Error::wire(format!(
            "invalid pin: expected keep_seconds of 1 to {}, found {}",
            Self::MAX_KEEP_SECONDS,
            self.keep_seconds
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_a_second_to_30_days() {
        let check = |keep_seconds| Pin { keep_seconds }.check();
        for keep_seconds in [1, 86_400, 2_592_000] {
            check(keep_seconds).unwrap();
        }
        for keep_seconds in [0, 2_592_001, u32::MAX] {
            let error = check(keep_seconds).unwrap_err().to_string();
            assert!(
                error.contains("expected keep_seconds of 1 to 2592000, found"),
                "{error}"
            );
        }
    }
}
