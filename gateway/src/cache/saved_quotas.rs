//! The file with the quotas, in the folder of the disk.
//!
//! It is written while values are, so that after a restart the values of each set have their quota before the first request: else
//! other sets would take the space, and overwrite them.

use std::{
    fs, io,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    Inner,
    quotas::{Quotas, SavedQuotas},
};

/// How often the quotas are saved at most.
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Saving takes at most this part of the time: with many sets, the next time is later.
const MAX_TIME_RATIO: u32 = 100;

/// Name of the file, which earlier versions wrote by this name, too.
const NAME: &str = "shares.json";
/// Its name while it is written.
const NEW_NAME: &str = "shares.json.new";
/// Maximum bytes of the file: more than that of the most sets.
const MAX_BYTES: u64 = 128 << 20;

/// The file.
#[derive(Debug)]
pub(super) struct QuotasFile {
    folder: PathBuf,
    state: Mutex<State>,
    /// Held while the file is written.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// The changes that are saved.
    changes: u64,
    /// Not before this time.
    next: Option<Instant>,
}

impl QuotasFile {
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            state: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Gives the sets of an earlier run their quotas. Returns the time of the quotas now. A damaged file is as none: the quotas
    /// follow from the requests then.
    pub(super) fn resume(&self, quotas: &mut Quotas, clock: SystemTime) -> Duration {
        let json = match read(&self.folder.join(NAME)) {
            Ok(json) => json,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, "cannot read the quotas of the result cache");
                }
                return Duration::ZERO;
            }
        };
        let Some(saved) = SavedQuotas::from_json(&json) else {
            tracing::warn!(
                "the saved quotas of the result cache are damaged, or of another version: they are not used"
            );
            return Duration::ZERO;
        };
        let now = saved.resumed_at(clock);
        quotas.resume(saved, now);
        now
    }
}

impl Inner {
    /// Saves the quotas, if they have changed and if there is a disk; not again at once, unless it `is_last`.
    pub(super) async fn save_quotas(&self, is_last: bool) {
        let Some(file) = &self.saved_quotas else { return };
        let _writing = file.writing.lock().await;
        let saved = {
            let (quotas, mut state) = (self.quotas.lock(), file.state.lock());
            let is_early = !is_last && state.next.is_some_and(|next| Instant::now() < next);
            if is_early || state.changes == quotas.changes() {
                return;
            }
            state.changes = quotas.changes();
            quotas.save(self.now(), SystemTime::now())
        };
        let (started, folder) = (Instant::now(), file.folder.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "writes to a file, as `tokio::fs` does; its JSON is as short as the table of quotas"
        )]
        let written = tokio::task::spawn_blocking(move || {
            let json = saved.to_json().map_err(io::Error::other)?;
            write(&folder, &json)
        });
        if let Ok(Err(error)) = written.await {
            tracing::debug!(%error, "cannot save the quotas of the result cache");
        }
        file.state.lock().next = Some(Instant::now() + MAX_TIME_RATIO * started.elapsed());
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::symlink_metadata(path)?.len();
    if bytes > MAX_BYTES {
        return Err(io::Error::other(format!(
            "{}: expected at most {MAX_BYTES} bytes, found {bytes}",
            path.display()
        )));
    }
    fs::read(path)
}

/// Replaces the file at once, so that one that was not written completely is never read.
fn write(folder: &Path, json: &[u8]) -> io::Result<()> {
    let new = folder.join(NEW_NAME);
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(json)?;
    fs::rename(new, folder.join(NAME))
}
