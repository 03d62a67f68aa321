//! The steps `select`, `sql`, `sample` and `each`, and the description of a table.

pub(crate) mod describe;
pub(crate) mod each;
pub(crate) mod sample;
pub(crate) mod select;
pub(crate) mod sql;
