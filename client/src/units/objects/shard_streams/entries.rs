//! The entries that a stream reads.

use pushdown::shard::MemberRange;

use crate::{
    epoch::order::SampleRef,
    planning::Adapter,
    units::objects::{
        Session,
        plain::{MAX_GAP_BYTES, Part},
    },
};

/// With a planner, which counts the bytes on the link, a stream receives at most one byte that nobody needs for this number of others.
const MIN_NEEDED_PER_SKIPPED: u64 = 4;

/// The member of a sample: its index, and the number of the further column, `None` for the value.
pub(super) type MemberId = (usize, Option<usize>);

/// An entry that a stream reads for a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) batch: usize,
    pub(super) sample: SampleRef,
    pub(super) part: Part,
    pub(super) range: MemberRange,
}

impl Entry {
    /// The member that it is read for.
    pub(super) const fn member(&self) -> MemberId {
        member_id(&self.part)
    }

    /// Bytes of the content.
    pub(super) const fn content_bytes(&self) -> u64 {
        self.range.size()
    }
}

/// The member that a part is.
pub(super) const fn member_id(part: &Part) -> MemberId {
    (part.index, part.column)
}

/// Where a part is among the entries of a shard, if it is one of them for this batch.
pub(super) fn place_of(entries: &[Entry], batch: usize, part: &Part) -> Option<usize> {
    let key = |part: &Part| (part.offset(), member_id(part));
    let place = entries.binary_search_by_key(&key(part), |entry| key(&entry.part));
    place.ok().filter(|place| entries[*place].batch == batch)
}

/// The entries of samples of a shard that are read plainly under the plan in force, in the order of the shard. None if ranges are better.
pub(super) fn planned_entries(
    session: &Session,
    samples: impl Iterator<Item = (usize, SampleRef)>,
) -> Vec<Entry> {
    let assignment = session.adapter.as_ref().map(Adapter::assignment);
    let max_bytes = session.limits.max_object_bytes;
    let plain = samples.filter(|(_, sample)| session.is_plain(*sample, assignment.as_deref()));
    let entries = plain.flat_map(|(batch, sample)| {
        Part::of_sample(&session.objects, 0, sample.index).filter_map(move |part| {
            let range = part.range.filter(|range| range.size() <= max_bytes)?;
            Some(Entry {
                batch,
                sample,
                part,
                range,
            })
        })
    });
    let entries = in_sequence(entries.collect());
    if is_worth_a_stream(&entries, session.adapter.is_some()) {
        entries
    } else {
        Vec::new()
    }
}

/// Whether a stream of these entries, the next ones of a shard, is better than ranges under a plan that reads some of them plainly.
pub(super) fn are_worth_a_stream(entries: &[Entry], is_plain: impl Fn(SampleRef) -> bool) -> bool {
    let plain: Vec<Entry> = entries
        .iter()
        .filter(|entry| is_plain(entry.sample))
        .copied()
        .collect();
    entries.len() < 2 || is_worth_a_stream(&plain, true)
}

/// Entries in the order of their shard. Without those that overlap others before them, as in a list that lies.
fn in_sequence(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_unstable_by_key(|entry| (entry.range.offset(), entry.member()));
    let mut last: Option<MemberRange> = None;
    entries.retain(|Entry { range, .. }| {
        let follows = last.is_none_or(|last| *range == last || range.offset() >= last.entry().end);
        if follows {
            last = Some(*range);
        }
        follows
    });
    entries
}

/// Whether one GET of all entries costs less than a GET of each: the bytes between them take less time than the requests.
fn is_worth_a_stream(entries: &[Entry], has_planner: bool) -> bool {
    let [first, .., last] = entries else { return false };
    let whole = last.range.entry().end.saturating_sub(first.range.offset());
    let entry_bytes = |range: MemberRange| u64::from(range.header_bytes()).saturating_add(range.size());
    let different = entries.chunk_by(|a, b| a.range == b.range);
    let needed = different.filter_map(|same| same.first().map(|entry| entry_bytes(entry.range)));
    let needed = needed.fold(0, u64::saturating_add);
    let mut max_skipped = MAX_GAP_BYTES.saturating_mul(entries.len() as u64);
    if has_planner {
        max_skipped = max_skipped.min(needed / MIN_NEEDED_PER_SKIPPED);
    }
    whole.saturating_sub(needed) <= max_skipped
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// An entry of this many bytes, its header included, of the sample with this index.
    pub(in crate::units::objects::shard_streams) fn entry(
        batch: usize,
        index: usize,
        offset: u64,
        bytes: u64,
    ) -> Entry {
        let range = MemberRange::new(offset, 512, bytes - 512).unwrap();
        let part = Part {
            slot: 0,
            index,
            column: None,
            range: Some(range),
        };
        let sample = SampleRef {
            index,
            position: index as u64,
            is_padding: false,
        };
        Entry {
            batch,
            sample,
            part,
            range,
        }
    }

    #[test]
    fn entries_are_in_the_order_of_the_shard_and_do_not_overlap() {
        let entries = vec![
            entry(0, 1, 4096, 1024),
            entry(3, 2, 0, 1024),
            // In the middle of the one before.
            entry(0, 3, 512, 1024),
            // The same member for another sample.
            entry(1, 4, 0, 1024),
            // Another length at the same place.
            entry(1, 5, 4096, 2048),
            entry(1, 6, 1024, 1024),
        ];
        let entries = in_sequence(entries);
        let found: Vec<usize> = entries.iter().map(|entry| entry.part.index).collect();
        assert_eq!(found, [2, 4, 6, 1]);
        let place = |batch, index: usize| {
            let mut entries_of = entries.iter().filter(|entry| entry.part.index == index);
            place_of(&entries, batch, &entries_of.next().unwrap().part)
        };
        assert_eq!(
            (place(3, 2), place(1, 4), place(0, 1)),
            (Some(0), Some(1), Some(3))
        );
        assert_eq!(place(2, 1), None, "a repeated sample, in another batch");
        assert_eq!(place_of(&entries, 0, &entry(0, 3, 512, 1024).part), None);
    }

    #[test]
    fn a_stream_is_worth_it_if_few_bytes_pass_between_its_entries() {
        let entries = |gap: u64| -> Vec<Entry> {
            let offset = |number: usize| number as u64 * (4096 + gap);
            (0..64)
                .map(|number| entry(0, number, offset(number), 4096))
                .collect()
        };
        assert!(is_worth_a_stream(&entries(0), true));
        assert!(is_worth_a_stream(&entries(1000), true) && !is_worth_a_stream(&entries(1100), true));
        assert!(is_worth_a_stream(&entries(MAX_GAP_BYTES), false));
        assert!(!is_worth_a_stream(&entries(MAX_GAP_BYTES + 2048), false));
        let next = entries(0);
        for (every, expected) in [(1, true), (2, false), (64, false), (100, false)] {
            let is_plain = |sample: SampleRef| (sample.index + 1).is_multiple_of(every);
            assert_eq!(are_worth_a_stream(&next, is_plain), expected, "one in {every}");
        }
        assert!(are_worth_a_stream(&next, |sample| sample.index != 5 && sample.index != 50));
        assert!(are_worth_a_stream(&next[..1], |_| false), "nothing is saved");
        assert!(!is_worth_a_stream(&next[..1], false), "one GET in any case");
        assert!(!is_worth_a_stream(&[], false));
    }
}
