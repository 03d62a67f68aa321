//! Whose turn it is to read an object: the oldest batch's.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Objects that are read at a time, of all batches: those of the oldest, which is waited for, go first. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Gets {
    turns: Arc<Mutex<Turns>>,
    count: NonZeroUsize,
}

/// A turn. Dropping it gives it to the next.
#[derive(Debug)]
#[must_use = "the next has its turn as soon as this is dropped"]
pub(super) struct Turn(Gets);

#[derive(Debug)]
struct Turns {
    free: usize,
    /// By the number of the batch, and within it first come, first served. While any waits no turn is free.
    waiting: BTreeMap<(usize, u64), oneshot::Sender<Turn>>,
    tickets: u64,
}

impl Gets {
    pub(crate) fn new(count: NonZeroUsize) -> Self {
        let turns = Turns {
            free: count.get(),
            waiting: BTreeMap::new(),
            tickets: 0,
        };
        Self {
            turns: Arc::new(Mutex::new(turns)),
            count,
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count.get()
    }

    /// Waits for a turn of a batch. Dropping the future gives up the place.
    pub(super) async fn turn(&self, batch: usize) -> Turn {
        loop {
            let waits = {
                let mut turns = self.turns.lock();
                if turns.free > 0 {
                    turns.free -= 1;
                    return Turn(self.clone());
                }
                let (sender, waits) = oneshot::channel();
                let ticket = turns.tickets;
                turns.tickets += 1;
                turns.waiting.insert((batch, ticket), sender);
                waits
            };
            // A place is taken out with a turn for it, and never without one.
            if let Ok(turn) = waits.await {
                return turn;
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = self.0.turns.lock();
        // Whoever has left meanwhile has no use for it.
        while let Some((_, next)) = turns.waiting.pop_first() {
            if next.is_closed() {
                continue;
            }
            drop(turns);
            // Should it leave in this moment, the turn is dropped, and goes to the next.
            drop(next.send(Self(self.0.clone())));
            return;
        }
        turns.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{FutureExt as _, poll};

    use super::*;

    #[tokio::test]
    async fn the_oldest_batch_goes_first_whoever_asked_first() {
        let gets = Gets::new(NonZeroUsize::MIN);
        let turn = gets.turn(1).await;
        let (mut third, mut first, mut second) = (pin!(gets.turn(2)), pin!(gets.turn(0)), pin!(gets.turn(1)));
        assert!(poll!(&mut third).is_pending() && poll!(&mut first).is_pending());
        assert!(poll!(&mut second).is_pending());
        drop(turn);
        let turn = first.now_or_never().unwrap();
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        drop(turn);
        let turn = second.now_or_never().unwrap();
        assert!(poll!(&mut third).is_pending());
        drop(turn);
        assert!(third.now_or_never().is_some());
    }

    #[tokio::test]
    async fn within_a_batch_it_is_first_come_first_served() {
        let gets = Gets::new(NonZeroUsize::MIN);
        let turn = gets.turn(0).await;
        let (mut first, mut second) = (pin!(gets.turn(0)), pin!(gets.turn(0)));
        assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
        drop(turn);
        assert!(poll!(&mut second).is_pending());
        assert!(first.now_or_never().is_some());
    }

    #[tokio::test]
    async fn whoever_leaves_takes_no_turn_along() {
        let gets = Gets::new(NonZeroUsize::MIN);
        let turn = gets.turn(0).await;
        let mut left = Box::pin(gets.turn(0));
        let mut leaves = Box::pin(gets.turn(0));
        assert!(poll!(&mut left).is_pending() && poll!(&mut leaves).is_pending());
        drop(left);
        // The turn is on its way to it when it leaves.
        drop(turn);
        drop(leaves);
        assert!(gets.turn(1).now_or_never().is_some());
    }
}
