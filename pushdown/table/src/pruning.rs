//! What statistics and bloom filters exclude, and how many rows are expected.

pub(crate) mod bloom;
pub(crate) mod estimate;
pub(crate) mod prune;
pub(crate) mod selectivity;
