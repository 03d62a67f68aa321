//! A download in parts, with pauses. What has arrived stays in the folder of weights, so that the next reader goes on from there.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use pushdown::step::model::read_file;

use super::{Download, request};
use crate::{
    error::{Error, Result},
    transport::Answer,
};

/// Bytes that are requested at once: on a thin link they delay a batch by little.
const PART_BYTES: u64 = 512 << 10;
/// What a part that failed counts as: it is requested again 50 times later.
const RETRY_TIME: Duration = Duration::from_millis(600);
/// What a look at the download of another process counts as.
const LOOK_TIME: Duration = Duration::from_millis(100);
/// How often it is checked, while a part is awaited, whether anybody needs it.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A part of a file.
struct Part {
    bytes: Bytes,
    /// Length of the file.
    length: u64,
}

impl Download {
    /// Downloads the files that the cache lacks. `pause` is called after each part with the time that it took, and returns whether to go on.
    /// One process of a host downloads, and the others wait for its files.
    ///
    /// # Errors
    /// Without a folder that can be written; if the gateway does not send these files in parts.
    pub(super) fn download_in_parts(&self, pause: &dyn Fn(Duration) -> bool) -> Result<()> {
        let unwritable = |error: io::Error| Error::config("cannot store weights").with_source(error);
        let folder = self.store.model_cache();
        let folder = folder.ok_or_else(|| Error::config("there is no folder for weights"))?;
        fs::create_dir_all(folder).map_err(unwritable)?;
        let lock = File::open(folder).map_err(unwritable)?;
        // Another error means that the file system has no locks.
        while matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) {
            if !pause(LOOK_TIME) {
                return Ok(());
            }
        }
        let ended = self.download_missing(folder, pause);
        // A process that was forked in the meantime has the lock as well.
        drop(lock.unlock());
        ended.map_err(|error| error.unless_io(unwritable))
    }

    fn download_missing(&self, folder: &Path, pause: &dyn Fn(Duration) -> bool) -> Result<(), PartError> {
        for (digest, extension, max_bytes) in self.files() {
            let target = folder.join(format!("{digest}.{extension}"));
            let draft = draft_of(&target);
            if target.is_file() {
                continue;
            }
            if !self.download_file(digest, max_bytes, (&draft, &target), pause)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Downloads a file into `draft`, and renames it to `target` once it is complete. Returns whether to go on.
    fn download_file(
        &self,
        digest: &str,
        max_bytes: u64,
        (draft, target): (&PathBuf, &PathBuf),
        pause: &dyn Fn(Duration) -> bool,
    ) -> Result<bool, PartError> {
        let mut file = OpenOptions::new().create(true).append(true).open(draft)?;
        loop {
            let (began, start) = (Instant::now(), file.metadata()?.len());
            let Some(part) = self.await_part(digest, start, pause) else {
                return Ok(false);
            };
            let time = match part {
                Ok(Part { bytes, length }) if length <= max_bytes => {
                    file.write_all(&bytes)?;
                    if start + bytes.len() as u64 >= length {
                        self.finish(digest, draft, target)?;
                        return Ok(pause(began.elapsed()));
                    }
                    began.elapsed()
                }
                Err(error) if error.is_retryable() => RETRY_TIME,
                fault => {
                    // What is there may be of another file.
                    drop(fs::remove_file(draft));
                    let too_long = || {
                        Error::protocol(format!(
                            "cannot store a file of weights: expected at most {max_bytes} bytes, found more"
                        ))
                    };
                    return Err(fault.err().unwrap_or_else(too_long).into());
                }
            };
            if !pause(time) {
                return Ok(false);
            }
        }
    }

    /// Checks a file that is complete, and gives it its name.
    fn finish(&self, digest: &str, draft: &Path, target: &Path) -> Result<(), PartError> {
        let bytes = read_file(draft)?;
        let data = self.description.files.iter().find(|file| file.digest == digest);
        let checked = match data {
            Some(file) => file.check(&bytes),
            None => self.check_model(bytes),
        };
        if let Err(error) = checked {
            drop(fs::remove_file(draft));
            return Err(Error::from(error).into());
        }
        File::open(draft)?.sync_all()?;
        Ok(fs::rename(draft, target)?)
    }

    /// Checks the ONNX file, whose digest covers the data files.
    fn check_model(&self, bytes: Arc<[u8]>) -> pushdown::Result<()> {
        let mut files = self.cached_data().unwrap_or_default();
        files.model = bytes;
        self.description.check(&files)
    }

    /// The part of a file that begins at `start`; `None` once nobody needs it.
    fn await_part(&self, digest: &str, start: u64, pause: &dyn Fn(Duration) -> bool) -> Option<Result<Part>> {
        let (store, name) = (self.store.clone(), self.description.name.clone());
        let digest = digest.to_owned();
        let (sender, receiver) = mpsc::channel();
        let task = self.runtime.spawn(async move {
            let range = HeaderValue::try_from(format!("bytes={start}-{}", start + PART_BYTES - 1));
            let part = match range {
                Ok(range) => {
                    let headers = HeaderMap::from_iter([(header::RANGE, range)]);
                    part_of(request(&store, &name, &digest, headers).await, start).await
                }
                Err(error) => Err(Error::protocol(error.to_string())),
            };
            // Fails if nobody waits any more.
            drop(sender.send(part));
        });
        loop {
            match receiver.recv_timeout(CHECK_INTERVAL) {
                Ok(part) => return Some(part),
                Err(mpsc::RecvTimeoutError::Timeout) if pause(Duration::ZERO) => {}
                // The runtime has ended, or the reader.
                Err(_) => {
                    task.abort();
                    return None;
                }
            }
        }
    }
}

/// The file of what has arrived of `target`.
pub(super) fn draft_of(target: &Path) -> PathBuf {
    target.with_added_extension("part")
}

/// The part in an answer to a request for a range from `start` on.
async fn part_of(answer: Result<Answer>, start: u64) -> Result<Part> {
    let answer = answer?;
    let range = answer.headers.get(header::CONTENT_RANGE);
    let range = range.and_then(|range| range.to_str().ok()?.strip_prefix(&format!("bytes {start}-")));
    let length = range.and_then(|rest| rest.rsplit_once('/')?.1.parse().ok());
    let length = length.ok_or_else(|| {
        Error::protocol(format!(
            "the gateway sends no parts of weights: expected a range from byte {start} on"
        ))
    })?;
    let bytes = answer
        .collect(PART_BYTES)
        .await?
        .filter(|bytes| !bytes.is_empty());
    let bytes = bytes.ok_or_else(|| {
        Error::protocol(format!(
            "cannot read a part of weights: expected 1 to {PART_BYTES} bytes, found none or more"
        ))
    })?;
    Ok(Part { bytes, length })
}

/// Why a download ended.
enum PartError {
    Io(io::Error),
    Other(Error),
}

impl PartError {
    fn unless_io(self, of_io: impl FnOnce(io::Error) -> Error) -> Error {
        match self {
            Self::Io(error) => of_io(error),
            Self::Other(error) => error,
        }
    }
}

impl From<io::Error> for PartError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for PartError {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}
