//! Which entries of a batch are read together: neighbours in a shard, of rows that follow each other.

use std::ops::Range;

use pushdown::{
    shard::MemberRange,
    wire::{BatchSample, ColumnMember},
};

use crate::origin::{EntryRun, EntryTicket, JoinedReads};

/// Memory of an entry that may be read together with others, in bytes.
pub(super) const ENTRY_BYTES: usize = 64;

/// The entries of a batch that are read together. Empty without members of shards.
#[derive(Debug, Default)]
pub(super) struct JoinedEntries {
    /// `None` for a run of one entry.
    runs: Vec<Option<JoinedReads>>,
    /// The places of the entries of each row: of its value, and of its further columns.
    rows: Vec<Box<[Option<Place>]>>,
}

/// The place of an entry in a run.
#[derive(Debug, Clone, Copy)]
struct Place {
    run: usize,
    number: usize,
}

/// The tickets of a row's entries.
#[derive(Debug, Default)]
pub(super) struct EntryTickets {
    pub(super) value: Option<EntryTicket>,
    /// In the order of the request's columns. Empty without columns.
    pub(super) columns: Vec<Option<EntryTicket>>,
}

impl JoinedEntries {
    /// Finds neighbours in the order of the rows, and within a row in the order of the shard. That is the order in which they are
    /// read: an entry waits for earlier ones only.
    pub(super) fn find(samples: &[BatchSample]) -> Self {
        if samples.iter().all(|sample| sample.member.is_none()) {
            return Self::default();
        }
        let (mut runs, mut rows): (Vec<EntryRun>, _) = (Vec::new(), Vec::with_capacity(samples.len()));
        let mut previous: Option<&BatchSample> = None;
        for sample in samples {
            let mut is_same_object = previous.is_some_and(|previous| is_same_version(previous, sample));
            let mut places = vec![None; 1 + sample.columns.len()].into_boxed_slice();
            for (index, entry) in entries(sample) {
                let last = runs.last_mut().filter(|_| is_same_object);
                let number = last.and_then(|run| run.add(&entry)).unwrap_or_else(|| {
                    runs.push(EntryRun::new(entry));
                    0
                });
                let run = runs.len() - 1;
                places[index] = Some(Place { run, number });
                is_same_object = true;
            }
            rows.push(places);
            previous = Some(sample);
        }
        Self {
            runs: runs.into_iter().map(EntryRun::into_reads).collect(),
            rows,
        }
    }

    /// The tickets of a row. To be called once for each row: later rows wait until they are dropped.
    pub(super) fn tickets(&self, row: usize) -> EntryTickets {
        let ticket = |place: &Option<Place>| {
            let Place { run, number } = (*place)?;
            Some(self.runs.get(run)?.as_ref()?.ticket(number))
        };
        let places = self.rows.get(row).map_or(&[][..], |places| &places[..]);
        EntryTickets {
            value: places.first().and_then(ticket),
            columns: places.iter().skip(1).map(ticket).collect(),
        }
    }
}

/// The entries of a sample in the order of the shard: 0 is that of its value, others are those of its columns.
fn entries(sample: &BatchSample) -> Vec<(usize, Range<u64>)> {
    let columns = sample.columns.iter();
    let columns = columns.map(|column| column.as_ref().and_then(ColumnMember::range));
    let ranges = [sample.member_range()].into_iter().chain(columns);
    let mut entries: Vec<_> = ranges
        .enumerate()
        .filter_map(|(index, range)| Some((index, range.as_ref().map(MemberRange::entry)?)))
        .collect();
    entries.sort_by_key(|(_, entry)| entry.start);
    entries
}

/// Whether the samples are in the same version of a shard, and whoever may read one may read the other.
fn is_same_version(first: &BatchSample, second: &BatchSample) -> bool {
    first.path == second.path
        && first.signature == second.signature
        && first.version == second.version
        && first.etag == second.etag
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &str = "\"1\"";

    fn range(offset: u64) -> MemberRange {
        MemberRange::new(offset, 512, 488).unwrap()
    }

    fn sample(key: &str, offset: u64) -> BatchSample {
        BatchSample::for_signed_batch(format!("/b/{key}.tar")).with_member("a.jpg", &range(offset), ETAG)
    }

    fn column(offset: u64) -> ColumnMember {
        ColumnMember::new("a.cls", &range(offset))
    }

    /// Run and number of each entry, row by row. Entries that are read alone have none.
    fn places(samples: &[BatchSample]) -> Vec<Vec<Option<(usize, usize)>>> {
        let joined = JoinedEntries::find(samples);
        let place = |place: &Option<Place>| {
            let Place { run, number } = (*place)?;
            joined.runs[run].as_ref().map(|_| (run, number))
        };
        joined
            .rows
            .iter()
            .map(|row| row.iter().map(place).collect())
            .collect()
    }

    #[test]
    fn neighbours_of_one_version_are_read_together() {
        let other_version = BatchSample {
            etag: Some("\"2\"".to_owned()),
            ..sample("x", 5000)
        };
        let found = places(&[
            sample("x", 0),
            sample("x", 1000),
            sample("x", 4000),
            other_version,
            sample("y", 6000),
            sample("y", 7000),
            BatchSample::for_signed_batch("/b/y.tar"),
            sample("y", 8000),
            sample("y", 7000),
        ]);
        let expected = [
            Some((0, 0)),
            Some((0, 1)),
            Some((0, 2)),
            None,
            Some((2, 0)),
            Some((2, 1)),
            None,
            None,
            None,
        ];
        assert_eq!(found.concat(), expected);
    }

    #[test]
    fn columns_are_read_in_the_order_of_the_shard() {
        let mut first = sample("x", 1000);
        first.columns = vec![Some(column(2000)), None, Some(column(0))];
        let second = sample("x", 3000);
        assert_eq!(
            places(&[first, second]),
            [
                vec![Some((0, 1)), Some((0, 2)), None, Some((0, 0))],
                vec![Some((0, 3))],
            ]
        );
        let mut far = sample("x", 10 << 20);
        far.columns = vec![Some(column(0))];
        let near = sample("x", (10 << 20) + 1000);
        assert_eq!(
            places(&[far, near]),
            [vec![Some((1, 0)), None], vec![Some((1, 1))]]
        );
    }

    #[test]
    fn whole_objects_are_read_alone() {
        let samples = [
            BatchSample::for_signed_batch("/b/k"),
            BatchSample::for_signed_batch("/b/k"),
        ];
        let joined = JoinedEntries::find(&samples);
        assert!(joined.rows.is_empty());
        let tickets = joined.tickets(1);
        assert!(tickets.value.is_none() && tickets.columns.is_empty());
    }
}
