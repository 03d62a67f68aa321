//! Wire formats between the gateway and its readers.
//!
//! A single value is encoded in a [`Form`] ([`encode()`], [`decode()`]), or as it is [`stored`] in a cache. Many values are the rows of one Arrow stream
//! ([`BatchWriter`], [`BatchReader`]), requested with a `BatchRequest`. Input is untrusted: lengths, shapes and types are
//! checked against the received bytes before memory is allocated for them.
//!
//! No network I/O: status lines, sockets and retries belong to other crates.

#[cfg(test)]
mod arbitrary;
mod arrow;
mod batch;
mod cached_ratios;
mod cpu_fingerprint;
mod cpu_time;
mod crop_headers;
mod encode;
mod features;
mod fixed_shape;
mod form;
pub mod header;
mod ipc;
mod npy;
mod object_form;
mod raw;
mod safetensors;
mod shape;
mod split;
pub mod stored;
mod table;
mod tensor_column;

pub use batch::{
    BatchReader, BatchSample, BatchWriter, CacheHints, CacheStatus, ColumnMember, Compression, Demand,
    MAX_COLUMN_BYTES, MAX_COLUMNS, MAX_PART_EVENT_BYTES, OnError, OptionalColumns, Order, PART_EVENTS_TYPE,
    PLAIN_HEADER_BYTES, PartAction, PartError, PartEvent, Pin, RefusedPart, Row, RowError, ValueType,
    WrittenPart, check_columns, check_presign, is_changed_object, is_content_error, is_etag_hint, sample_id,
};
pub use cached_ratios::{CachedRatios, hash_fraction, member_hash, object_hash};
pub use cpu_fingerprint::cpu_fingerprint;
pub use cpu_time::{CpuTime, InvalidCpuTime};
pub use encode::{Encoded, decode, encode};
pub use features::Features;
pub use fixed_shape::FixedShape;
pub use form::Form;
pub use ipc::{Message, MessageReader, RawBatch, RecordBatchReader};
pub use object_form::ObjectForm;
pub use pushdown_s3::{InvalidStore, StoreEndpoint, StoreHost, StoreUrl};
pub use split::Split;
pub use table::{TableDecoder, TableEncoder, TableForm};
pub use tensor_column::TensorColumn;
