//! What the ranks have read of an epoch: the state of a reader of rows.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The most entries, so the most changes of world within an epoch.
const MAX_ENTRIES: usize = 1000;
/// The most ranks of all entries. Each may leave one more range of rows.
const MAX_RANKS: usize = 1 << 20;

/// What each rank of a world has read of an epoch's rows.
///
/// All ranks of a world read their batches in lockstep, so one number stands for all of them, and it is the same on every rank.
/// The state of a reader is a list of these, one for each world since the beginning of the epoch:
/// [`TableReader::rows_read_after`](crate::table::TableReader::rows_read_after) returns it, and
/// [`rows_read`](crate::reader::PushdownReaderBuilder::rows_read) resumes from it in any world.
///
/// It depends neither on the batch size nor on the tail policy of the ranks, so both may differ after a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsRead {
    /// Number of ranks.
    pub world: usize,
    /// Rows that each rank has read, from the beginning of its stretch. A rank whose stretch has fewer rows, such as one with
    /// a short last batch, has read all of it.
    pub rows_per_rank: u64,
}

impl RowsRead {
    /// Checks the entries of a list, and merges them as [`append_to`](Self::append_to) does.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a world of no ranks, and beyond the limits.
    pub(crate) fn merge(entries: &[Self]) -> Result<Vec<Self>> {
        if entries.len() > MAX_ENTRIES {
            return Err(Error::config(format!(
                "invalid rows_read: expected at most {MAX_ENTRIES} entries, found {}: merge entries of the same world",
                entries.len()
            )));
        }
        if let Some(empty) = entries.iter().position(|read| read.world == 0) {
            return Err(Error::config(format!(
                "invalid rows_read: expected a world of at least 1 rank, found 0 in entry {empty}"
            )));
        }
        let ranks = entries
            .iter()
            .fold(0_usize, |ranks, read| ranks.saturating_add(read.world));
        if ranks > MAX_RANKS {
            return Err(Error::config(format!(
                "invalid rows_read: expected at most {MAX_RANKS} ranks in all entries, found {ranks}: \
                 is `world` the number of ranks?"
            )));
        }
        let mut merged = Vec::new();
        for read in entries {
            read.append_to(&mut merged);
        }
        Ok(merged)
    }

    /// Appends this to the earlier entries of an epoch.
    ///
    /// If the last one has the same world, their rows are added up. This is exact: stretches whose lengths differ by at most
    /// one, each shorter by the same number of rows, are the stretches of the rows left. Without rows there is nothing to append.
    pub fn append_to(self, entries: &mut Vec<Self>) {
        match entries.last_mut() {
            _ if self.rows_per_rank == 0 => {}
            Some(last) if last.world == self.world => {
                last.rows_per_rank = last.rows_per_rank.saturating_add(self.rows_per_rank);
            }
            _ => entries.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn read(world: usize, rows_per_rank: u64) -> RowsRead {
        RowsRead { world, rows_per_rank }
    }

    #[test]
    fn there_is_one_entry_for_each_change_of_world() {
        let entries = [
            read(2, 5),
            read(2, 3),
            read(3, 0),
            read(2, 1),
            read(3, 4),
            read(1, 0),
        ];
        assert_eq!(RowsRead::merge(&entries).unwrap(), [read(2, 9), read(3, 4)]);
        let overflow = [read(2, u64::MAX), read(2, 1)];
        assert_eq!(RowsRead::merge(&overflow).unwrap(), [read(2, u64::MAX)]);
        assert_eq!(RowsRead::merge(&[]).unwrap(), []);
    }

    #[test]
    fn invalid_entries_are_refused_with_the_reason() {
        let fault = |entries: &[RowsRead]| RowsRead::merge(entries).unwrap_err().to_string();
        insta::assert_snapshot!(
            [
                fault(&[read(2, 5), read(0, 1)]),
                fault(&vec![read(1, 1); 1001]),
                fault(&[read(1, 1), read(1 << 20, 1)]),
                fault(&[read(usize::MAX, 1), read(usize::MAX, 1)]),
            ]
            .join("\n")
        );
    }

    #[test]
    fn the_state_is_json_of_known_fields() {
        let json = serde_json::to_string(&[read(2, 128), read(3, 50)]).unwrap();
        assert_eq!(
            json,
            r#"[{"world":2,"rows_per_rank":128},{"world":3,"rows_per_rank":50}]"#
        );
        assert_eq!(
            serde_json::from_str::<Vec<RowsRead>>(&json).unwrap(),
            [read(2, 128), read(3, 50)]
        );
        let unknown = serde_json::from_str::<RowsRead>(r#"{"world":2,"rows_per_rank":1,"rows":1}"#);
        assert!(unknown.unwrap_err().to_string().contains("unknown field `rows`"));
    }
}
