//! The file of the audit log. A line that was written in part is completed, or ended before the next one begins.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Only the user of the gateway may read a file that it creates.
const MODE: u32 = 0o600;

/// A file that lines are appended to.
#[derive(Debug)]
pub(super) struct LogFile {
    path: PathBuf,
    file: File,
    /// Lines that are being written.
    pending: Vec<u8>,
    /// The number of bytes of `pending` that are in the file.
    written: usize,
    /// Whether the file ends within a line.
    is_mid_line: bool,
}

impl LogFile {
    /// Opens the file to append to it, and creates it if it is missing.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        Ok(Self {
            file: open(&path)?,
            path,
            pending: Vec::new(),
            written: 0,
            is_mid_line: false,
        })
    }

    /// Appends lines. After an error they are pending.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(lines);
        self.resume()
    }

    /// Appends what is pending.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        while self.written < self.pending.len() {
            match self.file.write(&self.pending[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    self.is_mid_line = self.pending[self.written - 1] != b'\n';
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.pending.clear();
        self.written = 0;
        Ok(())
    }

    /// Gives up what is pending, and returns the number of lines that are lost.
    pub(super) fn discard(&mut self) -> u64 {
        let rest = &self.pending[self.line_start()..];
        let lines = rest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let lost = lines.count() as u64;
        self.pending.clear();
        self.written = 0;
        if self.is_mid_line {
            self.pending.push(b'\n');
        }
        lost
    }

    /// Opens the file again. If the path leads to another file now, pending lines go there, each as a whole.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        let file = open(&self.path)?;
        let (old, new) = (self.file.metadata()?, file.metadata()?);
        if (old.dev(), old.ino()) == (new.dev(), new.ino()) {
            return Ok(());
        }
        self.file = file;
        self.is_mid_line = false;
        self.written = self.line_start();
        if self.pending == b"\n" {
            self.pending.clear();
        }
        Ok(())
    }

    /// Where the line begins that is written next.
    fn line_start(&self) -> usize {
        let before = &self.pending[..self.written];
        before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(MODE).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    fn log() -> (TempDir, PathBuf, LogFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        let file = LogFile::open(path.clone()).unwrap();
        (folder, path, file)
    }

    fn read(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    /// The state after a disk was full within the second line.
    fn fail_within_a_line(file: &mut LogFile) {
        file.append(b"first\nsec").unwrap();
        file.pending = b"first\nsecond\nthird\n".to_vec();
        file.written = 9;
    }

    #[test]
    fn lines_are_appended_to_a_private_file() {
        let (_folder, path, mut file) = log();
        file.append(b"a\n").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mut again = LogFile::open(path.clone()).unwrap();
        again.append(b"b\n").unwrap();
        file.append(b"c\n").unwrap();
        assert_eq!(read(&path), "a\nb\nc\n");
    }

    #[test]
    fn a_renamed_file_is_left_when_the_path_is_opened_again() {
        let (folder, path, mut file) = log();
        file.append(b"a\n").unwrap();
        let renamed = folder.path().join("audit.1");
        std::fs::rename(&path, &renamed).unwrap();
        file.append(b"b\n").unwrap();
        file.reopen().unwrap();
        file.append(b"c\n").unwrap();
        assert_eq!(read(&renamed), "a\nb\n");
        assert_eq!(read(&path), "c\n");
    }

    #[test]
    fn a_line_that_was_cut_is_completed() {
        let (_folder, path, mut file) = log();
        fail_within_a_line(&mut file);
        // The path still leads to the same file.
        file.reopen().unwrap();
        file.resume().unwrap();
        assert_eq!(read(&path), "first\nsecond\nthird\n");
    }

    #[test]
    fn a_line_that_was_cut_is_repeated_in_another_file() {
        let (folder, path, mut file) = log();
        fail_within_a_line(&mut file);
        std::fs::rename(&path, folder.path().join("audit.1")).unwrap();
        file.reopen().unwrap();
        file.resume().unwrap();
        assert_eq!(read(&path), "second\nthird\n");
    }

    #[test]
    fn a_line_that_is_given_up_is_ended() {
        let (_folder, path, mut file) = log();
        fail_within_a_line(&mut file);
        assert_eq!((file.discard(), file.discard()), (2, 0));
        file.append(b"fourth\n").unwrap();
        assert_eq!(read(&path), "first\nsec\nfourth\n");
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted() {
        let mut file = LogFile::open("/dev/full".into()).unwrap();
        assert!(file.append(b"a\nb\n").is_err());
        assert!(file.append(b"c\n").is_err());
        assert_eq!((file.discard(), file.discard()), (3, 0));
    }
}
