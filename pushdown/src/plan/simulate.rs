//! The tiers as a line of queues, without a clock: what a plan comes to, sample by sample.

use std::{cmp::Reverse, collections::BinaryHeap, num::NonZeroUsize};

use super::{Class, Plan, Tiers, float};

/// What one sample takes on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Job {
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

/// Seconds from the first sample to the last, where each tier works on what the tier before it has done, in the order in
/// which that comes. The trainer takes so many samples at once, in their own order, as soon as all of them are there.
pub fn run(tiers: &Tiers, jobs: &[Job], batch: NonZeroUsize) -> f64 {
    let ready = vec![0.0; jobs.len()];
    let (ready, host_cores) = if tiers.shared {
        (ready, tiers.host_cores)
    } else {
        (
            serve(&ready, tiers.gateway_cores, |job| jobs[job].gateway),
            tiers.host_cores,
        )
    };
    let ready = serve(&ready, 1.0, |job| jobs[job].bytes / tiers.link_bytes);
    let both = |job: usize| if tiers.shared { jobs[job].gateway } else { 0.0 } + jobs[job].host;
    let ready = serve(&ready, host_cores, both);
    let mut trained = 0.0_f64;
    for batch in ready.chunks(batch.get()) {
        let there = batch.iter().copied().fold(trained, f64::max);
        trained = there + tiers.trainer_seconds * float(batch.len() as u64);
    }
    trained
}

/// When each job is done by `servers` that take the one that has waited longest. A part of a server is a slower one.
fn serve(ready: &[f64], servers: f64, work: impl Fn(usize) -> f64) -> Vec<f64> {
    let count = servers.ceil().max(1.0);
    let speed = servers / count;
    let mut order: Vec<usize> = (0..ready.len()).collect();
    order.sort_by(|a, b| ready[*a].total_cmp(&ready[*b]));
    // Times are not negative, so that their bits are in their order.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of cores"
    )]
    let mut free: BinaryHeap<Reverse<u64>> = (0..count as usize).map(|_| Reverse(0)).collect();
    let mut done = vec![0.0; ready.len()];
    for job in order {
        let at = free.pop().map_or(0.0, |Reverse(bits)| f64::from_bits(bits));
        let work = work(job);
        done[job] = at.max(ready[job]) + if work > 0.0 { work / speed } else { 0.0 };
        free.push(Reverse(if work > 0.0 { done[job] } else { at }.to_bits()));
    }
    done
}
