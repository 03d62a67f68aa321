//! The pushdown gateway: S3 in, S3 out. It is a program, and [`cli::run`] runs it.
//!
//! `cli` reads the configuration, `app` wires the components, `server` accepts connections, and `routes` answers their
//! requests. Dependencies run one way: `cli -> app -> {server, routes} -> cache -> {compute, origin} -> s3
//! -> {config, error, telemetry}`.

#![expect(
    unreachable_pub,
    reason = "in a program, `pub` is what a module offers to the others; only `cli` and `testing` are public"
)]

mod access;
mod admin;
mod app;
mod audit;
mod body;
mod cache;
pub mod cli;
mod compute;
mod config;
#[cfg_attr(not(feature = "embedded-store"), path = "no_embedded.rs")]
mod embedded;
mod engine;
mod error;
#[cfg_attr(not(feature = "models"), path = "no_models.rs")]
mod models;
mod origin;
mod private;
mod replica;
mod resign;
mod routes;
mod s3;
mod server;
mod telemetry;
#[doc(hidden)]
pub mod testing;
