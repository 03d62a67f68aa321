//! The samples of a batch that are read plainly and have not begun.

use std::{
    collections::{BTreeSet, VecDeque},
    mem,
};

use pushdown_exec::sync::Mutex;

use super::part::{Part, joined_range};
use crate::{epoch::order::SampleRef, objects::Objects, units::objects::BatchJob};

/// The most bytes of a request for several entries of a shard.
const MAX_JOINED_BYTES: u64 = 8 << 20;
/// The same in a batch that tries both routes: a request that has begun is not cancelled when the gateway turns out to be faster.
const MAX_JOINED_TRIAL_BYTES: u64 = 256 << 10;

/// Parts of samples that have not been requested yet: in the order of slots, or those of shards by shard and offset.
#[derive(Debug)]
pub(in crate::units::objects) struct PlainQueue<'a> {
    objects: &'a Objects,
    samples: &'a [SampleRef],
    max_joined_bytes: u64,
    state: Mutex<QueuedParts>,
}

#[derive(Debug, Default)]
struct QueuedParts {
    parts: VecDeque<Part>,
    /// Slots of which a part was requested: the others may still be in the queue.
    begun: BTreeSet<usize>,
}

impl<'a> PlainQueue<'a> {
    pub(in crate::units::objects) fn new(objects: &'a Objects, job: &'a BatchJob, slots: Vec<usize>) -> Self {
        let queue = Self {
            objects,
            samples: &job.samples,
            max_joined_bytes: if job.routes.is_exploring() {
                MAX_JOINED_TRIAL_BYTES
            } else {
                MAX_JOINED_BYTES
            },
            state: Mutex::default(),
        };
        queue.put_back(slots);
        queue
    }

    /// Removes all samples that have not begun, to move them to another route.
    pub(in crate::units::objects) fn take_all(&self) -> Vec<usize> {
        let mut state = self.state.lock();
        let QueuedParts { parts, begun } = &mut *state;
        let (taken, rest): (VecDeque<Part>, VecDeque<Part>) = mem::take(parts)
            .into_iter()
            .partition(|part| !begun.contains(&part.slot));
        *parts = rest;
        let values = taken.iter().filter(|part| part.column.is_none());
        values.map(|part| part.slot).collect()
    }

    /// Adds samples, such as those that cannot take the other route.
    pub(in crate::units::objects) fn put_back(&self, slots: Vec<usize>) {
        let parts = slots
            .into_iter()
            .flat_map(|slot| Part::of_sample(self.objects, slot, self.samples[slot].index));
        self.put_back_parts(parts);
    }

    /// Removes all parts.
    pub(super) fn take_parts(&self) -> VecDeque<Part> {
        mem::take(&mut self.state.lock().parts)
    }

    /// Adds parts.
    pub(super) fn put_back_parts(&self, parts: impl IntoIterator<Item = Part>) {
        let (objects, mut state) = (self.objects, self.state.lock());
        state.parts.extend(parts);
        if objects.has_members() {
            let parts = state.parts.make_contiguous();
            parts.sort_by_key(|part| (objects.shard_number(part.index), part.offset()));
        }
    }

    /// Removes the parts that the next request reads: one object, or entries of a shard that are near each other.
    pub(super) fn pop(&self) -> Option<VecDeque<Part>> {
        let mut state = self.state.lock();
        let QueuedParts { parts, begun } = &mut *state;
        let mut joined = VecDeque::from([parts.pop_front()?]);
        while let (Some(last), Some(next)) = (joined.back(), parts.front())
            && self.is_joined(&joined, last, next)
        {
            joined.extend(parts.pop_front());
        }
        begun.extend(joined.iter().map(|part| part.slot));
        Some(joined)
    }

    fn is_joined(&self, joined: &VecDeque<Part>, last: &Part, next: &Part) -> bool {
        let bytes = || {
            let end = next.range?.entry().end;
            end.checked_sub(joined_range(joined)?.start)
        };
        self.objects.shard_number(last.index) == self.objects.shard_number(next.index)
            && next.is_near(last)
            && bytes().is_some_and(|bytes| bytes <= self.max_joined_bytes)
    }
}

#[cfg(test)]
mod tests;
