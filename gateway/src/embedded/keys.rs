//! Which keys a folder can hold, and the names of their files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use s3s::{S3Error, s3_error};

/// The longest name of a file or a folder that file systems have in common.
const MAX_NAME_BYTES: usize = 255;
/// The longest path that the system opens, without its end.
const MAX_PATH_BYTES: usize = 4095;
/// What the name of the attributes of an upload ends with, instead of that of an object.
const UPLOAD_SUFFIX_BYTES: usize = ".upload-00000000-0000-0000-0000-000000000000".len();
/// The longest end of a name of attributes.
const LONGEST_END: &str = ".metadata.json";

/// Why the folder can hold no object with this key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum KeyFault {
    /// A part between slashes is too long for a name.
    #[error(
        "The key is too long for the folder of this store: expected at most 255 bytes between two slashes, found {0}"
    )]
    LongName(usize),
    /// All of it is too long.
    #[error(
        "The key is too long for the folder of this store: expected at most {expected} bytes, found {found}"
    )]
    Long { expected: usize, found: usize },
    /// A part between slashes is no name.
    #[error(
        "The folder of this store cannot hold the key: expected a name before and after each slash, found {0}"
    )]
    NoName(&'static str),
}

impl From<KeyFault> for S3Error {
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::LongName(_) | KeyFault::Long { .. } => s3_error!(KeyTooLongError, "{fault}"),
            KeyFault::NoName(_) => s3_error!(InvalidArgument, "{fault}"),
        }
    }
}

/// Whether the key is that of a folder, an empty object by which some clients mark a prefix.
pub(super) fn is_folder(key: &str) -> bool {
    key.ends_with('/')
}

/// The file of a key, or its folder. It is below the folder of the bucket, and no other key has it, but that with a slash at its end.
pub(super) fn path(root: &Path, bucket: &str, key: &str) -> Result<PathBuf, KeyFault> {
    for part in key.strip_suffix('/').unwrap_or(key).split('/') {
        match part {
            "" => return Err(KeyFault::NoName("none")),
            "." => return Err(KeyFault::NoName("`.`")),
            ".." => return Err(KeyFault::NoName("`..`")),
            _ if part.contains('\0') => return Err(KeyFault::NoName("a zero byte")),
            _ if part.len() > MAX_NAME_BYTES => return Err(KeyFault::LongName(part.len())),
            _ => {}
        }
    }
    let path = root.join(bucket).join(key);
    let bytes = path.as_os_str().len();
    if bytes > MAX_PATH_BYTES {
        let expected = MAX_PATH_BYTES.saturating_sub(bytes - key.len());
        let found = key.len();
        return Err(KeyFault::Long { expected, found });
    }
    Ok(path)
}

/// Checks that the attributes of a key, which s3s-fs stores in a file next to the buckets, have a name that is not too long.
pub(super) fn check_attributes(bucket: &str, key: &str, is_upload: bool) -> Result<(), KeyFault> {
    let ends = LONGEST_END.len() + if is_upload { UPLOAD_SUFFIX_BYTES } else { 0 };
    let without_key = attributes_stem(bucket, "").len() + ends;
    let expected = MAX_NAME_BYTES.saturating_sub(without_key) * 3 / 4;
    let found = key.len();
    if found > expected {
        return Err(KeyFault::Long { expected, found });
    }
    Ok(())
}

/// The file in which s3s-fs stores ETag and checksums of an object.
pub(super) fn etag_file(root: &Path, bucket: &str, key: &str) -> PathBuf {
    root.join(attributes_stem(bucket, key) + ".internal.json")
}

/// Removes the attributes of all objects of a bucket.
///
/// # Errors
/// If the folder cannot be read, or a file not be removed.
pub(super) fn remove_attributes(root: &Path, bucket: &str) -> io::Result<()> {
    let stem = attributes_stem(bucket, "");
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(&stem))
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn attributes_stem(bucket: &str, key: &str) -> String {
    let encode = |name: &str| BASE64_URL_SAFE_NO_PAD.encode(name);
    format!(".bucket-{}.object-{}", encode(bucket), encode(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(key: &str) -> Option<String> {
        path(Path::new("/store"), "bucket", key)
            .err()
            .map(|fault| fault.to_string())
    }

    #[test]
    fn each_key_has_its_own_path() {
        let root = Path::new("/store");
        for key in ["a", "a/b", "a b", "-", "...", "a\u{17}b", "\u{e9}", "a.b/..c"] {
            assert_eq!(
                path(root, "bucket", key).unwrap(),
                Path::new("/store/bucket").join(key)
            );
        }
        for (key, found) in [
            ("/a", "none"),
            ("a//b", "none"),
            ("a//", "none"),
            ("/", "none"),
            ("./a", "`.`"),
            ("a/./b", "`.`"),
            ("a/../b", "`..`"),
            ("..", "`..`"),
            ("a/..", "`..`"),
            ("a\0", "a zero byte"),
        ] {
            let expected = format!("expected a name before and after each slash, found {found}");
            assert!(fault(key).unwrap().ends_with(&expected), "{key:?}");
        }
    }

    #[test]
    fn names_and_paths_have_a_longest_length() {
        let name = "n".repeat(255);
        assert_eq!(fault(&name), None);
        assert_eq!(fault(&[name.as_str(); 4].join("/")), None);
        let expected = "The key is too long for the folder of this store: expected at most 255 bytes between two slashes, \
                        found 256";
        assert_eq!(fault(&format!("a/{name}n")).unwrap(), expected);
        let path_of = |root: usize| path(Path::new(&"r".repeat(root)), "b", "key").is_ok();
        assert!(path_of(4095 - "/b/key".len()));
        assert!(!path_of(4096 - "/b/key".len()));
    }

    #[test]
    fn names_of_attributes_have_a_longest_length() {
        for (bucket, is_upload, longest) in [("bkt", false, 165), ("bkt", true, 132), ("buckets", false, 161)]
        {
            check_attributes(bucket, &"k".repeat(longest), is_upload).unwrap();
            let fault = check_attributes(bucket, &"k".repeat(longest + 1), is_upload).unwrap_err();
            let expected = KeyFault::Long {
                expected: longest,
                found: longest + 1,
            };
            assert_eq!(fault, expected, "{bucket} {is_upload}");
        }
        let longest = attributes_stem("bkt", &"k".repeat(165)) + LONGEST_END;
        assert!((252..=MAX_NAME_BYTES).contains(&longest.len()), "{longest}");
    }
}
