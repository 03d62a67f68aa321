//! A peer in Python: a process that does a round whenever it is told to, and says what CPU time it took.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::progress::say;

/// A running worker; killed when dropped.
#[derive(Debug)]
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    images: f64,
}

impl Peer {
    /// Starts the worker on a folder of photos, with whatever else the variant takes, and waits until it has read them.
    /// Its libraries run one thread.
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
            images: 0.0,
        };
        let ready = peer.line().with_context(|| format!("{variant} does not start"))?;
        let (images, versions) = ready
            .split_once(' ')
            .context("the worker did not say what it is")?;
        peer.images = images.parse()?;
        say(&format!("  {variant}: {versions}"));
        Ok(peer)
    }

    /// One round: CPU seconds per image.
    pub(crate) fn round(&mut self) -> Result<f64> {
        self.begin()?;
        self.end()
    }

    fn begin(&mut self) -> Result<()> {
        Ok(writeln!(self.input, "round")?)
    }

    fn end(&mut self) -> Result<f64> {
        let seconds: f64 = self.line()?.parse()?;
        Ok(seconds / self.images)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the worker ended");
        Ok(line.trim().to_owned())
    }
}

/// A round of each, all at the same time: CPU seconds per image, of any of them.
pub(crate) fn round_of_all(peers: &mut [Peer]) -> Result<f64> {
    peers.iter_mut().try_for_each(Peer::begin)?;
    let seconds = peers.iter_mut().map(Peer::end).sum::<Result<f64>>()?;
    Ok(seconds / f64::from(u32::try_from(peers.len())?))
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Both fail only where there is nothing left to end.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
