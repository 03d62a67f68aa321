//! What all readers share of reading an epoch: its order, the prefetch budget, and what runs first.

pub(crate) mod batch_queue;
pub(crate) mod budget;
pub(crate) mod order;
pub(crate) mod rank;
