//! Files that hold secrets, which only their owner may read.

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use zeroize::Zeroizing;

/// A file with secrets. Its memory is wiped when it is dropped.
pub(crate) struct PrivateFile {
    pub(crate) text: Zeroizing<String>,
    /// What is wrong if others may read or write the file.
    pub(crate) mode_fault: Option<String>,
}

/// Reads a regular file of UTF-8 text, which may be a symbolic link.
pub(crate) fn read(path: &Path, max_bytes: u64) -> io::Result<PrivateFile> {
    // Asked before the file is opened: opening a named pipe waits for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let bytes = metadata.len();
    if bytes > max_bytes {
        return Err(io::Error::other(format!(
            "expected at most {max_bytes} bytes, found {bytes}"
        )));
    }
    // One allocation: a text that grows leaves copies of its secrets behind.
    let capacity = usize::try_from(bytes).map_err(io::Error::other)?;
    let mut text = Zeroizing::new(String::with_capacity(capacity));
    file.take(bytes).read_to_string(&mut text)?;
    Ok(PrivateFile {
        text,
        mode_fault: mode_fault(&metadata),
    })
}

/// What is wrong with the mode of a file. Only its owner may access it; a file of root may also be readable for its group.
fn mode_fault(metadata: &Metadata) -> Option<String> {
    // PostgreSQL's rule for its private key. Kubernetes mounts secrets as files of root, readable for the group of a process
    // that is not root.
    let allowed = if metadata.uid() == 0 { 0o740 } else { 0o700 };
    let mode = metadata.mode() & 0o777;
    (mode & !allowed != 0).then(|| {
        format!("invalid mode: expected 0600, found {mode:04o}: others may read the secrets; run chmod 600")
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::PathBuf;

    use super::*;

    fn file_with_mode(folder: &Path, mode: u32) -> PathBuf {
        let file = folder.join(format!("{mode:o}"));
        fs::write(&file, "text").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        file
    }

    #[test]
    fn only_the_owner_may_read_a_private_file() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o600, 0o400, 0o700] {
            let read = read(&file_with_mode(folder.path(), mode), 4).unwrap();
            assert_eq!((read.text.as_str(), read.mode_fault), ("text", None), "{mode:o}");
        }
        for mode in [0o644, 0o604, 0o660, 0o620, 0o601, 0o777] {
            let read = read(&file_with_mode(folder.path(), mode), 4).unwrap();
            let fault = read.mode_fault.unwrap();
            assert!(
                fault.contains(&format!("expected 0600, found {mode:04o}")),
                "{fault}"
            );
        }
    }

    #[test]
    fn the_mode_of_a_link_is_the_mode_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(file_with_mode(folder.path(), 0o600), &link).unwrap();
        assert_eq!(read(&link, 4).unwrap().mode_fault, None);
    }

    #[test]
    fn folders_large_files_and_missing_ones_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let fault = |path: &Path| read(path, 3).err().unwrap().to_string();
        assert_eq!(fault(folder.path()), "expected a regular file");
        let large = file_with_mode(folder.path(), 0o600);
        assert_eq!(fault(&large), "expected at most 3 bytes, found 4");
        let missing = fault(&folder.path().join("missing"));
        assert!(missing.contains("No such file"), "{missing}");
    }
}
