//! The bytes of all files of a folder, counted across the processes that share it.
//!
//! The file `bytes` in the folder has the total. Whoever changes it holds an exclusive lock (`flock`) on it. A missing or damaged
//! total is counted again.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use super::claim::{self, ClaimState, KnownHolders, LEASE};

/// Name of the file.
const FILE: &str = "bytes";
/// Bytes of the file: two numbers of 20 digits.
const TEXT_BYTES: usize = 42;
/// A total that was counted less than this ago is not counted again by a process that starts.
const RECENT: Duration = Duration::from_mins(1);
/// Extension of temporary files.
pub(super) const DRAFT_EXTENSION: &str = "tmp";

/// The total of a folder. No other process or thread changes it until this is dropped.
#[derive(Debug)]
pub(super) struct LockedTotal<'a> {
    folder: &'a Path,
    file: File,
}

/// The bytes of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Total {
    bytes: u64,
    /// When all files were counted, in seconds since 1970.
    counted_at: u64,
}

impl<'a> LockedTotal<'a> {
    /// Waits for the lock, at most as long as for a claim: a process may be stopped while it holds the lock.
    ///
    /// # Errors
    /// If the file cannot be written, or is locked for too long.
    pub(super) fn lock(folder: &'a Path) -> io::Result<Self> {
        // Opened each time: processes that fork share the locks of their open files.
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join(FILE))?;
        let deadline = Instant::now() + LEASE;
        loop {
            match file.try_lock() {
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => {
                    let text = format!("the file `{FILE}` has been locked for {LEASE:?}");
                    return Err(io::Error::new(ErrorKind::TimedOut, text));
                }
                // Without locks the total is as right as processes do not write at the same time.
                Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => {
                    return Err(error);
                }
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self { folder, file }),
            }
        }
    }

    /// The total. Counts all files if it is not known, or if `is_start` is set and it was not counted recently: files may
    /// have been deleted by hand.
    pub(super) fn bytes(&self, is_start: bool) -> io::Result<u64> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let is_valid = |total: &Total| !is_start || total.counted_at.abs_diff(now) < RECENT.as_secs();
        if let Some(total) = self.read().filter(is_valid) {
            return Ok(total.bytes);
        }
        let total = Total {
            bytes: count(self.folder),
            counted_at: now,
        };
        self.file.set_len(TEXT_BYTES as u64)?;
        self.write(total)?;
        Ok(total.bytes)
    }

    /// Changes the total.
    pub(super) fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        let counted_at = self.read().map_or(0, |total| total.counted_at);
        self.write(Total { bytes, counted_at })
    }

    fn read(&self) -> Option<Total> {
        let mut text = [0; TEXT_BYTES + 1];
        // One byte more, so that a longer file is noticed.
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?.strip_suffix('\n')?;
        let (bytes, counted_at) = text.split_once(' ')?;
        let number = |digits: &str| digits.parse().ok().filter(|_| digits.len() == 20);
        Some(Total {
            bytes: number(bytes)?,
            counted_at: number(counted_at)?,
        })
    }

    fn write(&self, Total { bytes, counted_at }: Total) -> io::Result<()> {
        let text = format!("{bytes:020} {counted_at:020}\n");
        self.file.write_all_at(text.as_bytes(), 0)
    }
}

impl Drop for LockedTotal<'_> {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that was forked meanwhile has it open, too.
        drop(self.file.unlock());
    }
}

/// Bytes of the values in the subfolders of a folder. Removes what killed processes have left: stale claims and temporary files.
fn count(path: &Path) -> u64 {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut holders = KnownHolders::default();
    let mut bytes = 0;
    for entry in entries(path).flat_map(|folder| entries(&folder.path())) {
        let path = entry.path();
        let is_left_over = match path.extension().and_then(|extension| extension.to_str()) {
            Some(claim::EXTENSION) => Some(ClaimState::of(&path, &mut holders) == ClaimState::Stale),
            Some(DRAFT_EXTENSION) => Some(is_older_than_lease(&entry)),
            _ => None,
        };
        match is_left_over {
            // If it cannot be removed, it stays.
            Some(true) => drop(fs::remove_file(&path)),
            Some(false) => {}
            None => bytes += entry.metadata().map_or(0, |metadata| metadata.len()),
        }
    }
    bytes
}

/// A temporary file is written in milliseconds.
fn is_older_than_lease(entry: &fs::DirEntry) -> bool {
    let modified = entry.metadata().and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| modified.elapsed().ok());
    age.is_some_and(|age| age >= LEASE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(folder: &Path, is_start: bool) -> u64 {
        LockedTotal::lock(folder).unwrap().bytes(is_start).unwrap()
    }

    fn folder_with_values() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, length) in [("00/a", 10), ("00/b", 20), ("ff/c", 30)] {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, vec![0; length]).unwrap();
        }
        folder
    }

    #[test]
    fn a_damaged_total_is_counted_again() {
        let folder = folder_with_values();
        let (path, file) = (folder.path(), folder.path().join(FILE));
        assert_eq!(bytes(path, false), 60);
        let total = LockedTotal::lock(path).unwrap();
        total.set_bytes(1_000).unwrap();
        drop(total);
        assert_eq!(bytes(path, false), 1_000);
        assert_eq!(bytes(path, true), 1_000, "it was counted less than a minute ago");
        let whole = fs::read(&file).unwrap();
        assert_eq!(whole.len(), TEXT_BYTES);
        for damaged in (0..whole.len()).map(|length| whole[..length].to_vec()).chain([
            vec![0; TEXT_BYTES],
            [&whole[..], b"\n"].concat(),
            vec![b'9'; 100],
        ]) {
            fs::write(&file, &damaged).unwrap();
            assert_eq!(bytes(path, false), 60, "{damaged:?}");
            assert_eq!(fs::read(&file).unwrap().len(), TEXT_BYTES);
        }
    }

    #[test]
    fn a_process_that_starts_counts_again() {
        let folder = folder_with_values();
        bytes(folder.path(), true);
        fs::remove_file(folder.path().join("ff/c")).unwrap();
        fs::write(folder.path().join(FILE), format!("{:020} {:020}\n", 60, 1)).unwrap();
        assert_eq!(bytes(folder.path(), false), 60);
        assert_eq!(bytes(folder.path(), true), 30);
    }

    #[test]
    fn counting_removes_what_killed_processes_left() {
        let folder = folder_with_values();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - LEASE;
        for name in ["00/a.claim", "00/1-1.tmp"] {
            let file = File::create(path(name)).unwrap();
            file.set_modified(old).unwrap();
        }
        for name in ["00/b.claim", "00/1-2.tmp"] {
            fs::write(path(name), b"123").unwrap();
        }
        assert_eq!(bytes(folder.path(), true), 60);
        let is_left = |name| path(name).exists();
        assert!(!is_left("00/a.claim") && !is_left("00/1-1.tmp"));
        assert!(is_left("00/b.claim") && is_left("00/1-2.tmp"));
    }

    #[test]
    fn one_at_a_time_changes_the_total() {
        let folder = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let total = LockedTotal::lock(folder.path()).unwrap();
                        let bytes = total.bytes(false).unwrap();
                        std::thread::yield_now();
                        total.set_bytes(bytes + 1).unwrap();
                    }
                });
            }
        });
        assert_eq!(bytes(folder.path(), false), 200);
    }
}
