//! A queue that serves the oldest batch first, since the consumer gets it next.

use std::collections::BTreeMap;

/// A queue ordered by batch number; first in, first out within a batch.
#[derive(Debug)]
pub(crate) struct BatchQueue<T> {
    waiting: BTreeMap<Ticket, T>,
    tickets: u64,
}

/// A position in the queue: a batch number, and a counter within the queue.
pub(crate) type Ticket = (usize, u64);

impl<T> BatchQueue<T> {
    /// Adds an item after all items of this and older batches.
    pub(crate) fn push(&mut self, batch: usize, item: T) -> Ticket {
        let ticket = (batch, self.tickets);
        self.tickets += 1;
        self.waiting.insert(ticket, item);
        ticket
    }

    /// Removes and returns the first item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.waiting.pop_first().map(|(_, item)| item)
    }

    /// Removes and returns the item of a ticket, if it is still queued.
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        self.waiting.remove(&ticket)
    }
}

impl<T> Default for BatchQueue<T> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            tickets: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_batches_go_first_and_within_a_batch_first_in_first_out() {
        let mut queue = BatchQueue::default();
        for (batch, item) in [(7, 'c'), (7, 'd'), (6, 'a'), (8, 'e'), (6, 'b')] {
            queue.push(batch, item);
        }
        let removed = queue.push(0, 'x');
        assert_eq!(queue.remove(removed), Some('x'));
        assert_eq!(queue.remove(removed), None);
        let order: String = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, "abcde");
    }
}
