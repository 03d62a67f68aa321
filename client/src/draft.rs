//! Files that are complete as soon as they exist.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io,
    path::Path,
    process,
};

/// Writes a file, in place of an old one. It is first written under a temporary name in the same folder, so a reader of the file never finds
/// a part of it. `write` returns the file once all bytes are written to it.
pub(crate) fn write_atomically<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(File) -> Result<File, E>,
) -> Result<(), E> {
    let mut name = path.file_name().map(OsStr::to_owned).unwrap_or_default();
    name.push(format!(".{}-{:016x}.tmp", process::id(), rand::random::<u64>()));
    let draft = path.with_file_name(name);
    let written = File::create_new(&draft)
        .map_err(E::from)
        .and_then(write)
        .and_then(|file| {
            // Otherwise a power failure could leave the new name without the bytes.
            file.sync_all()?;
            Ok(fs::rename(&draft, path)?)
        });
    if written.is_err() {
        // Removing may fail for the same reason as writing.
        drop(fs::remove_file(&draft));
    }
    written
}
