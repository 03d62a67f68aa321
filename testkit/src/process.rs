//! Child processes that are killed with their handles, and polling.

use std::fs;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Polls `ask` until it returns a value, for at most `limit`.
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("timed out after {limit:?} while waiting until {what}");
        }
        sleep(Duration::from_millis(10));
    }
}

/// The peak resident memory of a process in bytes.
pub fn peak_memory(id: u32) -> Result<u64> {
    memory(id, "VmHWM:")
}

/// Sets the peak resident memory of a process to its current one.
pub(crate) fn reset_peak_memory(id: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{id}/clear_refs"), "5")?)
}

/// A memory size from `/proc/ID/status` in bytes.
pub(crate) fn memory(id: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .with_context(|| format!("/proc/{id}/status has no line {name}"))?;
    let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}

/// A child process, killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    name: &'static str,
}

impl Process {
    pub(crate) fn new(name: &'static str, child: Child) -> Self {
        Self { child, name }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status; `None` while the process runs.
    pub(crate) fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Fails if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.exit_status()? {
            None => Ok(()),
            Some(status) => bail!("{} ended: {status}", self.name),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
