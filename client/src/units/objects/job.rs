//! A batch to read.

use std::sync::Arc;

use pushdown::plan::simulate::ReadAhead;

use super::{routes::BatchRoutes, shard_streams::ShardStreams};
use crate::epoch::{BatchProgress, Charge, order::SampleRef};

/// A batch to read.
#[derive(Debug)]
pub(crate) struct BatchJob {
    pub(crate) number: usize,
    pub(crate) samples: Vec<SampleRef>,
    pub(crate) epoch: u32,
    /// Samples of the epoch after this batch.
    pub(crate) samples_left: usize,
    /// The routes of `samples`.
    pub(crate) routes: BatchRoutes,
    /// `None` for samples that the consumer requested directly.
    pub(crate) charge: Option<Arc<Charge>>,
    /// The streams of its shards, in shard order.
    pub(crate) shard_streams: Option<Arc<ShardStreams>>,
    pub(crate) progress: Arc<BatchProgress>,
}

impl BatchJob {
    /// One of the two routes has delivered all its samples, of which there are `samples`.
    pub(super) fn route_is_done(&self, samples: usize) {
        if samples * ReadAhead::MIN_FRACTION_DENOMINATOR >= self.samples.len() {
            self.progress.allow_next();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn a_planned_route_that_is_done_lets_the_next_batch_begin_and_a_trial_does_not() {
        for (samples, begins) in [(0, false), (3, false), (4, true), (28, true)] {
            let sample = |index| SampleRef {
                index,
                position: index as u64,
                is_padding: false,
            };
            let job = BatchJob {
                number: 0,
                samples: (0..32).map(sample).collect(),
                epoch: 0,
                samples_left: 0,
                routes: BatchRoutes::default(),
                charge: None,
                shard_streams: None,
                progress: Arc::new(BatchProgress::new()),
            };
            job.route_is_done(samples);
            let allowed = job.progress.until_next_is_allowed().now_or_never();
            assert_eq!(allowed.is_some(), begins, "{samples} of 32");
        }
    }
}
