//! The table `object` in DataFusion: one partition, rows in the order of the file.

pub(crate) mod filter_batches;
pub(crate) mod object;
pub(crate) mod ordered_partitions;
pub(crate) mod output;
pub(crate) mod partition;
pub(crate) mod query;
pub(crate) mod row_numbers;
