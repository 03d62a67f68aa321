//! Files that are complete as soon as they exist.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    mem::ManuallyDrop,
    path::{Path, PathBuf},
};

use pushdown_exec::sync::Mutex;

/// The drafts of this process. It is locked while one of them is created, renamed or removed.
static DRAFTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file that is written under a temporary name in the folder of its target. [`finish`](Self::finish) renames it, so a reader of the target
/// never finds a part of it; a draft that is dropped before leaves nothing, and an old target as it was.
///
/// A target that exists keeps its permissions, and a link stays one to the same path. A target that is no regular file, such as a pipe or
/// `/dev/null`, has nothing to keep: it is written directly.
#[derive(Debug)]
pub struct Draft {
    file: File,
    /// `None` if the target is written directly.
    names: Option<Names>,
}

#[derive(Debug)]
struct Names {
    draft: PathBuf,
    target: PathBuf,
    is_renamed: bool,
}

impl Draft {
    /// Begins to write a file.
    ///
    /// # Errors
    /// If the target cannot be written, or a file cannot be created in its folder.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let (target, permissions) = match OpenOptions::new().write(true).open(path) {
            Ok(existing) => {
                let metadata = existing.metadata()?;
                if !metadata.is_file() {
                    return Ok(Self {
                        file: existing,
                        names: None,
                    });
                }
                (fs::canonicalize(path)?, Some(metadata.permissions()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => (path.to_owned(), None),
            Err(error) => return Err(error),
        };
        let draft = target.with_file_name(format!(".pushdown-{:016x}.tmp", rand::random::<u64>()));
        let mut drafts = DRAFTS.lock();
        let file = File::create_new(&draft)?;
        drafts.insert(draft.clone());
        drop(drafts);
        let created = Self {
            file,
            names: Some(Names {
                draft,
                target,
                is_renamed: false,
            }),
        };
        if let Some(permissions) = permissions {
            created.file.set_permissions(permissions)?;
        }
        Ok(created)
    }

    /// Gives the file its name, in place of an old file.
    ///
    /// # Errors
    /// If the bytes cannot be stored, or the file cannot be renamed. Nothing of it is left then.
    pub fn finish(mut self) -> io::Result<()> {
        let Some(names) = &mut self.names else {
            return Ok(());
        };
        // Otherwise a power failure could leave the new name without the bytes.
        self.file.sync_all()?;
        let mut drafts = DRAFTS.lock();
        fs::rename(&names.draft, &names.target)?;
        drafts.remove(&names.draft);
        names.is_renamed = true;
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(names) = &self.names
            && !names.is_renamed
        {
            let mut drafts = DRAFTS.lock();
            drafts.remove(&names.draft);
            // Removing may fail for the same reason as writing.
            drop(fs::remove_file(&names.draft));
        }
    }
}

/// Removes all drafts of this process, which is about to end. From now on, whoever creates, finishes or drops a draft waits forever.
pub fn remove_drafts() {
    // Never unlocked.
    let drafts = ManuallyDrop::new(DRAFTS.lock());
    for draft in &**drafts {
        // Nobody is left to hear of an error.
        drop(fs::remove_file(draft));
    }
}

/// Writes a file as a [`Draft`], which `write` returns once all bytes are written to it.
pub(crate) fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(Draft) -> Result<Draft, E>,
) -> Result<(), E> {
    Ok(write(Draft::create(path)?)?.finish()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names_in(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_target_changes_only_when_its_draft_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for (old, new) in [(None, "first"), (Some("first"), "second")] {
            let mut draft = Draft::create(&path).unwrap();
            draft.write_all(b"part").unwrap();
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
            drop(draft);
            assert_eq!(fs::read_to_string(&path).ok().as_deref(), old);
            let mut draft = Draft::create(&path).unwrap();
            draft.write_all(new.as_bytes()).unwrap();
            draft.finish().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), new);
            assert_eq!(names_in(folder.path()), ["x"]);
        }
    }

    #[test]
    fn a_target_keeps_its_permissions_and_its_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("x"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        let mut draft = Draft::create(&link).unwrap();
        draft.write_all(b"new").unwrap();
        draft.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_target_that_cannot_be_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Draft::create(folder.path()).is_err());
        assert!(Draft::create(folder.path().join("missing/x")).is_err());
        assert!(names_in(folder.path()).is_empty());
    }

    #[test]
    fn a_device_is_written_directly() {
        let mut draft = Draft::create("/dev/null").unwrap();
        assert!(draft.names.is_none());
        draft.write_all(b"anything").unwrap();
        draft.finish().unwrap();
    }
}
