//! The limits of law 5, with their defaults.

use std::time::Duration;

use pushdown::TableLimits;
use serde::Serialize;

use super::Faults;
use super::settings::LimitSettings;
use super::values::{duration, size};

/// Limits that no client can raise. Each is a setting of the `[limits]` table.
///
/// The length of a pipeline's text and the number of its steps have fixed limits: [`pushdown::limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Largest object that a pipeline may read, in bytes. Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_object_bytes: u64,
    /// Largest answer of a pipeline for one sample, in bytes. Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_output_bytes: u64,
    /// Maximum pixels of an image, decoded or resized. Default 100,000,000.
    pub max_pixels: u64,
    /// Maximum samples of a batch request. Default 4,096.
    pub batch_samples: usize,
    /// Largest inflated body of a batch request, in bytes. Default 4 MiB.
    #[serde(serialize_with = "size")]
    pub batch_body_bytes: u64,
    /// Longest silence within a batch request's body. Default 10 s.
    #[serde(serialize_with = "duration")]
    pub batch_body_idle_timeout: Duration,
    /// Longest time to receive the body of a batch request. Default 1 min.
    #[serde(serialize_with = "duration")]
    pub batch_body_timeout: Duration,
    /// Objects in flight per batch request. Default 16.
    pub batch_in_flight: usize,
    /// Maximum client connections; more wait in the listen queue. Default 1,024.
    pub max_connections: usize,
    /// Maximum size of request line and headers together, in bytes. Default 64 KiB.
    #[serde(serialize_with = "size")]
    pub max_header_bytes: u64,
    /// Maximum pipeline requests that wait for memory. One tenant may use as many places as it leaves free. Default 1,024.
    pub max_queued: usize,
    /// Longest wait of a pipeline request for memory, and for the models at start. Default 10 s.
    #[serde(serialize_with = "duration")]
    pub queue_wait: Duration,
    /// Longest time to connect to the store. Default 5 s.
    #[serde(serialize_with = "duration")]
    pub origin_connect_timeout: Duration,
    /// Longest silence of the store between the request and the start of its answer. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub origin_first_byte_timeout: Duration,
    /// Longest silence of the store within its answer. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub origin_idle_timeout: Duration,
    /// Longest time that a client may read no byte of a pipeline's answer. Default 30 s.
    #[serde(serialize_with = "duration")]
    pub send_stall_timeout: Duration,
    /// Longest time that a client may stall a plain upload or a plain answer. Default 5 min.
    #[serde(serialize_with = "duration")]
    pub client_idle_timeout: Duration,
    /// Longest wait for the headers of a request, and so the lifetime of an idle connection. Default 75 s.
    #[serde(serialize_with = "duration")]
    pub header_read_timeout: Duration,
    /// Longest time from a pipeline request to the head of its answer. Default 2 min.
    #[serde(serialize_with = "duration")]
    pub request_deadline: Duration,
    /// Maximum columns of a table; each nested column counts. Default 20,000.
    pub max_table_columns: usize,
    /// Largest footer of a Parquet file in bytes, at most 1/16 of the memory budget. Default 32 MiB.
    #[serde(serialize_with = "size")]
    pub max_footer_bytes: u64,
    /// Maximum bytes of a row group's columns that are read at a time. Default 512 MiB.
    #[serde(serialize_with = "size")]
    pub max_row_group_bytes: u64,
    /// Largest text or Arrow message that a record batch is parsed from, and largest record batch of an answer, in bytes.
    /// Default 256 MiB.
    #[serde(serialize_with = "size")]
    pub max_record_batch_bytes: u64,
    /// Maximum inflated bytes of an object that is compressed as a whole. It is streamed. Default 16 GiB.
    #[serde(serialize_with = "size")]
    pub max_inflated_bytes: u64,
    /// Maximum memory of sorting, grouping, windows and functions that lengthen texts, in bytes, at most 1/4 of the memory
    /// budget. Default 256 MiB.
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

/// Builds [`Limits`] from a list of `field: parser "name"`. Every field of `Limits` has to be listed.
macro_rules! parse_limits {
    (
        $settings:ident, $faults:ident, $default:ident, $computed:ident;
        $($field:ident: $parser:ident $name:literal $(($range:expr))?,)+
    ) => {
        Self {
            $computed,
            $($field: $faults.$parser($name, $settings.$field.as_ref(), $default.$field $(, $range)?),)+
        }
    };
}

impl Limits {
    /// Validates the settings. Each fault is added to `faults`, and its limit keeps the default.
    pub(super) fn validate(settings: &LimitSettings, faults: &mut Faults) -> Self {
        let default = Self::default();
        let megapixels = faults.count("max-megapixels", settings.max_megapixels.as_ref(), 100);
        let max_pixels = (megapixels as u64).saturating_mul(1_000_000);
        parse_limits! {
            settings, faults, default, max_pixels;
            max_object_bytes: size "max-object-bytes",
            max_output_bytes: size "max-output-bytes",
            batch_samples: count "batch-samples",
            batch_body_bytes: size "batch-body-bytes",
            batch_body_idle_timeout: duration "batch-body-idle-timeout",
            batch_body_timeout: duration "batch-body-timeout",
            batch_in_flight: count "batch-in-flight",
            max_connections: count "max-connections",
            max_header_bytes: size_within "max-header-bytes" (HEADER_BYTES_RANGE),
            max_queued: count "max-queued",
            queue_wait: duration "queue-wait",
            origin_connect_timeout: duration "origin-connect-timeout",
            origin_first_byte_timeout: duration "origin-first-byte-timeout",
            origin_idle_timeout: duration "origin-idle-timeout",
            send_stall_timeout: duration "send-stall-timeout",
            client_idle_timeout: duration "client-idle-timeout",
            header_read_timeout: duration "header-read-timeout",
            request_deadline: duration "request-deadline",
            max_table_columns: count "max-table-columns",
            max_footer_bytes: size "max-footer-bytes",
            max_row_group_bytes: size "max-row-group-bytes",
            max_record_batch_bytes: size "max-record-batch-bytes",
            max_inflated_bytes: size "max-inflated-bytes",
            max_query_bytes: size "max-query-bytes",
        }
    }
}

impl Limits {
    /// The limits on tables, under a memory budget of `budget_bytes`.
    pub fn tables(&self, budget_bytes: u64) -> TableLimits {
        TableLimits {
            max_columns: self.max_table_columns,
            max_footer_bytes: self.max_footer_bytes.min(budget_bytes / 16),
            max_row_group_bytes: self.max_row_group_bytes,
            max_batch_bytes: self.max_record_batch_bytes,
            max_inflated_bytes: self.max_inflated_bytes,
            max_query_bytes: self.max_query_bytes.min(budget_bytes / 4),
        }
    }
}

/// Allowed range of `max-header-bytes`. A signed request with metadata has about 8 KiB of headers; more than 256 KiB is
/// never a request for an object.
const HEADER_BYTES_RANGE: std::ops::RangeInclusive<u64> = (8 << 10)..=(256 << 10);
