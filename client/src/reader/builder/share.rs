//! What a reader with some settings reads of an epoch, without a reader.

use super::PushdownReaderBuilder;
use crate::{
    epoch::{
        ReadPlan, Worker,
        order::{CheckedRank, ReaderShare},
    },
    error::{Error, Result},
};

impl PushdownReaderBuilder {
    /// What the reader of objects with these settings reads of an epoch of `total` samples. It reads no list and contacts no endpoint.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for settings that divide an epoch among no ranks, workers or batches.
    pub fn share(&self, total: usize) -> Result<ReaderShare> {
        let spec = &self.spec;
        let rank = CheckedRank::new(spec.rank, spec.world);
        let rank = rank.filter(|_| spec.worker < spec.workers && spec.batch_size > 0);
        let rank = rank.ok_or_else(|| {
            Error::config(format!(
                "invalid share of an epoch: expected a rank and a worker below their numbers, and samples in a batch, found rank {} of {}, \
                 worker {} of {} and batches of {}",
                spec.rank, spec.world, spec.worker, spec.workers, spec.batch_size
            ))
        })?;
        Ok(self.plan(rank).reader_share(total))
    }

    /// Which batches a reader of this rank reads.
    pub(super) fn plan(&self, rank: CheckedRank) -> ReadPlan {
        let spec = &self.spec;
        ReadPlan {
            batch_size: spec.batch_size,
            rank,
            shuffle_seed: spec.seed.filter(|_| spec.shuffle),
            order: spec.order,
            epoch: spec.epoch,
            start_position: spec.start_position,
            tail: spec.tail,
            start: spec.start_batch,
            worker: Worker {
                index: spec.worker,
                count: spec.workers,
            },
            limit: spec.limit,
            prefetch_bytes: spec.prefetch_bytes,
            requests: spec.requests,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        epoch::{Rank, Worker, order::Tail},
        reader::PushdownReader,
    };

    #[test]
    fn a_share_follows_from_the_settings() {
        let builder = PushdownReader::builder()
            .rank(Rank { index: 1, world: 3 })
            .worker(Worker { index: 1, count: 2 })
            .batch_size(4)
            .tail(Tail::Even)
            .start_position(6);
        let share = builder.share(50).unwrap();
        assert_eq!((share.rank().sample_count(), share.rank().batch_count()), (14, 4));
        assert_eq!(share.rank().tail_counts().dropped, 2);
        assert_eq!(share.batch_numbers().collect::<Vec<_>>(), [1, 3]);
        for invalid in [
            builder.clone().rank(Rank { index: 3, world: 3 }),
            builder.clone().worker(Worker { index: 2, count: 2 }),
            builder.clone().batch_size(0),
        ] {
            let refused = invalid.share(50).unwrap_err().to_string();
            assert!(
                refused.starts_with("invalid share of an epoch: expected"),
                "{refused}"
            );
        }
    }
}
