//! Where the rows of a table are there sooner: made by the gateway, or here of columns as they are stored.

use std::{future::poll_fn, task::Poll};

use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use pushdown::{Estimate, Scan, TableBuilder};

use super::{StoredTable, rate::Seen};
use crate::error::Result;

/// A link of which a measurement says this part of what it would need to have is a thin one.
const CLEAR: f64 = 4.0;
/// Measurements that are believed where they are close to it, the fastest of them,
const LOOKS: usize = 4;
/// and rows that are held until then, in bytes, at most.
const LOOKED_AT: u64 = 16 << 20;

/// Where rows are there sooner.
pub(super) enum Sooner {
    Here(Scan),
    /// Beside the store, as far as they have no more bytes than these.
    There(u64),
}

/// What was seen since the scan was begun.
#[derive(Debug, Default)]
struct Look {
    seen: Seen,
    /// Bytes that came.
    come: u64,
    /// Bytes of the rows that were made of them.
    made: u64,
    /// Whether all is made that can be made of what came.
    waits: bool,
}

// === impl StoredTable ===

impl StoredTable {
    /// The scan, where its rows come sooner by going on with it than from the gateway; else how many bytes of them may come from
    /// there. It is the first of several, which come to `all` together. Unless the rows are more bytes than what is read for
    /// them it is begun, to see at what rate that comes, and how many rows it makes.
    pub(super) async fn sooner_here(&self, all: &Estimate, mut scan: Scan) -> Result<Sooner> {
        if !all.is_reducing()
            || all
                .expected_output_bytes
                .is_some_and(|rows| rows > all.spare_bytes())
        {
            return Ok(Sooner::Here(scan));
        }
        // Else it is the first of several objects.
        let whole = all == scan.estimate();
        let before = self.come();
        let mut taken = TableBuilder::new(SchemaRef::clone(scan.schema()), u64::MAX);
        let mut look = Look::default();
        let begun = poll_fn(|task| {
            loop {
                let polled = scan.poll_next_unpin(task);
                let polled = polled.map(|rows| rows.map(|rows| rows.and_then(|rows| taken.push(rows))));
                (look.seen, look.come) = (self.seen(), self.come().saturating_sub(before));
                look.made = taken.bytes();
                look.waits = !matches!(polled, Poll::Ready(Some(_)));
                match polled {
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => {
                        let here = whole || here(all, &look).unwrap_or(false);
                        return Poll::Ready(Ok(here));
                    }
                    Poll::Ready(Some(Ok(()))) | Poll::Pending => {}
                }
                match here(all, &look) {
                    Some(here) => return Poll::Ready(Ok(here)),
                    None if look.waits => return Poll::Pending,
                    None => {}
                }
            }
        });
        let here = begun.await.map_err(|error| self.fault(error))?;
        tracing::info!(here, ?look, estimate = ?all, "looked where rows are there sooner");
        if here {
            return Ok(Sooner::Here(
                scan.with_leading_batches(taken.build().into_batches()),
            ));
        }
        // What has come would come again.
        Ok(Sooner::There(all.spare_bytes().saturating_sub(look.come)))
    }
}

/// Whether rows are there sooner by going on here; `None` where that is not known yet.
///
/// What is seen at first is less than the link and the store can do: connections are new, and this end has rows to make.
/// So what speaks for the gateway has to be clear, or to be seen some times. What has come need not come again.
fn here(all: &Estimate, look: &Look) -> Option<bool> {
    let enough = look.made >= LOOKED_AT;
    let likely = match (all.expected_output_bytes, all.scan_bytes) {
        (Some(likely), _) => Some(likely),
        // Nothing is known of the rows: they are taken to go on as they began.
        (None, Some(read)) if look.come > 0 && (look.waits || enough) => {
            let rows = u128::from(read) * u128::from(look.made) / u128::from(look.come);
            Some(u64::try_from(rows).unwrap_or(u64::MAX))
        }
        (None, Some(_)) => return None,
        (None, None) => None,
    };
    let left = Estimate {
        scan_bytes: all.scan_bytes.map(|read| read.saturating_sub(look.come)),
        expected_output_bytes: likely,
        ..*all
    };
    let there = |rate| left.is_faster_at_gateway(rate);
    let Seen { fastest, times } = look.seen;
    let spare = all.spare_bytes().checked_sub(look.come);
    let fits = spare.is_some_and(|spare| likely.is_none_or(|rows| rows <= spare));
    if !fits || !left.is_reducing() || times > 0 && !there(fastest) {
        return Some(true);
    }
    let clear = times > 0 && there(fastest * CLEAR);
    (clear || times >= LOOKS || enough).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Estimate = Estimate {
        object_bytes: 100_000_000,
        scan_bytes: Some(60_000_000),
        max_rows: None,
        output_bytes: None,
        max_output_bytes: None,
        expected_output_bytes: Some(30_000_000),
        peak_memory_bytes: None,
    };

    fn look(fastest: f64, times: usize) -> Look {
        Look {
            seen: Seen { fastest, times },
            ..Look::default()
        }
    }

    #[test]
    fn a_rate_that_is_close_to_what_decides_is_looked_at_again() {
        let after = |fastest, times| here(&ALL, &look(fastest, times));
        assert_eq!(after(0.0, 0), None, "nothing is known");
        assert_eq!(after(5e6, 1), Some(false), "a thin link");
        assert_eq!(after(400e6, 1), Some(true), "a wide one: it can only be wider");
        assert_eq!(after(50e6, LOOKS - 1), None, "it may become faster");
        assert_eq!(after(50e6, LOOKS), Some(false));
        let held = Look {
            made: LOOKED_AT,
            ..look(0.0, 0)
        };
        assert_eq!(here(&ALL, &held), Some(false), "no more rows are held for it");
    }

    #[test]
    fn what_has_come_need_not_come_again() {
        let after = |come| {
            let come = Look { come, ..look(5e6, 1) };
            here(&ALL, &come)
        };
        assert_eq!(after(1_000_000), Some(false));
        assert_eq!(
            after(29_000_000),
            Some(true),
            "30 MB of rows are no less than what is left"
        );
    }

    #[test]
    fn rows_of_which_nothing_is_known_are_taken_to_go_on_as_they_began() {
        let unknown = Estimate {
            expected_output_bytes: None,
            ..ALL
        };
        let after = |made, waits| {
            let look = Look {
                come: 1_000_000,
                made,
                waits,
                ..look(5e6, 1)
            };
            here(&unknown, &look)
        };
        assert_eq!(after(0, true), Some(false), "grouping");
        assert_eq!(after(500_000, true), Some(false));
        assert_eq!(after(500_000, false), None, "more may be made of what has come");
        assert_eq!(after(8_000_000, true), Some(true), "`each` made more of it");
        assert_eq!(here(&unknown, &look(5e6, 1)), None, "nothing has come");
    }
}
