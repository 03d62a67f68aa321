//! What readers read, a folder for each kind: [objects and indexed members](objects), [rows of Parquet objects](rows), and
//! [members of shards without an index](shards). No folder imports another.

pub(crate) mod objects;
#[cfg(feature = "tables")]
pub(crate) mod rows;
pub(crate) mod shards;
