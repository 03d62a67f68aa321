//! The limits of law 5 with their defaults.

use std::time::Duration;

use pushdown::TableLimits;
use serde::Serialize;

use super::Faults;
use super::settings::LimitSettings;
use super::values::{duration, size};

/// What no client can lift. Every one of them is a setting of the `[limits]` table.
///
/// The length of a pipeline's text and the number of its steps are fixed: [`pushdown::limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Largest object that a pipeline may read, in bytes. Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_object_bytes: u64,
    /// Largest answer of a pipeline for one sample, in bytes. Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_output_bytes: u64,
    /// Most pixels of any image, decoded or resized. Default 100,000,000.
    pub max_pixels: u64,
    /// Most samples in a batch request. Default 4,096.
    pub batch_samples: usize,
    /// Largest body of a batch request, inflated, in bytes. Default 4 MiB.
    #[serde(serialize_with = "size")]
    pub batch_body_bytes: u64,
    /// Longest silence in the middle of a batch request's body. Default 10 s.
    #[serde(serialize_with = "duration")]
    pub batch_body_idle_timeout: Duration,
    /// Longest time for the body of a batch request to arrive. Default 1 min.
    #[serde(serialize_with = "duration")]
    pub batch_body_timeout: Duration,
    /// Objects that one batch request fetches at a time. Default 16.
    pub batch_in_flight: usize,
    /// Client connections at a time; more wait in the listen queue. Default 1,024.
    pub max_connections: usize,
    /// Request line and headers together, in bytes. Default 64 KiB.
    #[serde(serialize_with = "size")]
    pub max_header_bytes: u64,
    /// Pipeline requests that may wait for memory, of one tenant as many as places are left. Default 1,024.
    pub max_queued: usize,
    /// Longest wait of a pipeline request for memory or a CPU. Default 10 s.
    #[serde(serialize_with = "duration")]
    pub queue_wait: Duration,
    /// Longest time to connect to the store. Default 5 s.
    #[serde(serialize_with = "duration")]
    pub origin_connect_timeout: Duration,
    /// Longest silence of the store before its answer begins, the request sent. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub origin_first_byte_timeout: Duration,
    /// Longest silence of the store in mid-answer. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub origin_idle_timeout: Duration,
    /// Longest time that a client may take no byte of a pipeline's answer. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub send_stall_timeout: Duration,
    /// Longest time that a client may stall a plain upload or a plain answer. Default 5 min.
    #[serde(serialize_with = "duration")]
    pub client_idle_timeout: Duration,
    /// Longest wait for the headers of a request, and so the life of an idle connection. Default 75 s.
    #[serde(serialize_with = "duration")]
    pub header_read_timeout: Duration,
    /// Longest time from a pipeline request to the head of its answer. Default 120 s.
    #[serde(serialize_with = "duration")]
    pub request_deadline: Duration,
    /// Columns of a table, nested ones counted one by one. Default 20,000.
    pub max_table_columns: usize,
    /// Bytes of a Parquet file's footer, at most a sixteenth of the memory budget. Default 32 MiB.
    #[serde(serialize_with = "size")]
    pub max_footer_bytes: u64,
    /// Bytes of a row group's columns that are read at once. Default 512 MiB.
    #[serde(serialize_with = "size")]
    pub max_row_group_bytes: u64,
    /// Bytes of the text or the Arrow message that a record batch is made of, and of one of an answer. Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_record_batch_bytes: u64,
    /// Bytes that an object compressed as a whole may inflate to; they flow. Default 16 GiB.
    #[serde(serialize_with = "size")]
    pub max_inflated_bytes: u64,
    /// Bytes that sorting, grouping, windows and functions that lengthen texts may hold, at most a quarter of the memory budget.
    /// Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_query_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let tables = TableLimits::default();
        Self {
            max_object_bytes: 256 << 20,
            max_output_bytes: 256 << 20,
            max_pixels: 100_000_000,
            batch_samples: 4096,
            batch_body_bytes: 4 << 20,
            batch_body_idle_timeout: Duration::from_secs(10),
            batch_body_timeout: Duration::from_mins(1),
            batch_in_flight: 16,
            max_connections: 1024,
            max_header_bytes: 64 << 10,
            max_queued: 1024,
            queue_wait: Duration::from_secs(10),
            origin_connect_timeout: Duration::from_secs(5),
            origin_first_byte_timeout: Duration::from_secs(30),
            origin_idle_timeout: Duration::from_secs(30),
            send_stall_timeout: Duration::from_secs(30),
            client_idle_timeout: Duration::from_mins(5),
            header_read_timeout: Duration::from_secs(75),
            request_deadline: Duration::from_mins(2),
            max_table_columns: tables.max_columns,
            max_footer_bytes: tables.max_footer_bytes,
            max_row_group_bytes: tables.max_row_group_bytes,
            max_record_batch_bytes: tables.max_batch_bytes,
            max_inflated_bytes: tables.max_inflated_bytes,
            max_query_bytes: tables.max_query_bytes,
        }
    }
}

impl Limits {
    /// Judges what was typed; each fault is noted and its limit keeps the default meanwhile.
    pub(super) fn validate(typed: &LimitSettings, faults: &mut Faults) -> Self {
        let default = Self::default();
        let megapixels = faults.count("max-megapixels", typed.max_megapixels.as_ref(), 100);
        Self {
            max_object_bytes: faults.size(
                "max-object-bytes",
                typed.max_object_bytes.as_ref(),
                default.max_object_bytes,
            ),
            max_output_bytes: faults.size(
                "max-output-bytes",
                typed.max_output_bytes.as_ref(),
                default.max_output_bytes,
            ),
            max_pixels: (megapixels as u64).saturating_mul(1_000_000),
            batch_samples: faults.count(
                "batch-samples",
                typed.batch_samples.as_ref(),
                default.batch_samples,
            ),
            batch_body_bytes: faults.size(
                "batch-body-bytes",
                typed.batch_body_bytes.as_ref(),
                default.batch_body_bytes,
            ),
            batch_body_idle_timeout: faults.duration(
                "batch-body-idle-timeout",
                typed.batch_body_idle_timeout.as_ref(),
                default.batch_body_idle_timeout,
            ),
            batch_body_timeout: faults.duration(
                "batch-body-timeout",
                typed.batch_body_timeout.as_ref(),
                default.batch_body_timeout,
            ),
            batch_in_flight: faults.count(
                "batch-in-flight",
                typed.batch_in_flight.as_ref(),
                default.batch_in_flight,
            ),
            max_connections: faults.count(
                "max-connections",
                typed.max_connections.as_ref(),
                default.max_connections,
            ),
            max_header_bytes: faults.size_within(
                "max-header-bytes",
                typed.max_header_bytes.as_ref(),
                default.max_header_bytes,
                HEADER_BYTES,
            ),
            max_queued: faults.count("max-queued", typed.max_queued.as_ref(), default.max_queued),
            queue_wait: faults.duration("queue-wait", typed.queue_wait.as_ref(), default.queue_wait),
            origin_connect_timeout: faults.duration(
                "origin-connect-timeout",
                typed.origin_connect_timeout.as_ref(),
                default.origin_connect_timeout,
            ),
            origin_first_byte_timeout: faults.duration(
                "origin-first-byte-timeout",
                typed.origin_first_byte_timeout.as_ref(),
                default.origin_first_byte_timeout,
            ),
            origin_idle_timeout: faults.duration(
                "origin-idle-timeout",
                typed.origin_idle_timeout.as_ref(),
                default.origin_idle_timeout,
            ),
            send_stall_timeout: faults.duration(
                "send-stall-timeout",
                typed.send_stall_timeout.as_ref(),
                default.send_stall_timeout,
            ),
            client_idle_timeout: faults.duration(
                "client-idle-timeout",
                typed.client_idle_timeout.as_ref(),
                default.client_idle_timeout,
            ),
            header_read_timeout: faults.duration(
                "header-read-timeout",
                typed.header_read_timeout.as_ref(),
                default.header_read_timeout,
            ),
            request_deadline: faults.duration(
                "request-deadline",
                typed.request_deadline.as_ref(),
                default.request_deadline,
            ),
            max_table_columns: faults.count(
                "max-table-columns",
                typed.max_table_columns.as_ref(),
                default.max_table_columns,
            ),
            max_footer_bytes: faults.size(
                "max-footer-bytes",
                typed.max_footer_bytes.as_ref(),
                default.max_footer_bytes,
            ),
            max_row_group_bytes: faults.size(
                "max-row-group-bytes",
                typed.max_row_group_bytes.as_ref(),
                default.max_row_group_bytes,
            ),
            max_record_batch_bytes: faults.size(
                "max-record-batch-bytes",
                typed.max_record_batch_bytes.as_ref(),
                default.max_record_batch_bytes,
            ),
            max_inflated_bytes: faults.size(
                "max-inflated-bytes",
                typed.max_inflated_bytes.as_ref(),
                default.max_inflated_bytes,
            ),
            max_query_bytes: faults.size(
                "max-query-bytes",
                typed.max_query_bytes.as_ref(),
                default.max_query_bytes,
            ),
        }
    }
}

impl Limits {
    /// Those on tables, beside a memory budget of so many bytes.
    pub fn tables(&self, budget: u64) -> TableLimits {
        TableLimits {
            max_columns: self.max_table_columns,
            max_footer_bytes: self.max_footer_bytes.min(budget / 16),
            max_row_group_bytes: self.max_row_group_bytes,
            max_batch_bytes: self.max_record_batch_bytes,
            max_inflated_bytes: self.max_inflated_bytes,
            max_query_bytes: self.max_query_bytes.min(budget / 4),
        }
    }
}

/// A signed request with metadata takes about 8 KiB; beyond 256 KiB nobody is asking for an object.
const HEADER_BYTES: std::ops::RangeInclusive<u64> = (8 << 10)..=(256 << 10);
