//! The gateway as a child process.

use std::ffi::OsStr;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::process::{Process, eventually, memory, peak_memory, reset_peak_memory};
use crate::raw::{Request, Response};
use crate::sign::Keys;

/// A running gateway on its own ports, killed when dropped.
#[derive(Debug)]
pub struct Gateway {
    process: Process,
    listen: SocketAddr,
    admin: SocketAddr,
    store: Option<SocketAddr>,
    directory: TempDir,
}

impl Gateway {
    /// Starts `binary serve` with these flags and waits until it serves.
    pub fn launch<S: AsRef<str>>(binary: &Path, flags: impl IntoIterator<Item = S>) -> Result<Self> {
        Self::launch_with(binary, flags, &[])
    }

    /// Like [`launch`](Self::launch), with additional environment variables.
    pub fn launch_with<S: AsRef<str>>(
        binary: &Path,
        flags: impl IntoIterator<Item = S>,
        environment: &[(&str, &OsStr)],
    ) -> Result<Self> {
        Self::launch_in(tempfile::tempdir()?, binary, flags, environment)
    }

    /// Starts a gateway with an embedded store in a temporary folder.
    pub fn embedded<S: AsRef<str>>(
        binary: &Path,
        keys: &Keys,
        flags: impl IntoIterator<Item = S>,
    ) -> Result<Self> {
        Self::embedded_with(binary, keys, flags, &[])
    }

    /// Like [`embedded`](Self::embedded), with additional environment variables.
    pub fn embedded_with<S: AsRef<str>>(
        binary: &Path,
        keys: &Keys,
        flags: impl IntoIterator<Item = S>,
        environment: &[(&str, &OsStr)],
    ) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let mut all = vec![
            format!("--store={}", directory.path().join("store").display()),
            format!("--access-key={}", keys.access),
            format!("--secret-key={}", keys.secret),
        ];
        all.extend(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        Self::launch_in(directory, binary, all, environment)
    }

    fn launch_in<S: AsRef<str>>(
        directory: TempDir,
        binary: &Path,
        flags: impl IntoIterator<Item = S>,
        environment: &[(&str, &OsStr)],
    ) -> Result<Self> {
        let (ready, log) = (directory.path().join("ready.json"), directory.path().join("log"));
        let mut command = Command::new(binary);
        // Defaults in the environment, which flags override.
        command
            .env("PUSHDOWN_LISTEN", "127.0.0.1:0")
            .env("PUSHDOWN_ADMIN_LISTEN", "127.0.0.1:0");
        command
            .env("PUSHDOWN_LOG_FORMAT", "json")
            .env("PUSHDOWN_READY_FILE", &ready)
            .envs(environment.iter().copied());
        command.arg("serve");
        command.args(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut process = Process::new("the gateway", child);
        let addresses = eventually("the gateway serves", Duration::from_mins(1), || {
            if let Some(status) = process.exit_status()? {
                bail!("the gateway ended, {status}: {}", std::fs::read_to_string(&log)?);
            }
            if !ready.exists() {
                return Ok(None);
            }
            Ok(Some(serde_json::from_slice::<Value>(&std::fs::read(&ready)?)?))
        })?;
        let address = |name: &str| addresses[name].as_str().and_then(|text| text.parse().ok());
        Ok(Self {
            listen: address("listen").context("no listen address in the ready file")?,
            admin: address("admin").context("no admin address in the ready file")?,
            store: address("store"),
            process,
            directory,
        })
    }

    /// Address of the S3 endpoint.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Address of the admin endpoint for health, metrics and status.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Address of the embedded store, if any.
    pub fn store(&self) -> Option<SocketAddr> {
        self.store
    }

    /// Requests a page of the admin endpoint.
    pub fn page(&self, path: &str) -> Result<Response> {
        Request::new("GET", path)
            .header("host", &self.admin.to_string())
            .send(self.admin)
    }

    /// The value of a metric, with its labels in `name`; zero if it has no value with these labels yet.
    ///
    /// # Errors
    /// If the gateway does not list such a metric at all.
    pub fn metric(&self, name: &str) -> Result<f64> {
        let page = self.page("/metrics")?.text();
        let family = name.split('{').next().unwrap_or(name);
        let family = ["_total", "_bucket", "_count", "_sum"]
            .iter()
            .find_map(|suffix| family.strip_suffix(suffix))
            .unwrap_or(family);
        ensure!(
            page.contains(&format!("# TYPE {family} ")),
            "unknown metric `{name}`"
        );
        let value = page
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(Ok(0.0), |value| Ok(value.parse()?))
    }

    /// The log so far.
    pub fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.directory.path().join("log"))?)
    }

    /// Sends SIGTERM, so that it drains and ends.
    pub fn terminate(&self) -> Result<()> {
        self.signal("-TERM")
    }

    /// Sends SIGHUP, so that it reads its keys again.
    pub fn hang_up(&self) -> Result<()> {
        self.signal("-HUP")
    }

    /// Sends SIGSTOP: it does nothing, and its connections stay open, until it is resumed.
    pub fn freeze(&self) -> Result<()> {
        self.signal("-STOP")
    }

    /// Sends SIGCONT, after [`freeze`](Self::freeze).
    pub fn resume(&self) -> Result<()> {
        self.signal("-CONT")
    }

    fn signal(&self, signal: &str) -> Result<()> {
        let status = Command::new("kill")
            .args([signal, &self.process.id().to_string()])
            .status()?;
        if !status.success() {
            bail!("kill: {status}");
        }
        Ok(())
    }

    /// Waits until it ends.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        eventually("the gateway ends", limit, || self.process.exit_status())
    }

    /// Peak resident memory in bytes.
    pub fn peak_memory(&self) -> Result<u64> {
        peak_memory(self.process.id())
    }

    /// Sets the peak to the current resident memory, which it returns in bytes.
    pub fn reset_peak_memory(&self) -> Result<u64> {
        reset_peak_memory(self.process.id())?;
        self.resident_memory()
    }

    /// Current resident memory in bytes.
    pub fn resident_memory(&self) -> Result<u64> {
        memory(self.process.id(), "VmRSS:")
    }
}

/// Path of the gateway binary for tests of other packages: `PUSHDOWN_GATEWAY`, or in the folder of the test binary.
pub fn find_gateway() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("PUSHDOWN_GATEWAY") {
        return Ok(path.into());
    }
    let test = std::env::current_exe()?;
    let candidates = test
        .ancestors()
        .skip(1)
        .take(3)
        .map(|folder| folder.join("pushdown-gateway"));
    candidates
        .into_iter()
        .find(|path| path.is_file())
        .context("found no pushdown-gateway near the test binary: run `cargo build -p pushdown-gateway`, or set PUSHDOWN_GATEWAY")
}
