//! What waits, by batch: the oldest one's goes first, since the consumer gets that next.

use std::collections::BTreeMap;

/// A queue by the number of the batch, and within a batch first come, first served.
#[derive(Debug)]
pub(crate) struct OldestFirst<T> {
    waiting: BTreeMap<Place, T>,
    tickets: u64,
}

/// A place in the queue: a batch, and a ticket within it.
pub(crate) type Place = (usize, u64);

impl<T> OldestFirst<T> {
    /// Queues something behind all that is there of this batch and of those before it.
    pub(crate) fn push(&mut self, batch: usize, item: T) -> Place {
        let place = (batch, self.tickets);
        self.tickets += 1;
        self.waiting.insert(place, item);
        place
    }

    /// Takes what comes next.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.waiting.pop_first().map(|(_, item)| item)
    }

    /// Takes out what has this place, if it still waits.
    pub(crate) fn remove(&mut self, place: Place) {
        self.waiting.remove(&place);
    }
}

impl<T> Default for OldestFirst<T> {
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
    fn by_batch_and_within_it_first_come_first_served() {
        let mut queue = OldestFirst::default();
        for (batch, item) in [(7, 'c'), (7, 'd'), (6, 'a'), (8, 'e'), (6, 'b')] {
            queue.push(batch, item);
        }
        let gone = queue.push(0, 'x');
        queue.remove(gone);
        queue.remove(gone);
        let order: String = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, "abcde");
    }
}
