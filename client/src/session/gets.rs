//! Whose turn it is to read an object: the oldest batch's.

use std::{num::NonZeroUsize, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::oldest_first::{self, OldestFirst};

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
    /// While any waits no turn is free.
    waiting: OldestFirst<oneshot::Sender<Turn>>,
}

/// A place among those who wait. Dropping it gives it up.
#[derive(Debug)]
struct Waits<'a>(&'a Gets, oldest_first::Place);

impl Gets {
    pub(crate) fn new(count: NonZeroUsize) -> Self {
        let turns = Turns {
            free: count.get(),
            waiting: OldestFirst::default(),
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
            let (_waits, turn) = {
                let mut turns = self.turns.lock();
                if turns.free > 0 {
                    turns.free -= 1;
                    return Turn(self.clone());
                }
                let (sender, turn) = oneshot::channel();
                (Waits(self, turns.waiting.push(batch, sender)), turn)
            };
            // A place is taken out with a turn for it, or by whoever gives it up.
            if let Ok(turn) = turn.await {
                return turn;
            }
        }
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.turns.lock().waiting.remove(self.1);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns = self.0.turns.lock();
        let next = turns.waiting.pop();
        turns.free += usize::from(next.is_none());
        drop(turns);
        if let Some(next) = next {
            // Should whoever waited leave in this moment, the turn is dropped, and goes to the one after.
            drop(next.send(Self(self.0.clone())));
        }
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
        let turn = gets.turn(1).now_or_never();
        assert!(turn.is_some());
        assert!(gets.turn(1).now_or_never().is_none());
        assert!(gets.turns.lock().waiting.pop().is_none(), "nobody waits any more");
    }
}
