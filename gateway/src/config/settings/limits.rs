//! The settings of the `[limits]` table.

use clap::Args;
use serde::Deserialize;

use super::Text;

/// The `[limits]` table: limits that no client can raise.
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
    /// Maximum samples of a batch request [default: 4096]
    #[arg(long, env = "PUSHDOWN_BATCH_SAMPLES", value_name = "N")]
    pub batch_samples: Option<Text>,
    /// Largest inflated body of a batch request [default: 4MiB]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_BYTES", value_name = "SIZE")]
    pub batch_body_bytes: Option<Text>,
    /// Longest silence within a batch request's body; then 400 [default: 10s]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_IDLE_TIMEOUT", value_name = "TIME")]
    pub batch_body_idle_timeout: Option<Text>,
    /// Longest time to receive the body of a batch request; then 400 [default: 1m]
    #[arg(long, env = "PUSHDOWN_BATCH_BODY_TIMEOUT", value_name = "TIME")]
    pub batch_body_timeout: Option<Text>,
    /// Objects in flight per batch request [default: 16]
    #[arg(long, env = "PUSHDOWN_BATCH_IN_FLIGHT", value_name = "N")]
    pub batch_in_flight: Option<Text>,
    /// Maximum client connections; more wait in the listen queue [default: 1024]
    #[arg(long, env = "PUSHDOWN_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<Text>,
    /// Largest request line and headers together [default: 64KiB]
    #[arg(long, env = "PUSHDOWN_MAX_HEADER_BYTES", value_name = "SIZE")]
    pub max_header_bytes: Option<Text>,
    /// Maximum queued pipeline requests; one access key may take as many places as it leaves free; more get 503 [default: 1024]
    #[arg(long, env = "PUSHDOWN_MAX_QUEUED", value_name = "N")]
    pub max_queued: Option<Text>,
    /// Longest wait of a pipeline request for memory, or for models at start; then 503 [default: 10s]
    #[arg(long, env = "PUSHDOWN_QUEUE_WAIT", value_name = "TIME")]
    pub queue_wait: Option<Text>,
    /// Longest time to connect to the store; then 502 [default: 5s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_CONNECT_TIMEOUT", value_name = "TIME")]
    pub origin_connect_timeout: Option<Text>,
    /// Longest silence of the store before its answer begins; then 504 [default: 30s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_FIRST_BYTE_TIMEOUT", value_name = "TIME")]
    pub origin_first_byte_timeout: Option<Text>,
    /// Longest silence of the store within its answer; the client's connection is then cut [default: 30s]
    #[arg(long, env = "PUSHDOWN_ORIGIN_IDLE_TIMEOUT", value_name = "TIME")]
    pub origin_idle_timeout: Option<Text>,
    /// Longest time that a client may read no byte of a pipeline's answer [default: 30s]
    #[arg(long, env = "PUSHDOWN_SEND_STALL_TIMEOUT", value_name = "TIME")]
    pub send_stall_timeout: Option<Text>,
    /// Longest time that a client may stall a plain upload or answer [default: 5m]
    #[arg(long, env = "PUSHDOWN_CLIENT_IDLE_TIMEOUT", value_name = "TIME")]
    pub client_idle_timeout: Option<Text>,
    /// Longest wait for a request's headers, and lifetime of an idle connection [default: 75s]
    #[arg(long, env = "PUSHDOWN_HEADER_READ_TIMEOUT", value_name = "TIME")]
    pub header_read_timeout: Option<Text>,
    /// Longest time from a pipeline request to the head of its answer [default: 2m]
    #[arg(long, env = "PUSHDOWN_REQUEST_DEADLINE", value_name = "TIME")]
    pub request_deadline: Option<Text>,
    /// Maximum columns of a table; each nested column counts [default: 20000]
    #[arg(long, env = "PUSHDOWN_MAX_TABLE_COLUMNS", value_name = "N")]
    pub max_table_columns: Option<Text>,
    /// Largest footer of a Parquet file, at most 1/16 of the memory budget [default: 32MiB]
    #[arg(long, env = "PUSHDOWN_MAX_FOOTER_BYTES", value_name = "SIZE")]
    pub max_footer_bytes: Option<Text>,
    /// Largest total of a row group's columns that are read at a time [default: 512MiB]
    #[arg(long, env = "PUSHDOWN_MAX_ROW_GROUP_BYTES", value_name = "SIZE")]
    pub max_row_group_bytes: Option<Text>,
    /// Largest text or Arrow message of a record batch, and largest record batch of an answer [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_RECORD_BATCH_BYTES", value_name = "SIZE")]
    pub max_record_batch_bytes: Option<Text>,
    /// Largest inflated size of an object that is compressed as a whole; it is streamed [default: 16GiB]
    #[arg(long, env = "PUSHDOWN_MAX_INFLATED_BYTES", value_name = "SIZE")]
    pub max_inflated_bytes: Option<Text>,
    /// Largest memory of sorting, grouping and windows, at most 1/4 of the memory budget [default: 256MiB]
    #[arg(long, env = "PUSHDOWN_MAX_QUERY_BYTES", value_name = "SIZE")]
    pub max_query_bytes: Option<Text>,
}

impl LimitSettings {
    pub(super) fn with_fallback(self, fallback: Self) -> Self {
        let settings = self;
        merge!(
            settings,
            fallback,
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
