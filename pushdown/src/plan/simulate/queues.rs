//! Where samples wait for cores.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeSet, BinaryHeap},
};

/// Seconds from the start, in their order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time(pub(super) f64);

/// Cores that take what has waited longest.
pub(super) struct Gateway {
    /// When each has done what it has.
    free: BinaryHeap<Reverse<Time>>,
    speed: f64,
}

/// Cores that take what is of the oldest batch.
pub(super) struct Host {
    pub(super) free: usize,
    pub(super) speed: f64,
    pub(super) waiting: BTreeSet<usize>,
}

// === impl Gateway ===

impl Gateway {
    pub(super) fn new(cores: f64) -> Self {
        let (count, speed) = servers(cores);
        Self {
            free: (0..count).map(|_| Reverse(Time(0.0))).collect(),
            speed,
        }
    }

    /// When so many seconds of work are done that come now.
    pub(super) fn run(&mut self, now: Time, seconds: f64) -> Time {
        if seconds <= 0.0 {
            return now;
        }
        let free = self.free.pop().map_or(now, |Reverse(free)| free);
        let done = free.max(now).after(seconds, self.speed);
        self.free.push(Reverse(done));
        done
    }

    /// When so many seconds of work are done that wait for nothing: what runs comes later by them. It is what a store does for an
    /// object, which is little.
    pub(super) fn interrupt(&mut self, now: Time, seconds: f64) -> Time {
        self.run(now, seconds);
        now.after(seconds, self.speed)
    }
}

// === impl Host ===

impl Host {
    pub(super) fn new(cores: f64) -> Self {
        let (free, speed) = servers(cores);
        Self {
            free,
            speed,
            waiting: BTreeSet::new(),
        }
    }
}

/// Whole cores, and how fast they are: a part of a core is a slower one.
fn servers(cores: f64) -> (usize, f64) {
    let count = cores.ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of cores"
    )]
    (count as usize, cores / count)
}

// === impl Time ===

impl Time {
    /// So many seconds of work later. Nothing to do takes no time on cores of any speed.
    pub(super) fn after(self, seconds: f64, speed: f64) -> Self {
        if seconds > 0.0 {
            Self(self.0 + seconds / speed)
        } else {
            self
        }
    }
}

impl Eq for Time {}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
