//! Folders of files that only the gateway may read and change.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The mode of a folder that is created: only its owner may access it.
const MODE: u32 = 0o700;
/// The bits that let others create and replace files.
const WRITABLE_FOR_OTHERS: u32 = 0o022;

/// Takes a folder for files of the gateway: creates it if it is missing, and closes it to others.
///
/// # Errors
/// If the folder is a symbolic link, or if others could have created or replaced files in it: also as root, which could
/// otherwise be led to write to any file.
pub(crate) fn open(path: &Path) -> io::Result<()> {
    // Without a slash at its end, with which a link would be followed.
    let path: PathBuf = path.components().collect();
    let fault = |text: String| io::Error::other(format!("{}: {text}", path.display()));
    DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(&path)
        .or_else(|error| match fs::symlink_metadata(&path) {
            // Not a folder: the fault below says more.
            Ok(_) => Ok(()),
            Err(_) => Err(fault(error.to_string())),
        })?;
    let metadata = fs::symlink_metadata(&path)?;
    if metadata.is_symlink() {
        return Err(fault(
            "expected a folder, found a symbolic link; give the folder that it leads to".to_owned(),
        ));
    }
    if !metadata.is_dir() {
        return Err(fault("expected a folder, found a file".to_owned()));
    }
    let mode = metadata.mode() & 0o777;
    if mode & WRITABLE_FOR_OTHERS != 0 {
        return Err(fault(format!(
            "invalid mode: expected 0700, found {mode:04o}: others may replace its files; give a folder that does not exist yet, \
             or empty it and run chmod 700"
        )));
    }
    let own = own_uid(&path).map_err(|error| fault(error.to_string()))?;
    if metadata.uid() != own {
        return Err(fault(format!(
            "invalid owner: expected the user of the gateway, {own}, found {}; give a folder that does not exist yet",
            metadata.uid()
        )));
    }
    for entry in fs::read_dir(&path)? {
        let entry = entry?;
        if let Some(found) = foreign(&entry.metadata()?, own) {
            return Err(fault(format!(
                "expected files of the gateway alone, found {found}, {}; remove it",
                entry.file_name().display()
            )));
        }
    }
    fs::set_permissions(&path, Permissions::from_mode(MODE))
}

/// The user of this process, who owns the files that it creates.
fn own_uid(folder: &Path) -> io::Result<u32> {
    let file = folder.join(format!("owner-{:016x}", rand::random::<u64>()));
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&file)?;
    let own = created.metadata().map(|metadata| metadata.uid());
    fs::remove_file(&file)?;
    own
}

/// What an entry is, if writing to it could change a file elsewhere, or a file of another user. Folders are not written to.
fn foreign(entry: &Metadata, own: u32) -> Option<&'static str> {
    if entry.is_dir() {
        None
    } else if entry.is_symlink() {
        Some("a symbolic link")
    } else if !entry.is_file() {
        Some("a special file")
    } else if entry.uid() != own {
        Some("a file of another user")
    } else if entry.nlink() > 1 {
        Some("a file with another name")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    fn fault(path: &Path) -> String {
        open(path).unwrap_err().to_string()
    }

    #[test]
    fn a_missing_folder_is_created_for_its_owner_alone() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("not/yet/there");
        open(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        fs::write(path.join("value"), "").unwrap();
        fs::create_dir(path.join("lost+found")).unwrap();
        open(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
    }

    #[test]
    fn a_folder_that_others_may_read_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        open(folder.path()).unwrap();
        assert_eq!(mode(folder.path()), 0o700);
    }

    #[test]
    fn a_folder_that_others_may_write_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for open_to in [0o720, 0o702, 0o777] {
            fs::set_permissions(folder.path(), Permissions::from_mode(open_to)).unwrap();
            let fault = fault(folder.path());
            assert!(
                fault.contains(&format!("expected 0700, found {open_to:04o}")),
                "{fault}"
            );
            assert_eq!(mode(folder.path()), open_to);
        }
    }

    #[test]
    fn no_link_is_followed() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for open_to_readers in [&folder, &outside] {
            fs::set_permissions(open_to_readers.path(), Permissions::from_mode(0o755)).unwrap();
        }
        let link = folder.path().join("link");
        symlink(outside.path(), &link).unwrap();
        for path in [&link, &folder.path().join("link/"), &folder.path().join("link/.")] {
            assert!(
                fault(path).contains("found a symbolic link"),
                "{}",
                path.display()
            );
        }
        assert!(fault(folder.path()).contains("found a symbolic link, link"));
        assert_eq!([mode(outside.path()), mode(folder.path())], [0o755; 2]);
        fs::remove_file(&link).unwrap();
        symlink(folder.path().join("missing"), &link).unwrap();
        assert!(fault(&link).contains("found a symbolic link"));
        fs::remove_file(&link).unwrap();

        fs::write(outside.path().join("file"), "text").unwrap();
        fs::hard_link(outside.path().join("file"), &link).unwrap();
        assert!(fault(folder.path()).contains("found a file with another name, link"));
        assert!(fault(&link).contains("expected a folder, found a file"));
    }

    /// Only root can give files away.
    #[test]
    fn folders_and_files_of_others_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("value");
        fs::write(&file, "").unwrap();
        if chown(&file, Some(65_534), None).is_err() {
            return;
        }
        assert!(fault(folder.path()).contains("found a file of another user, value"));
        fs::remove_file(&file).unwrap();
        chown(folder.path(), Some(65_534), None).unwrap();
        assert!(
            fault(folder.path()).contains("invalid owner: expected the user of the gateway, 0, found 65534")
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
