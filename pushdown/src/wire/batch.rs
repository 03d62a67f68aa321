//! Many samples in one request, and their rows in one Arrow stream.

mod column;
mod reader;
mod request;
mod row;
mod schema;
mod target;
mod writer;

pub use reader::BatchReader;
pub use request::{BatchRequest, BatchSample, MAX_REQUEST_BYTES, OnError, Order};
pub use row::{Row, RowError};
pub use schema::ValueType;
pub use target::sample_id;
pub use writer::BatchWriter;
