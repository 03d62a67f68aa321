//! nginx as a plain proxy, by the configuration beside this crate.

use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use pushdown_testkit::eventually;
use tempfile::TempDir;

/// A running nginx; ended when dropped.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    address: SocketAddr,
    _directory: TempDir,
}

impl Nginx {
    /// Starts it in front of `store` and waits until it accepts.
    pub fn launch(store: SocketAddr, buffering: bool) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        // As root, its worker is another user, and needs to come at the folders in here.
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
        let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.context("cannot start nginx: `apt-get install nginx-light`")?;
        let mut nginx = Self {
            child,
            address,
            _directory: directory,
        };
        eventually("nginx accepts", Duration::from_secs(10), || {
            if let Some(status) = nginx.child.try_wait()? {
                bail!("nginx ended: {status}");
            }
            Ok(TcpStream::connect(address).ok().map(drop))
        })?;
        Ok(nginx)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The id of its master; the worker is that one's child.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Killed, the master would leave its worker behind; told to end, it takes it along. This fails only where
        // there is nothing left to end.
        drop(
            Command::new("kill")
                .args(["-TERM", &self.child.id().to_string()])
                .status(),
        );
        drop(self.child.wait());
    }
}
