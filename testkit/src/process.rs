//! Child processes that end with their handles, and waiting.

use std::fs;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Asks again until there is an answer, for at most `limit`.
pub fn eventually<T>(what: &str, limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            bail!("{what}: not within {limit:?}");
        }
        sleep(Duration::from_millis(10));
    }
}

/// The peak resident memory of a process so far, in bytes.
pub fn peak_memory(id: u32) -> Result<u64> {
    memory(id, "VmHWM:")
}

/// A line of `/proc/ID/status` that tells of memory, in bytes.
pub(crate) fn memory(id: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .context("no such line in status")?;
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

    /// The exit status if it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("cannot wait for {}", self.name))
    }

    /// Fails if it has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.ended()? {
            None => Ok(()),
            Some(status) => bail!("{} ended: {status}", self.name),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
