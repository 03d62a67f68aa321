//! The shuffle buffer, and how far it is in the shards of a reader.

use std::collections::{BTreeSet, HashMap};

use super::state::{Progress, SampleId};
use crate::epoch::order::BufferDraws;

/// The most bytes in the buffer, but for the last sample that enters it.
const MAX_BUFFER_BYTES: u64 = 1 << 30;

/// Samples enter it in the order of their shards, and leave it at random. Its draws are those of
/// [`SampleOrder::Shards`](crate::reader::SampleOrder::Shards).
///
/// It is full with its number of samples, or with [`MAX_BUFFER_BYTES`]. Then one leaves before the next enters.
#[derive(Debug)]
pub(super) struct ShuffleBuffer<T> {
    capacity: usize,
    max_bytes: u64,
    draws: BufferDraws,
    held: Vec<Held<T>>,
    bytes: u64,
    /// Places of samples that were in the buffer of an earlier reader and are read again.
    missing: HashMap<SampleId, usize>,
    samples: u64,
    begun: usize,
    next: Option<SampleId>,
    /// The place of the last sample that left, until another enters.
    free: Option<usize>,
    etags: HashMap<u32, String>,
}

#[derive(Debug)]
struct Held<T> {
    id: SampleId,
    bytes: u64,
    /// `None` while it is missing.
    sample: Option<T>,
}

impl<T> ShuffleBuffer<T> {
    /// The buffer of `capacity` samples of a reader that goes on from `progress`.
    pub(super) fn new(capacity: usize, draws: BufferDraws, progress: Progress) -> Self {
        let missing = progress.held.iter().enumerate();
        let held = progress.held.iter().map(|id| Held {
            id: *id,
            bytes: 0,
            sample: None,
        });
        Self {
            capacity: capacity.max(1),
            max_bytes: MAX_BUFFER_BYTES,
            draws,
            missing: missing.map(|(place, id)| (*id, place)).collect(),
            held: held.collect(),
            bytes: 0,
            samples: progress.samples,
            begun: progress.begun,
            next: progress.next,
            free: progress.free,
            etags: progress.etags.into_iter().collect(),
        }
    }

    /// Whether a sample enters before the next one leaves, if there is one.
    pub(super) fn has_room(&self) -> bool {
        self.is_missing_samples() || (self.held.len() < self.capacity && self.bytes < self.max_bytes)
    }

    /// Whether no sample is in it, or is to arrive again.
    pub(super) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether samples of an earlier reader have not arrived.
    pub(super) fn is_missing_samples(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Adds a sample of the shard with the number `task` among those of the reader.
    pub(super) fn add(&mut self, task: usize, id: SampleId, bytes: u64, sample: T) {
        self.bytes = self.bytes.saturating_add(bytes);
        let held = Held {
            id,
            bytes,
            sample: Some(sample),
        };
        if let Some(place) = self.missing.remove(&id) {
            self.held[place] = held;
            return;
        }
        let last = self.held.len();
        self.held.push(held);
        if let Some(place) = self.free.take() {
            self.held.swap(place, last);
        }
        self.begun = task + 1;
        self.next = Some(SampleId {
            number: id.number.saturating_add(1),
            ..id
        });
    }

    /// Records the version of the shard at a position of the epoch.
    pub(super) fn set_etag(&mut self, position: u32, etag: &str) {
        if self.etags.get(&position).is_none_or(|known| known != etag) {
            self.etags.insert(position, etag.to_owned());
        }
    }

    /// Records that all samples of a shard have been added.
    pub(super) fn end_shard(&mut self, task: usize) {
        if task + 1 >= self.begun {
            self.begun = task + 1;
            self.next = None;
        }
    }

    /// Removes the next sample of the order. `None` if the buffer is empty.
    pub(super) fn draw(&mut self) -> Option<(SampleId, T)> {
        if self.held.is_empty() {
            return None;
        }
        let place = self.draws.place(self.held.len());
        let held = self.held.swap_remove(place);
        self.free = Some(place);
        self.bytes -= held.bytes;
        self.samples += 1;
        Some((held.id, held.sample?))
    }

    /// Samples that have left, including those of earlier readers.
    pub(super) const fn samples(&self) -> u64 {
        self.samples
    }

    /// How far the reader is.
    pub(super) fn progress(&mut self) -> Progress {
        let held: Vec<SampleId> = self.held.iter().map(|held| held.id).collect();
        let mut live: BTreeSet<u32> = held.iter().map(|id| id.position).collect();
        live.extend(self.next.map(|next| next.position));
        self.etags.retain(|position, _| live.contains(position));
        Progress {
            samples: self.samples,
            begun: self.begun,
            next: self.next,
            free: self.free,
            held,
            words: self.draws.words(),
            etags: self.etags.clone().into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_limit_the_buffer_as_well() {
        let draws = BufferDraws::new(Some(1), 0, 0, 0);
        let mut buffer = ShuffleBuffer::new(4, draws, Progress::default());
        buffer.max_bytes = 10;
        let mut left = Vec::new();
        let mut most = 0;
        for number in 0..30_u32 {
            while !buffer.has_room() {
                left.push(buffer.draw().unwrap().1);
            }
            let bytes = if number < 15 { 5 } else { 1 };
            buffer.add(0, SampleId::from((0, number)), bytes, number);
            most = most.max(buffer.held.len());
            assert!(buffer.bytes <= 14 && (number >= 15 || buffer.held.len() <= 2));
        }
        assert_eq!(most, 4);
        left.extend(std::iter::from_fn(|| buffer.draw()).map(|(_, number)| number));
        assert_eq!((buffer.samples(), buffer.bytes), (30, 0));
        left.sort_unstable();
        assert!(left.into_iter().eq(0..30));
    }

    #[test]
    fn versions_are_known_for_shards_with_samples_in_the_buffer() {
        let draws = BufferDraws::new(Some(1), 0, 0, 0);
        let mut buffer = ShuffleBuffer::new(2, draws, Progress::default());
        for (task, position) in [(0, 5), (1, 3)] {
            buffer.set_etag(position, "\"e\"");
            buffer.add(task, SampleId::from((position, 0)), 1, ());
            if task == 0 {
                buffer.end_shard(task);
            }
        }
        let known = |buffer: &mut ShuffleBuffer<()>| {
            let etags = buffer.progress().etags;
            etags.into_keys().collect::<Vec<u32>>()
        };
        assert_eq!(known(&mut buffer), [3, 5]);
        while let Some((id, ())) = buffer.draw() {
            let left = buffer.held.iter().any(|held| held.id.position == 5);
            let expected: &[u32] = if left { &[3, 5] } else { &[3] };
            assert_eq!(known(&mut buffer), expected, "without {id:?}");
        }
        buffer.end_shard(1);
        assert_eq!(known(&mut buffer), [0_u32; 0]);
    }
}
