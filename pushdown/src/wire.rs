//! The wire: what the gateway and its readers say to each other, as bytes.
//!
//! One value travels as a [`Form`] ([`encode`], [`decode`]); many travel as rows of one Arrow stream
//! ([`BatchWriter`], [`BatchReader`]), asked for by a [`BatchRequest`]. What comes in is never trusted: lengths,
//! shapes and types are checked against the bytes at hand before anything is sized by them.
//!
//! Status lines, sockets and retries are not here: this crate knows no network.

#[cfg(test)]
mod arbitrary;
mod arrow;
mod batch;
mod cpu_time;
mod cpus;
mod encode;
mod fixed;
mod form;
pub mod header;
mod ipc;
mod npy;
mod raw;
mod safetensors;
mod shape;
mod split;
mod table;
mod tensors;

pub use batch::{
    BatchReader, BatchRequest, BatchSample, BatchWriter, Compression, MAX_REQUEST_BYTES, OnError, Order, Row,
    RowError, ValueType, sample_id,
};
pub use cpu_time::{CpuTime, NoCpuTime};
pub use cpus::cpus;
pub use encode::{Encoded, decode, encode};
pub use fixed::FixedShape;
pub use form::Form;
pub(crate) use ipc::{Frames, Message};
pub use split::Split;
pub use table::{TableDecoder, TableEncoder, TableForm};
pub(crate) use tensors::Tensors;
