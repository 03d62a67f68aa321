//! A store for trials: s3s-fs on a local folder, inside this process.
//!
//! It listens on a loopback port and is reached like any other store, so that nothing works only with it. It
//! checks signatures; it is neither fast nor complete.

mod confined;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use http::Uri;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use pushdown::wire::header;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use crate::body::BoxError;
use crate::config::values::Secret;
use confined::Confined;

/// Which folder to serve, and to whom.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder; made if it is missing.
    pub directory: PathBuf,
    /// The one access key.
    pub access_key: String,
    /// Its secret.
    pub secret_key: Secret,
}

/// A running store; it ends when dropped.
#[derive(Debug)]
pub struct Embedded {
    address: SocketAddr,
    _running: AbortOnDropHandle<()>,
}

impl Config {
    /// Starts the store.
    pub async fn build(self) -> Result<Embedded, BoxError> {
        let directory = self.directory.display().to_string();
        let fault = |cause: String| format!("store {directory}: {cause}");
        tokio::fs::create_dir_all(&self.directory)
            .await
            .map_err(|error| fault(error.to_string()))?;
        let files = FileSystem::new(&self.directory).map_err(|error| fault(format!("{error:?}")))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(
            self.access_key,
            self.secret_key.reveal().to_owned(),
        ));
        service.set_access(Confined::new(&self.directory).map_err(|error| fault(error.to_string()))?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let running = AbortOnDropHandle::new(tokio::spawn(accept(listener, service.build())));
        Ok(Embedded {
            address,
            _running: running,
        })
    }
}

// === impl Embedded ===

impl Embedded {
    /// Where the store listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The store as an upstream.
    pub fn url(&self) -> io::Result<Uri> {
        format!("http://{}", self.address)
            .parse()
            .map_err(io::Error::other)
    }
}

async fn accept(listener: TcpListener, service: S3Service) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _peer)) => stream,
            Err(error) => {
                warn!(%error, "the embedded store cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let service = service.clone();
        tokio::spawn(async move {
            if let Err(error) = http1::Builder::new()
                .max_headers(header::MAX_COUNT)
                .serve_connection(TokioIo::new(stream), service)
                .await
            {
                debug!(%error, "a connection to the embedded store ended early");
            }
        });
    }
}
