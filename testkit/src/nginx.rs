//! nginx as a child process: a strict HTTP server with keep-alive connections that serves the files of a folder.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::process::{Process, eventually};
use crate::raw::Request;

/// A running nginx, killed when dropped.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    address: SocketAddr,
    directory: TempDir,
}

impl Nginx {
    /// Starts nginx and waits until it answers.
    pub fn launch() -> Result<Self> {
        // Retries, since another process may take the port between its choice and its use.
        Self::attempt().or_else(|_taken| Self::attempt())
    }

    fn attempt() -> Result<Self> {
        let binary = find()?;
        let directory = tempfile::tempdir()?;
        let root = directory.path().join("files");
        std::fs::create_dir(&root)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let config = directory.path().join("nginx.conf");
        std::fs::write(&config, configuration(directory.path(), address))?;
        let child = Command::new(&binary)
            .arg("-e")
            .arg(directory.path().join("error.log"))
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut nginx = Self {
            process: Process::new("nginx", child),
            address,
            directory,
        };
        eventually("nginx answers", Duration::from_secs(30), || {
            nginx.process.check()?;
            let request = Request::new("GET", "/").header("host", &address.to_string());
            Ok(request.send(address).ok().map(drop))
        })?;
        Ok(nginx)
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes the object `/bucket/key`.
    pub fn put(&self, bucket: &str, key: &str, body: impl AsRef<[u8]>) -> Result<()> {
        let folder = self.directory.path().join("files").join(bucket);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(key), body)?;
        Ok(())
    }

    /// One line per answered request: the request line, Content-Length and Transfer-Encoding, separated by `;`, with `-` for a
    /// missing header.
    pub fn requests(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.directory.path().join("access.log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

/// A configuration with a single process, so that it can be killed, and with long-lived connections.
fn configuration(directory: &Path, address: SocketAddr) -> String {
    let directory = directory.display();
    format!(
        "daemon off; master_process off; user root; pid {directory}/pid; events {{ worker_connections 256; }}\n\
         http {{\n\
           log_format framing '$request;$http_content_length;$http_transfer_encoding';\n\
           access_log {directory}/access.log framing; keepalive_timeout 60; keepalive_requests 100000; default_type application/octet-stream;\n\
           client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;\n\
           fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;\n\
           server {{ listen {address}; root {directory}/files; }}\n\
         }}\n"
    )
}

/// Path of nginx on Debian.
fn find() -> Result<PathBuf> {
    let binary = PathBuf::from("/usr/sbin/nginx");
    if !binary.is_file() {
        bail!("{} is missing: run `make setup`", binary.display());
    }
    Ok(binary)
}
