//! The pushdown gateway: S3 in, S3 out.
//!
//! [`cli::run`] reads the configuration, [`app::App`] wires the components, [`server`] accepts connections, and
//! [`routes`] answers their requests. Dependencies run one way: `cli -> app -> {server, routes} -> cache -> {compute, origin} -> s3
//! -> {config, error, telemetry}`.

pub mod access;
pub mod admin;
pub mod app;
pub mod audit;
pub mod body;
pub mod cache;
pub mod cli;
pub mod compute;
pub mod config;
#[cfg_attr(not(feature = "embedded-store"), path = "no_embedded.rs")]
pub mod embedded;
pub mod error;
#[cfg_attr(not(feature = "models"), path = "no_models.rs")]
pub mod models;
pub mod origin;
mod private;
pub mod resign;
pub mod routes;
pub mod s3;
pub mod server;
pub mod telemetry;
