//! The `[limits]` table, as it is typed.

use clap::Args;
use serde::Deserialize;

use super::Text;

/// The `[limits]` table: what no client can lift.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(next_help_heading = "Limits")]
pub struct LimitSettings {
    /// Largest object that a pipeline may read [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_OBJECT_BYTES", value_name = "SIZE")]
    pub max_object_bytes: Option<Text>,
    /// Largest answer of a pipeline for one sample [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_OUTPUT_BYTES", value_name = "SIZE")]
    pub max_output_bytes: Option<Text>,
    /// Largest image, decoded or resized, in millions of pixels [default: 100]
    #[arg(long, env = "PUSHDOWN_MAX_MEGAPIXELS", value_name = "N")]
    pub max_megapixels: Option<Text>,
    /// Samples in a batch request [default: 4096]
    #[arg(long, env = "PUSHDOWN_BATCH_SAMPLES", value_name = "N")]
    pub batch_samples: Option<Text>,
    /// Body of a batch request, inflated [default: 4MiB]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_BYTES", value_name = "SIZE")]
    pub batch_body_bytes: Option<Text>,
    /// Longest silence in the middle of a batch request's body; then 400 [default: 10s]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_IDLE_TIMEOUT", value_name = "TIME")]
    pub batch_body_idle_timeout: Option<Text>,
    /// Longest time for the body of a batch request to arrive; then 400 [default: 1m]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_TIMEOUT", value_name = "TIME")]
    pub batch_body_timeout: Option<Text>,
    /// Objects that one batch request fetches at a time [default: 16]
    #[arg(long, env = "PUSHDOWN_BATCH_IN_FLIGHT", value_name = "N")]
    pub batch_in_flight: Option<Text>,
    /// Client connections; more wait in the listen queue [default: 1024]
    #[arg(long, env = "PUSHDOWN_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<Text>,
    /// Request line and headers together [default: 64KiB]
    #[arg(long, env = "PUSHDOWN_MAX_HEADER_BYTES", value_name = "SIZE")]
    pub max_header_bytes: Option<Text>,
    /// Pipeline requests that may wait for memory, of one access key as many as places are left; more get 503 [default: 1024]
    #[arg(long, env = "PUSHDOWN_MAX_QUEUED", value_name = "N")]
    pub max_queued: Option<Text>,
    /// Longest wait of a pipeline request for memory or a CPU; then 503 [default: 10s]
    #[arg(long, env = "PUSHDOWN_QUEUE_WAIT", value_name = "TIME")]
    pub queue_wait: Option<Text>,
    /// Longest time to connect to the store; then 502 [default: 5s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_CONNECT_TIMEOUT", value_name = "TIME")]
    pub origin_connect_timeout: Option<Text>,
    /// Longest silence of the store before its answer begins; then 504 [default: 30s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_FIRST_BYTE_TIMEOUT", value_name = "TIME")]
    pub origin_first_byte_timeout: Option<Text>,
    /// Longest silence of the store in mid-answer; the client's connection is then cut [default: 30s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_IDLE_TIMEOUT", value_name = "TIME")]
    pub origin_idle_timeout: Option<Text>,
    /// Longest time that a client may take no byte of a pipeline's answer [default: 30s]
    #[arg(long, env = "PUSHDOWN_SEND_STALL_TIMEOUT", value_name = "TIME")]
    pub send_stall_timeout: Option<Text>,
    /// Longest time that a client may stall a plain upload or answer [default: 5m]
    #[arg(long, env = "PUSHDOWN_CLIENT_IDLE_TIMEOUT", value_name = "TIME")]
    pub client_idle_timeout: Option<Text>,
    /// Longest wait for a request's headers, and life of an idle connection [default: 75s]
    #[arg(long, env = "PUSHDOWN_HEADER_READ_TIMEOUT", value_name = "TIME")]
    pub header_read_timeout: Option<Text>,
    /// Longest time from a pipeline request to the head of its answer [default: 2m]
    #[arg(long, env = "PUSHDOWN_REQUEST_DEADLINE", value_name = "TIME")]
    pub request_deadline: Option<Text>,
    /// Columns of a table, nested ones counted one by one [default: 20000]
    #[arg(long, env = "PUSHDOWN_MAX_TABLE_COLUMNS", value_name = "N")]
    pub max_table_columns: Option<Text>,
    /// Footer of a Parquet file, at most a sixteenth of the memory budget [default: 32MiB]
    #[arg(long, env = "PUSHDOWN_MAX_FOOTER_BYTES", value_name = "SIZE")]
    pub max_footer_bytes: Option<Text>,
    /// Columns of a row group that are read at once [default: 512MiB]
    #[arg(long, env = "PUSHDOWN_MAX_ROW_GROUP_BYTES", value_name = "SIZE")]
    pub max_row_group_bytes: Option<Text>,
    /// Text or Arrow message that a record batch is made of, and one of an answer [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_RECORD_BATCH_BYTES", value_name = "SIZE")]
    pub max_record_batch_bytes: Option<Text>,
    /// What an object that is compressed as a whole may inflate to; it flows [default: 16GiB]
    #[arg(long, env = "PUSHDOWN_MAX_INFLATED_BYTES", value_name = "SIZE")]
    pub max_inflated_bytes: Option<Text>,
    /// What sorting, grouping and windows may hold, at most a quarter of the memory budget [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_QUERY_BYTES", value_name = "SIZE")]
    pub max_query_bytes: Option<Text>,
}

impl LimitSettings {
    pub(super) fn over(self, under: Self) -> Self {
        let over = self;
        overlay!(
            over,
            under,
            max_object_bytes,
            max_output_bytes,
            max_megapixels,
            batch_samples,
            batch_body_bytes,
            batch_body_idle_timeout,
            batch_body_timeout,
            batch_in_flight,
            max_connections,
            max_header_bytes,
            max_queued,
            queue_wait,
            origin_connect_timeout,
            origin_first_byte_timeout,
            origin_idle_timeout,
            send_stall_timeout,
            client_idle_timeout,
            header_read_timeout,
            request_deadline,
            max_table_columns,
            max_footer_bytes,
            max_row_group_bytes,
            max_record_batch_bytes,
            max_inflated_bytes,
            max_query_bytes,
        )
    }
}
