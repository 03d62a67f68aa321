//! What all readers share of reading an epoch, whatever its samples are.
//!
//! An epoch has an [`order`], of which a reader has a share. [`read_units`] reads it ahead, [unit](Units) by unit, within a [`Budget`].
//! [`Deliveries`] hand over what has arrived in order; an [`EpochStream`] is what the consumer polls, and [`hand_over`] decides about failed
//! samples. What differs between kinds of samples, and is no matter of how they are read, is one value: [`Promises`].

mod batch_queue;
mod budget;
mod deliveries;
mod driver;
mod hand_over;
pub(crate) mod order;
mod pacer;
mod plan;
mod progress;
mod promises;
mod rank;
mod stream;

pub(crate) use batch_queue::{BatchQueue, Ticket};
pub(crate) use budget::{Budget, Charge};
pub(crate) use deliveries::{Deliveries, DeliverySender};
pub(crate) use driver::{Units, read_units};
pub(crate) use hand_over::hand_over;
#[cfg(feature = "tables")]
pub(crate) use pacer::PacedBytes;
pub(crate) use pacer::{PaceClass, PacedRead, Pacer};
pub(crate) use plan::ReadPlan;
pub(crate) use progress::BatchProgress;
pub(crate) use promises::{Promises, SavedState};
pub use rank::{Rank, Worker};
pub(crate) use stream::EpochStream;
