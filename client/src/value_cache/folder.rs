//! A folder of small files, each written to a temporary file and renamed, and verified when read. Any file may be missing.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use pushdown::pipeline::Digest;

use super::NotCachedReason;

/// The most bytes of a file in addition to its value: the digest and the header of its form.
const MAX_OVERHEAD_BYTES: u64 = 64 << 10;
/// Bytes of the digest at the end of a file.
const DIGEST_BYTES: usize = 32;

/// Files by digest, in subfolders named by the digest's first byte.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The most bytes of all files together.
    max_bytes: u64,
    /// Bytes of all files. Counted at the first write, so a folder that is only read is not traversed.
    used_bytes: OnceLock<AtomicU64>,
    /// Why no more files are written.
    closed_reason: OnceLock<NotCachedReason>,
    /// Counter for names of temporary files.
    drafts: AtomicU64,
}

impl Folder {
    pub(super) fn open(path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self {
            path,
            max_bytes,
            used_bytes: OnceLock::new(),
            closed_reason: OnceLock::new(),
            drafts: AtomicU64::new(0),
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
        let used = self
            .used_bytes
            .get_or_init(|| AtomicU64::new(folder_bytes(&self.path)));
        let bytes = (body.len() + DIGEST_BYTES) as u64;
        let folder = self.path.display();
        if used.fetch_add(bytes, Relaxed).saturating_add(bytes) > self.max_bytes {
            if self.closed_reason.set(NotCachedReason::FolderFull).is_ok() {
                let max_bytes = self.max_bytes;
                tracing::warn!(%folder, max_bytes, "the value cache is full: no more values are cached");
            }
            return Err(NotCachedReason::FolderFull);
        }
        self.write_file(&self.file(name), &[&body, digest.as_bytes()])
            .map_err(|error| {
                if self.closed_reason.set(NotCachedReason::Unwritable).is_ok() {
                    tracing::warn!(%folder, %error, "cannot write the value cache: no more values are cached");
                }
                NotCachedReason::Unwritable
            })
    }

    fn write_file(&self, file: &Path, parts: &[&[u8]]) -> io::Result<()> {
        let folder = file.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        let draft = folder.join(format!(
            "{}-{}.tmp",
            std::process::id(),
            self.drafts.fetch_add(1, Relaxed)
        ));
        let written = File::create(&draft)
            .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
            .and_then(|()| fs::rename(&draft, file));
        if written.is_err() {
            // Removing may fail for the same reason as writing.
            drop(fs::remove_file(&draft));
        }
        written
    }

    fn file(&self, name: &Digest) -> PathBuf {
        let name = name.to_string();
        self.path.join(&name[..2]).join(&name[2..])
    }
}

/// Bytes of the files in the subfolders of a folder, without those whose metadata cannot be read.
fn folder_bytes(path: &Path) -> u64 {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let files = entries(path).flat_map(|folder| entries(&folder.path()));
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Folder, name: &str, body: &'static str) -> Result<(), NotCachedReason> {
        folder.write(&Digest::new(name.as_bytes()), &[Bytes::from(body)])
    }

    fn read(folder: &Folder, name: &str) -> Option<Bytes> {
        folder.read(&Digest::new(name.as_bytes()), 1 << 20)
    }

    #[test]
    fn a_changed_file_is_not_read() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path().join("cache"), 1 << 20).unwrap();
        assert_eq!(read(&folder, "a"), None);
        write(&folder, "a", "value").unwrap();
        assert_eq!(read(&folder, "a").as_deref(), Some(&b"value"[..]));
        let file = folder.file(&Digest::new(b"a"));
        let whole = fs::read(&file).unwrap();
        for length in 0..whole.len() {
            fs::write(&file, &whole[..length]).unwrap();
            assert_eq!(read(&folder, "a"), None, "cut to {length}");
        }
        for byte in 0..whole.len() {
            let mut broken = whole.clone();
            broken[byte] ^= 1;
            fs::write(&file, broken).unwrap();
            assert_eq!(read(&folder, "a"), None, "byte {byte} has changed");
        }
        assert!(folder.contains(&Digest::new(b"a")));
        write(&folder, "a", "value").unwrap();
        assert_eq!(read(&folder, "a").as_deref(), Some(&b"value"[..]));
        let drafts = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(drafts, 1, "no temporary file is left");
    }

    #[test]
    fn the_total_is_bounded_over_readers() {
        let path = tempfile::tempdir().unwrap();
        let open = || Folder::open(path.path().to_owned(), 100).unwrap();
        let folder = open();
        write(&folder, "a", "12345678").unwrap();
        write(&folder, "b", "12345678").unwrap();
        assert_eq!(write(&folder, "c", "12345678"), Err(NotCachedReason::FolderFull));
        assert_eq!(
            write(&folder, "d", ""),
            Err(NotCachedReason::FolderFull),
            "the folder stays closed"
        );
        assert!(read(&folder, "b").is_some() && read(&folder, "c").is_none());
        let again = open();
        assert_eq!(write(&again, "d", "12345678"), Err(NotCachedReason::FolderFull));
        assert!(read(&again, "a").is_some() && read(&again, "d").is_none());
    }

    #[test]
    fn a_failed_write_has_a_reason() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path().to_owned(), 1 << 20).unwrap();
        // A file has the name of the subfolder.
        fs::write(path.path().join(&Digest::new(b"a").to_string()[..2]), b"").unwrap();
        assert_eq!(write(&folder, "a", "value"), Err(NotCachedReason::Unwritable));
        assert_eq!(read(&folder, "a"), None);
        assert_eq!(folder.closed_reason.get(), Some(&NotCachedReason::Unwritable));
    }
}
