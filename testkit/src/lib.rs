//! For development only: the real gateway, real stores, a faulty origin, a signer and a raw HTTP client.
//!
//! Everything here blocks, so that a test reads from top to bottom; an asynchronous test calls it from a thread.
//! Processes end with their handles, ports are the kernel's choice, and waiting means asking again, never
//! hoping that some time is enough.

mod backend;
mod gateway;
mod models;
mod nginx;
mod origin;
mod process;
mod raw;
mod sign;
mod stats;
mod tables;
mod weed;

pub use backend::{Backend, Store};
pub use gateway::{Gateway, find_gateway};
pub use models::{model_folder, onnxruntime, other_onnxruntime};
pub use nginx::Nginx;
pub use origin::{Exchange, ScriptedOrigin};
pub use process::{eventually, peak_memory};
pub use raw::{Incoming, Raw, Request, Response};
pub use sign::{Keys, Payload};
pub use stats::{distance, jain};
pub use tables::{Parquet, first_byte, ranged};
pub use weed::Weed;
