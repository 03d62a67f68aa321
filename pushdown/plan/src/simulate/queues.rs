//! Queues of samples for the cores of a tier.

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeSet, BinaryHeap},
};

use super::SampleCost;
use crate::Tiers;

/// Seconds from the start, with a total order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Time(pub(super) f64);

/// Cores that serve samples in order of arrival.
pub(super) struct Gateway {
    /// When each core has finished its queue.
    free: BinaryHeap<Reverse<Time>>,
    speed: f64,
}

/// Cores that serve the oldest batch first.
pub(super) struct Host {
    pub(super) free_cores: usize,
    pub(super) speed: f64,
    pub(super) waiting: BTreeSet<usize>,
}

/// The link of the host and the paths that share it. Each serves samples in order of arrival.
pub(super) struct Network {
    link: Queue,
    /// From the store and from the gateway; `None` if the link is the only path.
    paths: Option<[Queue; 2]>,
}

/// A queue for a bandwidth.
#[derive(Debug, Clone, Copy)]
struct Queue {
    bytes_per_second: f64,
    /// When all bytes before are delivered.
    free: Time,
}

impl Queue {
    const fn new(bytes_per_second: f64) -> Self {
        Self {
            bytes_per_second,
            free: Time(0.0),
        }
    }

    fn seconds(&self, bytes: f64) -> f64 {
        bytes / self.bytes_per_second
    }

    /// Queues bytes, and returns when the first of them is sent.
    fn push(&mut self, now: Time, bytes: f64) -> Time {
        let first_sent = Time(self.free.0.max(now.0));
        self.free = Time(first_sent.0 + self.seconds(bytes));
        first_sent
    }
}

impl Network {
    pub(super) fn new(tiers: &Tiers) -> Self {
        Self {
            link: Queue::new(tiers.link_bytes_per_second),
            paths: tiers
                .paths
                .map(|paths| [paths.store_bytes_per_second, paths.gateway_bytes_per_second].map(Queue::new)),
        }
    }

    /// The queue of the path of a sample.
    fn path(&mut self, sample: &SampleCost) -> Option<&mut Queue> {
        let paths = self.paths.as_mut();
        paths.map(|[store, gateway]| if sample.is_plain { store } else { gateway })
    }

    /// Queues a sample on its path, and returns when its first byte reaches the link. `None` if the link is the only path.
    pub(super) fn enter_path(&mut self, now: Time, sample: &SampleCost) -> Option<Time> {
        self.path(sample).map(|path| path.push(now, sample.bytes))
    }

    /// Queues a sample on the link, and returns when its last byte has arrived: it follows the first one at the bandwidth of the path
    /// or of the link, whichever is lower.
    pub(super) fn cross_link(&mut self, now: Time, sample: &SampleCost) -> Time {
        let path_seconds = self.path(sample).map_or(0.0, |path| path.seconds(sample.bytes));
        self.link.push(now, sample.bytes);
        self.link.free.max(Time(now.0 + path_seconds))
    }
}

impl Gateway {
    pub(super) fn new(cores: f64) -> Self {
        let (count, speed) = whole_cores(cores);
        Self {
            free: (0..count).map(|_| Reverse(Time(0.0))).collect(),
            speed,
        }
    }

    /// Queues work that arrives now, and returns when it is done.
    pub(super) fn run(&mut self, now: Time, seconds: f64) -> Time {
        if seconds <= 0.0 {
            return now;
        }
        let free = self.free.pop().map_or(now, |Reverse(free)| free);
        let done = free.max(now).after(seconds, self.speed);
        self.free.push(Reverse(done));
        done
    }

    /// Runs work immediately, and returns when it is done. Work already queued is delayed by it. For the small amount of work
    /// that a store does per object.
    pub(super) fn interrupt(&mut self, now: Time, seconds: f64) -> Time {
        self.run(now, seconds);
        now.after(seconds, self.speed)
    }
}

impl Host {
    pub(super) fn new(cores: f64) -> Self {
        let (free_cores, speed) = whole_cores(cores);
        Self {
            free_cores,
            speed,
            waiting: BTreeSet::new(),
        }
    }
}

/// A whole number of cores and their relative speed: fractional cores become slower ones.
fn whole_cores(cores: f64) -> (usize, f64) {
    let count = cores.ceil().max(1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of cores"
    )]
    (count as usize, cores / count)
}

impl Time {
    /// The time after this many seconds of work. No work takes no time, even at speed 0.
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
