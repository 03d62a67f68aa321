//! The tiers as a line of queues, without a clock: what a plan comes to, sample by sample.

mod epoch;
mod queues;

use std::num::NonZeroUsize;

use super::{Class, Plan, Tiers};
use epoch::Epoch;

/// What one sample takes on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
    /// It comes as it is stored, and is asked for by itself.
    pub plain: bool,
    /// CPU seconds at the gateway.
    pub gateway: f64,
    /// Bytes on the link.
    pub bytes: f64,
    /// CPU seconds on the host.
    pub host: f64,
}

/// The first `count` samples by a plan, each class and each way in its share, spread evenly.
pub fn jobs(classes: &[Class], plan: &Plan, count: usize) -> Vec<Job> {
    let mut ways = Vec::new();
    for (class, shares) in classes.iter().zip(&plan.shares) {
        for (candidate, share) in class
            .candidates
            .iter()
            .zip(shares)
            .filter(|(_, share)| **share > 0.0)
        {
            let job = Job {
                plain: candidate.stage == 0,
                gateway: candidate.gateway_seconds,
                bytes: candidate.bytes,
                host: candidate.host_seconds,
            };
            ways.push((job, *share, 0.0));
        }
    }
    // Whoever is furthest behind its share goes next.
    (0..count)
        .filter_map(|_| {
            for (_, share, owed) in &mut ways {
                *owed += *share;
            }
            let next = ways.iter_mut().max_by(|a, b| a.2.total_cmp(&b.2))?;
            next.2 -= 1.0;
            Some(next.0)
        })
        .collect()
}

/// How far ahead of the trainer a reader asks: what the client's reader does by default, and what the simulator takes it to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Samples of a batch.
    pub batch: NonZeroUsize,
    /// Batches that are on their way at a time at most.
    pub batches: NonZeroUsize,
    /// Samples that are read as they are stored at a time, of all batches.
    pub gets: NonZeroUsize,
}

impl Reading {
    /// Batches on their way where nothing else is said.
    pub const BATCHES: NonZeroUsize = NonZeroUsize::new(4).unwrap();
    /// Stored samples that are read at a time where nothing else is said.
    pub const GETS: NonZeroUsize = NonZeroUsize::new(32).unwrap();
    /// A way that brings one of so many samples of a batch has a part in the plan, and lets the next batch begin when it has brought
    /// them. Of trials there are fewer.
    pub const PART: usize = 8;

    /// Batches of so many samples, where nothing else is said.
    pub const fn of(batch: NonZeroUsize) -> Self {
        Self {
            batch,
            batches: Self::BATCHES,
            gets: Self::GETS,
        }
    }
}

/// Seconds from the first sample to the last. Gateway and link take what comes in the order in which it comes, the host what is of
/// the oldest batch. A batch is asked for once half of the one before it has come, or all that one way brings of it. The trainer takes
/// batches in their order, each as soon as all of it is there.
pub fn run(tiers: &Tiers, jobs: &[Job], reading: Reading) -> f64 {
    Epoch::new(tiers, jobs, reading).seconds()
}

#[cfg(test)]
mod tests;
