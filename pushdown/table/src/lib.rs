//! Steps that read an object as a table, on DataFusion.
//!
//! An object is one table, `object`, with one partition: rows keep the order of the file, and a sum of floats is the same
//! on any number of cores. DataFusion only ever sees a plan over that table: no files, no network, no other tables, no
//! operators whose memory can grow past the object, no functions that depend on more than their arguments (`guard`).

mod bloom;
mod comparison;
mod describe;
mod duckdb;
mod duplicate;
mod each;
mod engine;
mod estimate;
mod extremes;
mod fault;
mod filter_batches;
mod format;
mod function_memory;
mod functions;
mod guard;
mod object;
mod ordered_partitions;
mod output;
mod overflow;
mod parquet;
mod partition;
mod pattern;
mod prune;
mod read_options;
mod rewrite;
mod row_numbers;
mod row_range;
mod sample;
mod select;
mod selectivity;
mod sql;
mod stream;
mod syntax;
mod uuid_text;
mod window_memory;

pub use describe::{Description, describe};
pub use each::Each;
use engine::TableQuery;
pub use format::Format;
pub use sample::SampleRows;
pub use select::Select;
pub use sql::Sql;

#[cfg(test)]
mod tests;
