//! A peer in Python: a process that runs a round on request and reports its CPU time.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::progress::report;

/// A running worker; killed on drop.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    image_count: f64,
}

impl PeerProcess {
    /// Starts the worker on a folder of photos, with the variant's further arguments, and waits until it has read them. Its
    /// libraries use one thread.
    pub(crate) fn start(python: &Path, variant: &str, folder: &Path, further: &[&Path]) -> Result<Self> {
        let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/worker.py");
        let mut command = Command::new(python);
        command
            .arg(worker)
            .arg(variant)
            .arg(folder)
            .args(further)
            .env("OMP_NUM_THREADS", "1");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let input = child.stdin.take().context("the worker has no input")?;
        let output = BufReader::new(child.stdout.take().context("the worker has no output")?);
        let mut peer = Self {
            child,
            input,
            output,
            image_count: 0.0,
        };
        let greeting = peer
            .read_line()
            .with_context(|| format!("the worker `{variant}` did not start"))?;
        let (image_count, versions) = greeting
            .split_once(' ')
            .context("invalid greeting of the worker: expected the number of images and versions")?;
        peer.image_count = image_count.parse()?;
        report(&format!("  {variant}: {versions}"));
        Ok(peer)
    }

    /// Runs one round; returns CPU seconds per image.
    pub(crate) fn round(&mut self) -> Result<f64> {
        self.start_round()?;
        self.finish_round()
    }

    fn start_round(&mut self) -> Result<()> {
        Ok(writeln!(self.input, "round")?)
    }

    fn finish_round(&mut self) -> Result<f64> {
        let seconds: f64 = self.read_line()?.parse()?;
        Ok(seconds / self.image_count)
    }

    fn read_line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the worker exited");
        Ok(line.trim().to_owned())
    }
}

/// Runs a round of all peers at the same time; returns the mean CPU seconds per image.
pub(crate) fn concurrent_round(peers: &mut [PeerProcess]) -> Result<f64> {
    peers.iter_mut().try_for_each(PeerProcess::start_round)?;
    let seconds = peers
        .iter_mut()
        .map(PeerProcess::finish_round)
        .sum::<Result<f64>>()?;
    Ok(seconds / f64::from(u32::try_from(peers.len())?))
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // Both only fail if the worker has exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
