//! The embedded store in a program without the feature `embedded-store`: it cannot be configured, and so never runs.

use std::{io, net::SocketAddr};

use http::Uri;

use crate::{body::BoxError, config::StoreFolder};

/// A running store. A program without the feature `embedded-store` never has one.
#[derive(Debug)]
pub enum EmbeddedStore {}

impl EmbeddedStore {
    /// Starts the store.
    #[expect(clippy::unused_async, reason = "the same signature as of the store that runs")]
    pub async fn start(folder: &StoreFolder) -> Result<Self, BoxError> {
        match *folder {}
    }

    /// The address that the store listens on.
    pub fn address(&self) -> SocketAddr {
        match *self {}
    }

    /// The URL of the store.
    pub fn url(&self) -> io::Result<Uri> {
        match *self {}
    }
}
