//! A store that `scripts/real_stores` starts: Ceph or Garage.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::sign::Keys;

/// A running store. Dropping it ends it and removes its files; so does the end of this process.
#[derive(Debug)]
pub(crate) struct ChildStore {
    launcher: Child,
    ready: Value,
}

impl ChildStore {
    /// Starts the store `name` with these accounts, none of which has a right on the buckets of another one.
    pub(crate) fn launch(name: &str, accounts: &[&Keys]) -> Result<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/real_stores");
        let mut command = Command::new("python3");
        command.arg(program).arg(name);
        for keys in accounts {
            command.arg(format!("--account={}:{}", keys.access, keys.secret));
        }
        let mut launcher = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start python3")?;
        let mut line = String::new();
        if let Some(stdout) = launcher.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        let mut store = Self {
            launcher,
            ready: Value::Null,
        };
        ensure!(!line.is_empty(), "{name} did not start: stderr has the reason");
        store.ready = serde_json::from_str(&line).with_context(|| format!("{name} printed {line}"))?;
        Ok(store)
    }

    /// Address of its S3 endpoint.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.text("address")?.parse()?)
    }

    /// What it has printed under this name.
    pub(crate) fn text(&self, name: &str) -> Result<&str> {
        let text = self.ready[name].as_str();
        text.with_context(|| format!("the store printed no {name}"))
    }
}

impl Drop for ChildStore {
    fn drop(&mut self) {
        drop(self.launcher.stdin.take());
        // Fails only if the launcher has already ended.
        drop(self.launcher.wait());
    }
}
