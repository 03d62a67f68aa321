//! An object store for trials: s3s-fs on a local folder, inside this process, with listings, ETags and errors of our own.
//!
//! It listens on a loopback port and is accessed like any other store, so that no feature depends on it. It verifies
//! signatures. It is neither fast nor complete.

mod attributes;
mod conditions;
mod folder_access;
mod folder_store;
mod keys;
mod listing;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::{fs, io};

use http::Uri;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pushdown::wire::header;
use pushdown_s3::Escaped;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use crate::body::BoxError;
use crate::config::StoreFolder;
use folder_access::FolderAccess;
use folder_store::FolderStore;

/// A running store. Dropping it stops it.
#[derive(Debug)]
pub struct EmbeddedStore {
    address: SocketAddr,
    _running: AbortOnDropHandle<()>,
}

/// Creates the folder if it is missing, and checks that it is readable.
fn ensure_folder(directory: &Path) -> Result<(), String> {
    let found = |found: &str| not_a_folder(directory, found);
    // `components` drops a trailing slash, with which `symlink_metadata` would follow the link.
    let is_link =
        fs::symlink_metadata(directory.components().as_path()).is_ok_and(|entry| entry.is_symlink());
    match fs::metadata(directory) {
        Ok(entry) if entry.is_dir() => {}
        Ok(_) => return Err(found("a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_link => {
            return Err(found("a link to nothing"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(directory)
                .map_err(|error| found(&format!("no folder, and cannot create one: {error}")))?;
        }
        Err(error) => return Err(found(&error.to_string().to_lowercase())),
    }
    fs::read_dir(directory).map_err(|error| found(&error.to_string().to_lowercase()))?;
    Ok(())
}

/// The error for a directory that cannot be the store.
fn not_a_folder(directory: &Path, found: &str) -> String {
    let path = directory.display();
    Escaped(&format!(
        "store {path}: expected a readable folder, found {found}"
    ))
    .to_string()
}

impl EmbeddedStore {
    /// Starts the store.
    pub async fn start(folder: &StoreFolder) -> Result<Self, BoxError> {
        let directory = &folder.directory;
        ensure_folder(directory)?;
        // The error is not shown: it has no `Display`, and `ensure_folder` has already checked the usual causes.
        let files = FileSystem::new(directory)
            .map_err(|_error| not_a_folder(directory, "one that cannot be opened"))?;
        let found = |error: io::Error| not_a_folder(directory, &error.to_string().to_lowercase());
        let store = FolderStore::new(files, directory).map_err(found)?;
        let mut service = S3ServiceBuilder::new(store);
        service.set_auth(SimpleAuth::from_single(
            folder.access_key.clone(),
            folder.secret_key.reveal().to_owned(),
        ));
        service.set_access(FolderAccess::new(directory).map_err(found)?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let running = AbortOnDropHandle::new(tokio::spawn(accept(listener, service.build())));
        Ok(Self {
            address,
            _running: running,
        })
    }

    /// The address that the store listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the store.
    pub fn url(&self) -> io::Result<Uri> {
        format!("http://{}", self.address)
            .parse()
            .map_err(io::Error::other)
    }
}

async fn accept(listener: TcpListener, service: S3Service) {
    loop {
        let stream = match next_stream(&listener).await {
            Ok(stream) => stream,
            Err(error) => {
                warn!(%error, "embedded store: cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| conditions::answer(&service, request));
            if let Err(error) = http1::Builder::new()
                .max_headers(header::MAX_COUNT)
                .serve_connection(TokioIo::new(stream), answer)
                .await
            {
                debug!(%error, "embedded store: connection ended early");
            }
        });
    }
}

async fn next_stream(listener: &TcpListener) -> io::Result<TcpStream> {
    let (stream, _peer) = listener.accept().await?;
    // With Nagle's algorithm the end of an object waits for the acknowledgement of what comes before it, which may take 40 ms.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::values::Secret;

    #[tokio::test]
    async fn the_end_of_an_object_is_sent_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(next_stream(&listener).await.unwrap().nodelay().unwrap());
    }

    async fn fault(directory: PathBuf) -> String {
        let folder = StoreFolder {
            directory,
            access_key: "key".to_owned(),
            secret_key: Secret::new("secret".to_owned()),
        };
        EmbeddedStore::start(&folder).await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_path_that_is_not_a_folder_is_an_error_that_names_what_was_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), b"").unwrap();
        std::os::unix::fs::symlink(path("nothing"), path("link")).unwrap();
        std::os::unix::fs::symlink(path("loop"), path("loop")).unwrap();
        std::os::unix::fs::symlink(path("file"), path("to-file")).unwrap();
        for (name, found) in [
            ("file", "a file"),
            ("to-file", "a file"),
            ("link", "a link to nothing"),
            ("link/", "a link to nothing"),
            ("loop", "too many levels of symbolic links (os error 40)"),
            ("file/store", "not a directory (os error 20)"),
            (
                "link/store",
                "no folder, and cannot create one: File exists (os error 17)",
            ),
        ] {
            let expected = format!(
                "store {}: expected a readable folder, found {found}",
                path(name).display()
            );
            assert_eq!(fault(path(name)).await, expected);
        }
        let expected = "store no\\u{0}name: expected a readable folder, found file name contained an unexpected nul byte";
        assert_eq!(fault(PathBuf::from("no\0name")).await, expected);
        let proc = "store /proc/none: expected a readable folder, found no folder, and cannot create one: \
                    No such file or directory (os error 2)";
        assert_eq!(fault(PathBuf::from("/proc/none")).await, proc);
    }

    #[tokio::test]
    async fn a_missing_folder_is_created() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b c/d");
        ensure_folder(&deep).unwrap();
        ensure_folder(&deep).unwrap();
        assert!(deep.is_dir());
    }
}
