//! Placement of a table scan: rows computed by the gateway, or on this host from stored columns.

use std::{future::poll_fn, task::Poll};

use arrow_schema::SchemaRef;
use futures::StreamExt as _;
use pushdown::{Estimate, Scan, TableBuilder};

use super::StoredTable;
use crate::{error::Result, measure::RateSamples};

/// A single measurement decides for the gateway if even this multiple of it would.
const CLEAR_FACTOR: f64 = 4.0;
/// Otherwise the fastest of this many measurements decides,
const MIN_MEASUREMENTS: usize = 4;
/// or the fastest measurement once this many bytes of rows are buffered.
const MAX_BUFFERED_BYTES: u64 = 16 << 20;

/// Where the rows of a table are computed.
pub(crate) enum Placement {
    /// On this host, by continuing this scan.
    Local(Scan),
    /// At the gateway.
    Remote { max_bytes: u64 },
}

/// Observations since the scan began.
#[derive(Debug, Default)]
struct Probe {
    rate: RateSamples,
    bytes_received: u64,
    /// Bytes of the rows computed from them.
    bytes_produced: u64,
    /// Whether the scan waits for more bytes: all rows of the received ones are computed.
    is_stalled: bool,
}

impl StoredTable {
    /// Chooses where to compute the rows of this scan, the first of several whose estimates sum up to `all`. Starts the scan
    /// to measure the rate at which bytes arrive and the rows they contain, unless the estimate alone decides for this host.
    pub(crate) async fn choose_placement(&self, all: &Estimate, mut scan: Scan) -> Result<Placement> {
        if !all.is_reducing()
            || all
                .expected_output_bytes
                .is_some_and(|rows| rows > all.spare_bytes())
            || !self.has_usable_gateway().await
        {
            return Ok(Placement::Local(scan));
        }
        // Otherwise this is the first of several objects.
        let is_only_object = all == scan.estimate();
        let before = self.received_bytes();
        let mut buffered = TableBuilder::new(SchemaRef::clone(scan.schema()), u64::MAX);
        let mut probe = Probe::default();
        let probing = poll_fn(|task| {
            loop {
                let polled = scan.poll_next_unpin(task);
                let polled = polled.map(|rows| rows.map(|rows| rows.and_then(|rows| buffered.push(rows))));
                probe.rate = self.read_rate();
                probe.bytes_received = self.received_bytes().saturating_sub(before);
                probe.bytes_produced = buffered.bytes();
                probe.is_stalled = !matches!(polled, Poll::Ready(Some(_)));
                match polled {
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => {
                        let local = is_only_object || is_local_faster(all, &probe).unwrap_or(false);
                        return Poll::Ready(Ok(local));
                    }
                    Poll::Ready(Some(Ok(()))) | Poll::Pending => {}
                }
                match is_local_faster(all, &probe) {
                    Some(local) => return Poll::Ready(Ok(local)),
                    None if probe.is_stalled => return Poll::Pending,
                    None => {}
                }
            }
        });
        let local = probing.await.map_err(|error| self.map_error(error))?;
        tracing::info!(local, ?probe, estimate = ?all, "chose the placement of a scan");
        if local {
            return Ok(Placement::Local(
                scan.with_leading_batches(buffered.build().into_batches()),
            ));
        }
        // Rows already received are sent again.
        Ok(Placement::Remote {
            max_bytes: all.spare_bytes().saturating_sub(probe.bytes_received),
        })
    }
}

/// Whether continuing on this host is faster than the gateway; `None` if not known yet.
///
/// First measurements are below the capacity of link and store: connections are new, and this host also computes rows. So a
/// decision for the gateway needs a clear measurement or several of them. Bytes already received need not be read again.
fn is_local_faster(all: &Estimate, probe: &Probe) -> Option<bool> {
    let is_full = probe.bytes_produced >= MAX_BUFFERED_BYTES;
    let likely = match (all.expected_output_bytes, all.scan_bytes) {
        (Some(likely), _) => Some(likely),
        // Without an estimate, the remaining rows are assumed to be like the first ones.
        (None, Some(read)) if probe.bytes_received > 0 && (probe.is_stalled || is_full) => {
            let rows = u128::from(read) * u128::from(probe.bytes_produced) / u128::from(probe.bytes_received);
            Some(u64::try_from(rows).unwrap_or(u64::MAX))
        }
        (None, Some(_)) => return None,
        (None, None) => None,
    };
    let left = Estimate {
        scan_bytes: all
            .scan_bytes
            .map(|read| read.saturating_sub(probe.bytes_received)),
        expected_output_bytes: likely,
        ..*all
    };
    let is_remote_faster = |rate| left.is_faster_at_gateway(rate);
    let RateSamples {
        max_bytes_per_second: rate,
        count,
    } = probe.rate;
    let spare = all.spare_bytes().checked_sub(probe.bytes_received);
    let fits = spare.is_some_and(|spare| likely.is_none_or(|rows| rows <= spare));
    if !fits || !left.is_reducing() || count > 0 && !is_remote_faster(rate) {
        return Some(true);
    }
    let is_clear = count > 0 && is_remote_faster(rate * CLEAR_FACTOR);
    (is_clear || count >= MIN_MEASUREMENTS || is_full).then_some(false)
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

    fn probe(max_bytes_per_second: f64, count: usize) -> Probe {
        Probe {
            rate: RateSamples {
                max_bytes_per_second,
                count,
            },
            ..Probe::default()
        }
    }

    #[test]
    fn a_rate_close_to_the_threshold_is_measured_again() {
        let after = |rate, count| is_local_faster(&ALL, &probe(rate, count));
        assert_eq!(after(0.0, 0), None, "nothing is known");
        assert_eq!(after(5e6, 1), Some(false), "a slow link");
        assert_eq!(
            after(400e6, 1),
            Some(true),
            "a fast one: its capacity is at least that"
        );
        assert_eq!(after(50e6, MIN_MEASUREMENTS - 1), None, "it may become faster");
        assert_eq!(after(50e6, MIN_MEASUREMENTS), Some(false));
        let full = Probe {
            bytes_produced: MAX_BUFFERED_BYTES,
            ..probe(0.0, 0)
        };
        assert_eq!(
            is_local_faster(&ALL, &full),
            Some(false),
            "no more rows are buffered"
        );
    }

    #[test]
    fn received_bytes_are_not_read_again() {
        let after = |bytes_received| {
            let probe = Probe {
                bytes_received,
                ..probe(5e6, 1)
            };
            is_local_faster(&ALL, &probe)
        };
        assert_eq!(after(1_000_000), Some(false));
        assert_eq!(
            after(29_000_000),
            Some(true),
            "30 MB of rows are no less than the bytes left to read"
        );
    }

    #[test]
    fn rows_of_unknown_size_are_extrapolated() {
        let unknown = Estimate {
            expected_output_bytes: None,
            ..ALL
        };
        let after = |bytes_produced, is_stalled| {
            let probe = Probe {
                bytes_received: 1_000_000,
                bytes_produced,
                is_stalled,
                ..probe(5e6, 1)
            };
            is_local_faster(&unknown, &probe)
        };
        assert_eq!(after(0, true), Some(false), "grouping");
        assert_eq!(after(500_000, true), Some(false));
        assert_eq!(
            after(500_000, false),
            None,
            "the received bytes may contain more rows"
        );
        assert_eq!(after(8_000_000, true), Some(true), "`each` expanded them");
        assert_eq!(
            is_local_faster(&unknown, &probe(5e6, 1)),
            None,
            "nothing was received"
        );
    }
}
