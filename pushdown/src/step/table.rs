//! Steps that make tables of objects, on DataFusion.
//!
//! An object is one table, `object`, of one partition: rows come in the order of the file, and a sum of floats is the same
//! on any number of cores. What DataFusion is given is a plan over that table and nothing else: no files, no network, no
//! other tables, nothing that outgrows the object, no functions that depend on more than their arguments (`guard`).

mod between;
mod bloom;
mod bounded;
mod comparison;
mod describe;
mod duckdb;
mod each;
mod engine;
mod estimate;
mod extremes;
mod fault;
mod filtered;
mod format;
mod functions;
mod guard;
mod held;
mod identifier;
mod in_order;
mod likely;
mod object;
mod options;
mod output;
mod overflow;
mod parquet;
mod partition;
mod pattern;
mod prune;
mod rewrite;
mod row_numbers;
mod rowwise;
mod sample;
mod select;
mod sql;
mod stream;
mod syntax;
mod twice;

pub use describe::{Description, describe};
pub use each::Each;
use engine::Query;
pub(crate) use engine::{Opened, open};
pub use format::Format;
pub(crate) use rowwise::{Rows, Rowwise, follow};
pub use sample::SampleRows;
pub use select::Select;
pub use sql::Sql;

#[cfg(test)]
mod tests;
