//! Batches: many samples in one request, and their rows in one Arrow stream.

mod cache;
mod check;
mod column;
mod crops;
mod demand;
mod member;
mod part;
mod pin;
mod reader;
mod row;
mod sample;
mod schema;
mod target;
#[cfg(test)]
mod tests;
mod writer;

pub use cache::{CacheHints, CacheStatus};
pub use check::check_presign;
pub use demand::Demand;
pub use member::{ColumnMember, MAX_COLUMN_BYTES, MAX_COLUMNS, PLAIN_HEADER_BYTES, check_columns};
pub use part::{
    MAX_PART_EVENT_BYTES, PART_EVENTS_TYPE, PartAction, PartError, PartEvent, RefusedPart, WrittenPart,
    is_changed_object, is_content_error,
};
pub use pin::Pin;
pub use reader::BatchReader;
pub use row::{Row, RowError};
pub use sample::{BatchSample, Compression, OnError, Order, is_etag_hint};
pub use schema::{OptionalColumns, ValueType};
pub use target::sample_id;
pub use writer::BatchWriter;

/// A presigned query without its signature.
#[cfg(test)]
const PRESIGN: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK%2F20261101%2Fus-east-1%2Fs3%2F\
    aws4_request&X-Amz-Date=20261101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
