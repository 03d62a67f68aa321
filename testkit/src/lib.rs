//! Test support: launches the gateway and stores, and has a gateway with objects, a scripted origin, a front that addresses a store as
//! AWS does, faulty and slow relays, a request signer and a raw HTTP client.
//!
//! All functions block, so that tests read from top to bottom; asynchronous tests call them from a thread. Processes are
//! killed when their handles are dropped, the kernel chooses the ports, and waiting polls for a condition instead of
//! sleeping for a fixed time.

mod aws_front;
mod backend;
mod child_store;
mod gateway;
mod juicefs;
mod models;
mod nginx;
mod origin;
mod policy_store;
mod process;
mod raw;
mod real_store;
mod relay;
mod replica;
mod sending;
mod sign;
mod stats;
mod store_relay;
mod tables;
mod throttle;
mod weed;
mod world;

pub use aws_front::{AwsFront, CredentialsAnswer, FrontRecord, IssuedSession, MovedAnswer};
pub use backend::{Backend, Store};
pub use gateway::{Gateway, find_gateway};
pub use juicefs::JuiceFs;
pub use models::{model_folder, onnxruntime, other_onnxruntime};
pub use nginx::Nginx;
pub use origin::{Exchange, ScriptedOrigin};
pub use policy_store::{EXPIRED_SIGNATURE, GOOD_SIGNATURE, PolicyStore, signed_by};
pub use process::{eventually, peak_memory};
pub use raw::{Incoming, Raw, Request, Response};
pub use real_store::RealStore;
pub use relay::{
    Gate, RelayAction, draining_relay, faulty_relay, features_relay, gated_relay, late_relay,
    other_engine_relay, overloaded_relay, recording_relay, region_relay, slow_relay,
};
pub use replica::Replica;
pub use sending::Sent;
pub use sign::{ChunkedBody, Keys, Payload, Trailers};
pub use stats::{distance, jain};
pub use store_relay::StoreRelay;
pub use tables::{Parquet, first_byte, ranged};
pub use throttle::Throttle;
pub use weed::Weed;
pub use world::{ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, photos};
