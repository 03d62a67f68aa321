//! A folder of small files, each written to a temporary file and renamed, and verified when read. Any file may be missing.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use pushdown::pipeline::Digest;

use super::{
    NotCachedReason,
    claim::{self, Claim, ClaimState, KnownHolders},
    total::{DRAFT_EXTENSION, LockedTotal},
};

/// The most bytes of a file in addition to its value: the digest and the header of its form.
const MAX_OVERHEAD_BYTES: u64 = 64 << 10;
/// Bytes of the digest at the end of a file.
const DIGEST_BYTES: usize = 32;

/// Files by digest, in subfolders named by the digest's first byte.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The most bytes of all files together, those of other processes included.
    max_bytes: u64,
    /// Whether the files were counted. That happens at the first write, so a folder that is only read is not traversed.
    is_counted: AtomicBool,
    /// Why no more files are written.
    closed_reason: OnceLock<NotCachedReason>,
}

impl Folder {
    pub(super) fn open(path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self {
            path,
            max_bytes,
            is_counted: AtomicBool::new(false),
            closed_reason: OnceLock::new(),
        })
    }

    /// Whether a file of this name exists, without verifying it.
    pub(super) fn contains(&self, name: &Digest) -> bool {
        self.file(name).exists()
    }

    /// The bytes written under this name; `None` if the file is missing, has more than `max_bytes`, or has changed.
    pub(super) fn read(&self, name: &Digest, max_bytes: u64) -> Option<Bytes> {
        let file = self.file(name);
        if fs::metadata(&file).ok()?.len() > max_bytes.saturating_add(MAX_OVERHEAD_BYTES) {
            return None;
        }
        let mut bytes = Bytes::from(fs::read(file).ok()?);
        let digest = bytes.split_off(bytes.len().checked_sub(DIGEST_BYTES)?);
        (Digest::new(&bytes).as_bytes()[..] == digest[..]).then_some(bytes)
    }

    /// Writes a file, if the folder has room for it.
    ///
    /// # Errors
    /// If the folder is full or cannot be written. Logged once; no file is written after that.
    pub(super) fn write(&self, name: &Digest, parts: &[Bytes]) -> Result<(), NotCachedReason> {
        if let Some(reason) = self.closed_reason.get() {
            return Err(*reason);
        }
        let body = parts.concat();
        let digest = Digest::new(&body);
        let folder = self.path.display();
        match self.write_file(&self.file(name), &[&body, digest.as_bytes()]) {
            Ok(true) => Ok(()),
            Ok(false) => {
                if self.closed_reason.set(NotCachedReason::FolderFull).is_ok() {
                    let max_bytes = self.max_bytes;
                    tracing::warn!(%folder, max_bytes, "the value cache is full: no more values are cached");
                }
                Err(NotCachedReason::FolderFull)
            }
            Err(error) => {
                if self.closed_reason.set(NotCachedReason::Unwritable).is_ok() {
                    tracing::warn!(%folder, %error, "cannot write the value cache: no more values are cached");
                }
                Err(NotCachedReason::Unwritable)
            }
        }
    }

    /// Claims a value for this process, unless another holds a claim.
    ///
    /// # Errors
    /// If no values can be written.
    pub(super) fn claim(&self, name: &Digest) -> io::Result<Option<Claim>> {
        if self.closed_reason.get().is_some() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let file = self.claim_file(name);
        if let Some(claim) = Claim::create(&file)? {
            return Ok(Some(claim));
        }
        let is_stale = || ClaimState::of(&file, &mut KnownHolders::default()) == ClaimState::Stale;
        if !is_stale() {
            return Ok(None);
        }
        // One at a time, so that nobody removes the claim of a process that has just taken it over.
        let _lock = LockedTotal::lock(&self.path)?;
        if is_stale() {
            // Its holder may have removed it meanwhile.
            drop(fs::remove_file(&file));
        }
        Claim::create(&file)
    }

    /// Whether to wait for a value: it is missing, and another process holds its claim.
    pub(super) fn is_held(&self, name: &Digest, holders: &mut KnownHolders) -> bool {
        !self.contains(name) && ClaimState::of(&self.claim_file(name), holders) == ClaimState::Held
    }

    /// Writes a file; `false` if the folder has no room for it.
    fn write_file(&self, file: &Path, parts: &[&[u8]]) -> io::Result<bool> {
        let folder = file.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        let (draft, mut opened) = create_draft(folder)?;
        let written = parts.iter().try_for_each(|part| opened.write_all(part));
        let written = written.and_then(|()| self.accept(&draft, file));
        if !matches!(written, Ok(true)) {
            // Removing may fail for the same reason as writing.
            drop(fs::remove_file(&draft));
        }
        written
    }

    /// Moves a complete file into place, unless the total would exceed the limit. A process that is killed on the way leaves
    /// a total that is too high, never one that is too low.
    fn accept(&self, draft: &Path, file: &Path) -> io::Result<bool> {
        let bytes = |file: &Path| fs::metadata(file).map(|metadata| metadata.len());
        let total = LockedTotal::lock(&self.path)?;
        let used = total.bytes(!self.is_counted.swap(true, Relaxed))?;
        // A damaged file is replaced.
        let others = used.saturating_sub(bytes(file).unwrap_or_default());
        let used = others.saturating_add(bytes(draft)?);
        if used > self.max_bytes {
            return Ok(false);
        }
        total.set_bytes(used)?;
        fs::rename(draft, file)?;
        Ok(true)
    }

    fn file(&self, name: &Digest) -> PathBuf {
        let name = name.to_string();
        self.path.join(&name[..2]).join(&name[2..])
    }

    fn claim_file(&self, name: &Digest) -> PathBuf {
        self.file(name).with_extension(claim::EXTENSION)
    }
}

/// Creates a temporary file in a folder.
fn create_draft(folder: &Path) -> io::Result<(PathBuf, File)> {
    /// Of this process, which may have several caches in one folder.
    static CREATED: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = CREATED.fetch_add(1, Relaxed);
        let draft = folder.join(format!("{}-{number}.{DRAFT_EXTENSION}", std::process::id()));
        match File::create_new(&draft) {
            // Left by a process that was killed and had the same pid.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((draft, created?)),
        }
    }
}

#[cfg(test)]
mod tests;
