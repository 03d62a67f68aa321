//! The pushdown gateway: S3 in, S3 out.
//!
//! [`cli::run`] reads the configuration, [`app::App`] wires the components, [`server`] accepts connections, and
//! [`s3`] and [`pushdown`] answer their requests. Dependencies run one way: `cli -> app -> server -> s3 -> origin
//! -> {config, error, telemetry}`.

pub mod admin;
pub mod app;
pub mod body;
pub mod cli;
pub mod compute;
pub mod config;
pub mod embedded;
pub mod error;
pub mod models;
pub mod origin;
pub mod pushdown;
pub mod s3;
pub mod server;
pub mod telemetry;
