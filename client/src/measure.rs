//! What can be measured while objects are read: the link, and what a gateway states about itself. Stores and planners use it.

mod gateway_cpus;
mod host_cpus;
mod link_meter;
mod path_meters;
mod read_rate;
mod replica_answers;
mod server_timing;

use http::HeaderValue;

pub(crate) use gateway_cpus::GatewayCpus;
pub(crate) use host_cpus::host_cpus;
pub(crate) use link_meter::LONG_OBJECT_BYTES;
pub(crate) use path_meters::{PathMeters, ReceivedBytes};
pub(crate) use read_rate::{PendingRange, RateSamples, ReadRate};
pub(crate) use replica_answers::ReplicaAnswers;
pub(crate) use server_timing::ServerTiming;

/// After a pause, connection and kernel have bytes that arrived during it: they do not measure a link.
pub(crate) const BUFFERED_BYTES: u64 = 8 << 20;

/// A number in a header.
pub(crate) fn number(header: Option<&HeaderValue>) -> Option<f64> {
    header?.to_str().ok()?.parse().ok()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts, of which a few digits matter"
)]
pub(crate) const fn float(number: u64) -> f64 {
    number as f64
}
