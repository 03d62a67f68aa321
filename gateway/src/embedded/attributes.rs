//! What a listing and a read show of an object: size, time and ETag.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde_json::{Value, json};

use super::keys::{self, KeyFault};

/// The ETag of an object without bytes: the MD5 of nothing.
pub(super) const EMPTY_ETAG: &str = "d41d8cd98f00b204e9800998ecf8427e";

/// What is known of an object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
    /// Without quotes.
    pub(super) etag: String,
    /// Whether the ETag is that of the upload, so that s3s-fs shows the same.
    pub(super) is_uploaded: bool,
    /// The file itself: another one has the same name after an upload.
    inode: u64,
}

impl Attributes {
    /// The attributes of an object; `None` if no object has this key.
    ///
    /// The ETag is that of the upload, as s3s-fs has stored it. A file that came into the folder in another way, or changed there
    /// after the upload, has one of its size and times: they change with its content, and no listing reads it.
    ///
    /// # Errors
    /// If the system cannot say.
    pub(super) fn read(root: &Path, bucket: &str, key: &str) -> io::Result<Option<Self>> {
        let path: Result<PathBuf, KeyFault> = keys::path(root, bucket, key);
        let Ok(path) = path else {
            return Ok(None);
        };
        let etag_file = keys::etag_file(root, bucket, key);
        if keys::is_folder(key) {
            let marker = existing(fs::metadata(etag_file))?;
            let is_folder = existing(fs::metadata(path))?.is_some_and(|found| found.is_dir());
            return Ok(marker.filter(|_| is_folder).map(|marker| Self {
                bytes: 0,
                modified: marker.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                etag: EMPTY_ETAG.to_owned(),
                is_uploaded: true,
                inode: marker.ino(),
            }));
        }
        let Some(file) = existing(fs::metadata(path))?.filter(Metadata::is_file) else {
            return Ok(None);
        };
        let uploaded = uploaded_etag(&etag_file, &file)?;
        Ok(Some(Self {
            bytes: file.len(),
            modified: file.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            is_uploaded: uploaded.is_some(),
            etag: uploaded.unwrap_or_else(|| etag_of_times(&file)),
            inode: file.ino(),
        }))
    }
}

/// The ETag of the upload, if the file has not changed since.
fn uploaded_etag(etag_file: &Path, file: &Metadata) -> io::Result<Option<String>> {
    let Some(stored) = existing(fs::metadata(etag_file))? else {
        return Ok(None);
    };
    // An upload stores the ETag after the file.
    if (stored.ctime(), stored.ctime_nsec()) < (file.ctime(), file.ctime_nsec()) {
        return Ok(None);
    }
    let Some(text) = existing(fs::read(etag_file))? else {
        return Ok(None);
    };
    let members: Option<Value> = serde_json::from_slice(&text).ok();
    let etag = members
        .as_ref()
        .and_then(|members| members.get("e_tag")?.as_str());
    Ok(etag.map(str::to_owned))
}

/// An ETag that changes with the content. Its form is that of no MD5.
fn etag_of_times(file: &Metadata) -> String {
    format!(
        "{:x}.{:09}-{:x}.{:09}-{:x}",
        file.mtime(),
        file.mtime_nsec(),
        file.ctime(),
        file.ctime_nsec(),
        file.len()
    )
}

/// Marks a folder as an object.
///
/// # Errors
/// If the mark cannot be written.
pub(super) fn mark_folder(root: &Path, bucket: &str, key: &str) -> io::Result<()> {
    let members = json!({ "e_tag": EMPTY_ETAG });
    fs::write(keys::etag_file(root, bucket, key), members.to_string())
}

/// `None` for what does not exist.
fn existing<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether nothing has this name.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

#[cfg(test)]
mod tests {
    use std::{thread::sleep, time::Duration};

    use super::*;

    /// The clock of files advances in steps.
    const TICK: Duration = Duration::from_millis(20);

    fn etag(root: &Path, key: &str) -> Option<String> {
        Attributes::read(root, "b", key).unwrap().map(|found| found.etag)
    }

    #[test]
    fn the_etag_is_that_of_the_upload_until_the_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("b")).unwrap();
        assert_eq!(etag(root, "k"), None);
        fs::write(root.join("b/k"), "first").unwrap();
        let of_times = etag(root, "k").unwrap();
        assert_eq!(etag(root, "k").unwrap(), of_times);
        fs::write(keys::etag_file(root, "b", "k"), r#"{"e_tag": "uploaded"}"#).unwrap();
        assert_eq!(etag(root, "k").unwrap(), "uploaded");
        sleep(TICK);
        fs::write(root.join("b/k"), "other").unwrap();
        let changed = etag(root, "k").unwrap();
        assert!(changed != "uploaded" && changed != of_times, "{changed}");
        // A file of the same size and age takes its place.
        let modified = fs::metadata(root.join("b/k")).unwrap().modified().unwrap();
        fs::write(root.join("new"), "third").unwrap();
        let new = fs::File::options().write(true).open(root.join("new")).unwrap();
        new.set_modified(modified).unwrap();
        sleep(TICK);
        fs::rename(root.join("new"), root.join("b/k")).unwrap();
        assert_ne!(etag(root, "k").unwrap(), changed);
    }

    #[test]
    fn a_folder_is_an_object_if_it_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/marked/below")).unwrap();
        mark_folder(root, "b", "marked/").unwrap();
        assert_eq!(etag(root, "marked/").as_deref(), Some(EMPTY_ETAG));
        assert_eq!(etag(root, "marked"), None);
        assert_eq!(etag(root, "marked/below/"), None);
        mark_folder(root, "b", "missing/").unwrap();
        assert_eq!(etag(root, "missing/"), None);
    }
}
