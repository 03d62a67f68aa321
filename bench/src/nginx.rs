//! nginx as a plain proxy, with this crate's `nginx.conf`.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pushdown_testkit::eventually;
use tempfile::TempDir;

/// A running nginx; stopped on drop.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    /// Starts nginx as a proxy of `store` and waits until it accepts connections.
    pub fn launch(store: SocketAddr, buffering: bool) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        // If nginx runs as root, its worker runs as another user and needs access to this folder.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755))?;
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let template = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/nginx.conf"))?;
        let file = directory.path().join("nginx.conf");
        let text = template
            .replace("@DIR@", &directory.path().display().to_string())
            .replace("@LISTEN@", &address.to_string())
            .replace("@STORE@", &store.to_string())
            .replace("@BUFFERING@", if buffering { "on" } else { "off" });
        fs::write(&file, text)?;
        let mut command = Command::new("/usr/sbin/nginx");
        command.arg("-c").arg(&file).arg("-p").arg(directory.path());
        let child = command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start nginx: run `apt-get install nginx-light`")?;
        let mut nginx = Self {
            child,
            address,
            _directory: directory,
        };
        eventually("nginx accepts connections", Duration::from_secs(10), || {
            if let Some(status) = nginx.child.try_wait()? {
                bail!("nginx exited: {status}");
            }
            Ok(TcpStream::connect(address).ok().map(drop))
        })?;
        Ok(nginx)
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of its master; the worker is a child of the master.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // On SIGTERM, the master also stops its worker; SIGKILL would orphan the worker. This only fails if nginx has exited.
        drop(
            Command::new("kill")
                .args(["-TERM", &self.child.id().to_string()])
                .status(),
        );
        drop(self.child.wait());
    }
}
