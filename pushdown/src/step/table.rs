//! Steps that make tables of objects, on DataFusion.
//!
//! An object is one table, `object`, of one partition: rows come in the order of the file, and a sum of floats is the same
//! on any number of cores. What DataFusion is given is a plan over that table and nothing else: no files, no network, no
//! other tables, no functions that depend on more than their arguments (`guard`).

mod describe;
mod engine;
mod estimate;
mod fault;
mod format;
mod guard;
mod object;
mod output;
mod parquet;
mod prune;
mod select;
mod sql;
mod syntax;

pub use describe::{Description, describe};
use engine::Query;
pub(crate) use engine::{Opened, open};
pub use format::Format;
pub use select::Select;
pub use sql::Sql;

#[cfg(test)]
mod tests;
