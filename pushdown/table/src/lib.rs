//! Steps that read an object as a table, on DataFusion.
//!
//! An object is one table, `object`, with one partition: rows keep the order of the file, and a sum of floats is the same
//! on any number of cores. DataFusion only ever sees a plan over that table: no files, no network, no other tables, no
//! operators whose memory can grow past the object, no functions that depend on more than their arguments (`guard`).

mod duckdb;
mod engine;
mod fault;
mod formats;
mod guard;
mod pruning;
mod row_range;
mod steps;

pub use formats::format::Format;
pub use steps::{
    describe::{Description, describe},
    each::Each,
    sample::SampleRows,
    select::Select,
    sql::Sql,
};

/// The name of the table.
const OBJECT_TABLE: &str = "object";

#[cfg(test)]
mod tests;
