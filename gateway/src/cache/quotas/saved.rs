//! The quotas as they are saved on the disk of the cache, so that values of an earlier run keep theirs.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

use super::{
    MAX_SETS, Quotas,
    quota::LevelBytes,
    set::{Set, SetId},
};

/// The version of the saved form.
const VERSION: u32 = 1;

/// The sets with values on the disk, at a time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SavedQuotas {
    version: u32,
    /// The time of the quotas, and that of the clock on the wall, in seconds.
    now: Duration,
    unix_seconds: u64,
    sets: BTreeMap<SetId, Set>,
}

impl SavedQuotas {
    /// Parses saved quotas; `None` if they are damaged or of another version.
    pub(crate) fn from_json(json: &[u8]) -> Option<Self> {
        let mut saved: Self = serde_json::from_slice(json).ok()?;
        saved.sets.retain(|_, set| set.quota.bytes().is_valid());
        while saved.sets.len() > MAX_SETS {
            saved.sets.pop_last();
        }
        (saved.version == VERSION).then_some(saved)
    }

    /// The saved form.
    ///
    /// # Errors
    /// Never in practice: all parts are numbers and text.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The time of the quotas at the start of a later run: the time between them counts.
    pub(crate) fn resumed_at(&self, clock: SystemTime) -> Duration {
        let seconds = unix_seconds(clock).saturating_sub(self.unix_seconds);
        self.now.saturating_add(Duration::from_secs(seconds))
    }
}

impl Quotas {
    /// How often anything has changed that [`Quotas::save`] saves.
    pub(crate) const fn changes(&self) -> u64 {
        self.changes
    }

    /// A copy of the sets that have a quota of the disk.
    pub(crate) fn save(&self, now: Duration, clock: SystemTime) -> SavedQuotas {
        let sets = self.sets.iter().filter(|(_, set)| set.quota.bytes().disk > 0.0);
        SavedQuotas {
            version: VERSION,
            now,
            unix_seconds: unix_seconds(clock),
            sets: sets.map(|(id, set)| (*id, set.clone())).collect(),
        }
    }

    /// Takes over the sets of an earlier run, at the time [`SavedQuotas::resumed_at`]. If there is less space now, each gets the
    /// same part of its quota.
    pub(crate) fn resume(&mut self, saved: SavedQuotas, now: Duration) {
        self.sets = saved.sets;
        let granted = |sets: &BTreeMap<SetId, Set>| {
            let bytes = sets.values().map(|set| set.quota.bytes());
            bytes.fold(LevelBytes::default(), LevelBytes::plus)
        };
        let ratio = self.capacity.ratio_of(granted(&self.sets));
        for set in self.sets.values_mut() {
            set.restart();
            set.shrink_to(ratio);
        }
        self.granted = granted(&self.sets);
        let pinned = self.sets.iter().filter(|(_, set)| !set.leases.is_empty());
        for id in pinned.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.grow_pin(id);
        }
        // The next reallocation is an interval away: until then all sets of the earlier run have their quotas.
        self.reallocated_at = Some(now);
    }
}

fn unix_seconds(clock: SystemTime) -> u64 {
    clock.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
