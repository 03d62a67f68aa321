//! The keys file of a gateway in re-sign mode: its text, and its replacement.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use pushdown_testkit::{Gateway, Keys, eventually};
use tempfile::TempDir;

use super::EVERYTHING;

/// Longest wait for a reload of the keys file.
const RELOAD_LIMIT: Duration = Duration::from_secs(20);

/// A keys file that can be replaced.
pub(super) struct KeysFile {
    folder: TempDir,
}

impl KeysFile {
    pub(super) fn new(blocks: &[String]) -> Result<Self> {
        let file = Self {
            folder: tempfile::tempdir()?,
        };
        file.write(&blocks.concat())?;
        Ok(file)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("keys.toml")
    }

    /// Replaces the file as a whole, so that no reload reads a part of it.
    pub(super) fn write(&self, text: &str) -> Result<()> {
        let draft = self.folder.path().join("draft");
        let mut file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(text.as_bytes())?;
        fs::rename(draft, self.path())?;
        Ok(())
    }
}

/// A `[[key.grant]]` of the keys file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    bucket: &'static str,
    prefix: &'static str,
    allow: &'static [&'static str],
    pipelines: bool,
}

impl Grant {
    pub(super) const fn new(
        bucket: &'static str,
        prefix: &'static str,
        allow: &'static [&'static str],
    ) -> Self {
        Self {
            bucket,
            prefix,
            allow,
            pipelines: false,
        }
    }

    pub(super) const fn with_pipelines(self) -> Self {
        Self {
            pipelines: true,
            ..self
        }
    }

    pub(super) fn block(&self) -> String {
        let Self {
            bucket,
            prefix,
            allow,
            pipelines,
        } = self;
        format!(
            "[[key.grant]]\nbucket = {bucket:?}\nprefix = {prefix:?}\nallow = {allow:?}\npipelines = {pipelines}\n\n"
        )
    }
}

/// A `[[key]]` of the keys file, with its grants.
pub(super) fn key_block(keys: &Keys, upstream: &str, grants: &[Grant]) -> String {
    let Keys { access, secret, .. } = keys;
    let key = format!("[[key]]\naccess-key = {access:?}\nsecret = {secret:?}\nupstream = {upstream:?}\n\n");
    let grants: Vec<_> = grants.iter().map(Grant::block).collect();
    key + &grants.concat()
}

/// A `[[key]]` with all rights on objects, and with these models.
pub(super) fn key_block_with_models(keys: &Keys, models: &[&str]) -> String {
    let block = key_block(keys, "gateway", &[EVERYTHING]);
    block.replacen("\n\n", &format!("\nmodels = {models:?}\n\n"), 1)
}

/// Waits until the gateway has logged that it reads a replaced keys file.
pub(super) fn wait_for_reload(gateway: &Gateway) -> Result<()> {
    eventually("the keys file is reloaded", RELOAD_LIMIT, || {
        Ok(gateway.log()?.contains("keys file reloaded").then_some(()))
    })
}
