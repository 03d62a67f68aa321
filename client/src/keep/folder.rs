//! A folder of small files that nobody misses: each written beside and renamed, and checked when it is read.

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

use super::Reason;

/// What a file may have beside its value: the digest and the head of its form.
const FRAME: u64 = 64 << 10;
/// Bytes of the digest at the end of a file.
const SEAL: usize = 32;

/// Files by digest, in folders by the digest's first byte.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Bytes of all files together.
    limit: u64,
    /// Counted when the first file is written: a folder that is only read need not be looked through.
    used: OnceLock<AtomicU64>,
    /// Why no more files are written.
    closed: OnceLock<Reason>,
    drafts: AtomicU64,
}

impl Folder {
    pub(super) fn open(path: PathBuf, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(&path)?;
        Ok(Self {
            path,
            limit,
            used: OnceLock::new(),
            closed: OnceLock::new(),
            drafts: AtomicU64::new(0),
        })
    }

    /// Whether there is such a file, whatever is in it.
    pub(super) fn has(&self, name: &Digest) -> bool {
        self.file(name).exists()
    }

    /// What was written under this name; `None` for a file that is missing, too long, or not as it was written.
    pub(super) fn read(&self, name: &Digest, limit: u64) -> Option<Bytes> {
        let file = self.file(name);
        if fs::metadata(&file).ok()?.len() > limit.saturating_add(FRAME) {
            return None;
        }
        let mut bytes = Bytes::from(fs::read(file).ok()?);
        let seal = bytes.split_off(bytes.len().checked_sub(SEAL)?);
        (Digest::new(&bytes).as_bytes()[..] == seal[..]).then_some(bytes)
    }

    /// Writes a file, if there is room.
    ///
    /// # Errors
    /// The folder is full or cannot be written. Reported once; no file is written after it.
    pub(super) fn write(&self, name: &Digest, parts: &[Bytes]) -> Result<(), Reason> {
        if let Some(reason) = self.closed.get() {
            return Err(*reason);
        }
        let body = parts.concat();
        let seal = Digest::new(&body);
        let used = self
            .used
            .get_or_init(|| AtomicU64::new(size_of_folder(&self.path)));
        let bytes = (body.len() + SEAL) as u64;
        let folder = self.path.display();
        if used.fetch_add(bytes, Relaxed).saturating_add(bytes) > self.limit {
            if self.closed.set(Reason::FolderFull).is_ok() {
                let limit = self.limit;
                tracing::warn!(%folder, limit, "the folder of kept values is full: no more are kept");
            }
            return Err(Reason::FolderFull);
        }
        self.put(&self.file(name), &[&body, seal.as_bytes()]).map_err(|error| {
            if self.closed.set(Reason::Unwritable).is_ok() {
                tracing::warn!(%folder, %error, "the folder of kept values cannot be written: no more are kept");
            }
            Reason::Unwritable
        })
    }

    fn put(&self, file: &Path, parts: &[&[u8]]) -> io::Result<()> {
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
            // Whatever stands in the way of writing may stand in the way of this.
            drop(fs::remove_file(&draft));
        }
        written
    }

    fn file(&self, name: &Digest) -> PathBuf {
        let name = name.to_string();
        self.path.join(&name[..2]).join(&name[2..])
    }
}

/// Bytes of the files in the folders of a folder; what cannot be looked at does not count.
fn size_of_folder(path: &Path) -> u64 {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let files = entries(path).flat_map(|folder| entries(&folder.path()));
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Folder, name: &str, body: &'static str) -> Result<(), Reason> {
        folder.write(&Digest::new(name.as_bytes()), &[Bytes::from(body)])
    }

    fn read(folder: &Folder, name: &str) -> Option<Bytes> {
        folder.read(&Digest::new(name.as_bytes()), 1 << 20)
    }

    #[test]
    fn a_file_that_is_not_as_it_was_written_is_none() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path().join("kept"), 1 << 20).unwrap();
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
        assert!(folder.has(&Digest::new(b"a")));
        write(&folder, "a", "value").unwrap();
        assert_eq!(read(&folder, "a").as_deref(), Some(&b"value"[..]));
        let drafts = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(drafts, 1, "no draft is left");
    }

    #[test]
    fn the_total_is_bounded_over_readers() {
        let path = tempfile::tempdir().unwrap();
        let open = || Folder::open(path.path().to_owned(), 100).unwrap();
        let folder = open();
        write(&folder, "a", "12345678").unwrap();
        write(&folder, "b", "12345678").unwrap();
        assert_eq!(write(&folder, "c", "12345678"), Err(Reason::FolderFull));
        assert_eq!(
            write(&folder, "d", ""),
            Err(Reason::FolderFull),
            "it is said once"
        );
        assert!(read(&folder, "b").is_some() && read(&folder, "c").is_none());
        let again = open();
        assert_eq!(write(&again, "d", "12345678"), Err(Reason::FolderFull));
        assert!(read(&again, "a").is_some() && read(&again, "d").is_none());
    }

    #[test]
    fn a_value_that_cannot_be_written_is_no_error() {
        let path = tempfile::tempdir().unwrap();
        let folder = Folder::open(path.path().to_owned(), 1 << 20).unwrap();
        // A file stands where a folder belongs.
        fs::write(path.path().join(&Digest::new(b"a").to_string()[..2]), b"").unwrap();
        assert_eq!(write(&folder, "a", "value"), Err(Reason::Unwritable));
        assert_eq!(read(&folder, "a"), None);
        assert_eq!(folder.closed.get(), Some(&Reason::Unwritable));
    }
}
