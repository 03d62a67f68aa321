//! The formats of objects: Parquet, CSV, JSON lines, Arrow IPC.

pub(crate) mod arrow_schema;
pub(crate) mod format;
pub(crate) mod parquet;
pub(crate) mod read_options;
pub(crate) mod stream;
