//! The table of limits (law 5): name, unit, default and one sentence each.
//!
//! It makes the fields of [`Limits`], the settings with their flags, variables, keys and help, their validation, and the table
//! in `docs/CONFIGURATION.md`.

use std::time::Duration;

use clap::Args;
use pushdown::TableLimits;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use super::Faults;
use super::units::{Count, Size, Time, Unit, capitals};
use super::values::Text;

/// Defines [`Limits`] and [`LimitSettings`] from lines `/// sentence`, `name: Unit = default;`. A range behind `in` replaces the
/// one of the unit. A default may use the limits above it, as they are set.
macro_rules! limits {
    (@value Size) => { u64 };
    (@value Count) => { usize };
    (@value Time) => { Duration };
    (@range $unit:ident) => { $unit::RANGE };
    (@range $unit:ident $range:expr) => { $range };
    ($(#[doc = $sentence:literal] $name:ident: $unit:ident = $default:expr $(, in $range:expr)?;)+) => {
        /// Limits that no client can raise. Each is a setting of the `[limits]` table.
        ///
        /// The length of a pipeline's text and the number of its steps have fixed limits: [`pushdown::limits`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits {
            $(#[doc = $sentence] pub $name: limits!(@value $unit),)+
        }

        impl Default for Limits {
            fn default() -> Self {
                $(let $name: limits!(@value $unit) = $default;)+
                Self { $($name,)+ }
            }
        }

        impl Limits {
            /// Validates the settings. Each fault is added to `faults`, and its limit keeps the default.
            pub(super) fn validate(settings: &LimitSettings, faults: &mut Faults) -> Self {
                $(let $name = {
                    let range = limits!(@range $unit $($range)?);
                    let name = stringify!($name).replace('_', "-");
                    $unit::validate(faults, &name, settings.$name.as_ref(), $default, range)
                };)+
                Self { $($name,)+ }
            }
        }

        impl Serialize for Limits {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let names = [$(stringify!($name)),+];
                let mut limits = serializer.serialize_struct("Limits", names.len())?;
                $(limits.serialize_field(stringify!($name), &$unit::shown(self.$name))?;)+
                limits.end()
            }
        }

        /// The `[limits]` table as given: [`Limits`], not validated.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
        #[command(next_help_heading = "Limits")]
        pub struct LimitSettings {
            $(
                #[doc = $sentence]
                #[arg(
                    long,
                    env = {
                        const LOWER: &str = concat!("pushdown_", stringify!($name));
                        const UPPER: [u8; LOWER.len()] = capitals(LOWER);
                        str::from_utf8(&UPPER).unwrap_or_default()
                    },
                    value_name = $unit::PLACEHOLDER,
                    help = format!("{} [default: {}]", $sentence.trim(), $unit::shown(Limits::default().$name)),
                )]
                pub $name: Option<Text>,
            )+
        }

        impl LimitSettings {
            /// The keys of the `[limits]` table, with `_` for `-`.
            const FIELDS: &[&str] = &[$(stringify!($name)),+];

            /// Whether the `[limits]` table has this key.
            pub(super) fn has_key(key: &str) -> bool {
                let field = key.replace('-', "_");
                !key.contains('_') && Self::FIELDS.contains(&field.as_str())
            }

            /// These settings, with `fallback` for those that are not set.
            pub(super) fn with_fallback(self, fallback: Self) -> Self {
                Self { $($name: self.$name.or(fallback.$name),)+ }
            }
        }
    };
}

limits! {
    /// Largest object that a pipeline may read
    max_object_bytes: Size = 256 << 20;
    /// Largest answer of a pipeline for one sample
    max_output_bytes: Size = 256 << 20;
    /// Largest image, decoded or resized, in millions of pixels
    max_megapixels: Count = 100;
    /// Maximum samples of a batch request
    batch_samples: Count = 4096;
    /// Largest inflated body of a batch request
    batch_body_bytes: Size = 4 << 20;
    /// Longest silence within a batch request's body; then 400
    batch_body_idle_timeout: Time = Duration::from_secs(10);
    /// Longest time to receive the body of a batch request; then 400
    batch_body_timeout: Time = Duration::from_mins(1);
    /// Objects in flight per batch request
    batch_in_flight: Count = 16;
    /// Maximum client connections; one more replaces the one that waits longest for its client, if any
    max_connections: Count = 1024;
    /// Maximum connections of one client address or IPv6 /64; one more likewise, or gets 503; unless set, 1/4 of max-connections
    max_connections_per_client: Count = max_connections.div_ceil(4);
    /// Largest request line and headers together
    max_header_bytes: Size = 64 << 10, in HEADER_BYTES_RANGE;
    /// Maximum queued pipeline requests; one access key may take as many places as it leaves free; more get 503
    max_queued: Count = 1024;
    /// Maximum cores that a tenant adds to the metric `pushdown_demand_cores`
    max_demand_cores_per_tenant: Count = 64;
    /// Longest wait of a pipeline request for memory, or for models at start; then 503
    queue_wait: Time = Duration::from_secs(10);
    /// Longest time to connect to the store; then 502
    origin_connect_timeout: Time = Duration::from_secs(5);
    /// Longest silence of the store before its answer begins; then 504
    origin_first_byte_timeout: Time = Duration::from_secs(30);
    /// Longest silence of the store within its answer; the client's connection is then cut
    origin_idle_timeout: Time = Duration::from_secs(30);
    /// Longest time that a client may read no byte of a pipeline's answer
    send_stall_timeout: Time = Duration::from_secs(30);
    /// Longest time that a client may stall a plain upload or answer
    client_idle_timeout: Time = Duration::from_mins(5);
    /// Longest wait for a request's headers, and lifetime of an idle connection
    header_read_timeout: Time = Duration::from_secs(75);
    /// Longest time from a pipeline request to the head of its answer
    request_deadline: Time = Duration::from_mins(2);
    /// Maximum columns of a table; each nested column counts
    max_table_columns: Count = TableLimits::default().max_columns;
    /// Largest footer of a Parquet file, at most 1/16 of the memory budget
    max_footer_bytes: Size = TableLimits::default().max_footer_bytes;
    /// Largest total of a row group's columns that are read at a time
    max_row_group_bytes: Size = TableLimits::default().max_row_group_bytes;
    /// Largest text or Arrow message of a record batch, and largest record batch of an answer
    max_record_batch_bytes: Size = TableLimits::default().max_batch_bytes;
    /// Largest inflated size of an object that is compressed as a whole; it is streamed
    max_inflated_bytes: Size = TableLimits::default().max_inflated_bytes;
    /// Largest memory of sorting, grouping and windows, at most 1/4 of the memory budget
    max_query_bytes: Size = TableLimits::default().max_query_bytes;
}

impl Limits {
    /// Maximum pixels of an image.
    pub const fn max_pixels(&self) -> u64 {
        (self.max_megapixels as u64).saturating_mul(1_000_000)
    }

    /// Memory for the batch requests of unverified callers, of a budget of `budget_bytes`: a quarter of it, or one request with
    /// the largest body, whichever is more, and a quarter of that for small bodies. A compressed body is in memory as sent,
    /// inflated and parsed.
    pub fn unverified_bytes(&self, budget_bytes: u64) -> UnverifiedBytes {
        let largest = self.batch_body_bytes.saturating_mul(3);
        let large = (budget_bytes / 4).max(largest).min(budget_bytes);
        UnverifiedBytes {
            small: (large / 4).max(3 * SMALL_BODY_BYTES).min(budget_bytes),
            large,
        }
    }

    /// The limits on every value of a sample, under a memory budget of `budget_bytes`.
    pub fn sample_limits(&self, budget_bytes: u64) -> pushdown::Limits {
        pushdown::Limits {
            max_pixels: self.max_pixels(),
            max_object_bytes: self.max_object_bytes,
            tables: self.tables(budget_bytes),
            ..pushdown::Limits::default()
        }
    }

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

/// The most bytes of a small batch request: a thousand samples.
pub const SMALL_BODY_BYTES: u64 = 256 << 10;

/// The memory for batch requests whose callers nobody has verified, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnverifiedBytes {
    /// For requests of at most [`SMALL_BODY_BYTES`].
    pub small: u64,
    /// For all others.
    pub large: u64,
}

/// A signed request with metadata has about 8 KiB of headers; more than 256 KiB is never a request for an object.
const HEADER_BYTES_RANGE: std::ops::RangeInclusive<u64> = (8 << 10)..=(256 << 10);
