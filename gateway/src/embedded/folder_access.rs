//! Access control of the embedded store: requests reach only files below the store's folder.

use std::io;
use std::path::{Component, Path, PathBuf};

use s3s::access::{S3Access, S3AccessContext};
use s3s::dto::{
    CopyObjectInput, CopySource, DeleteObjectsInput, GetObjectInput, ListObjectsInput, ListObjectsV2Input,
    Range, UploadPartCopyInput,
};
use s3s::path::S3Path;
use s3s::{S3Request, S3Result, s3_error};

use super::keys;

/// Allows every signed request (the default of `s3s`), except those whose path follows a symbolic link out of the folder.
///
/// s3s-fs opens paths without such a check. S3 requests cannot create links, so checking before opening is enough.
#[derive(Debug)]
pub(super) struct FolderAccess {
    /// The canonical path of the folder, without symbolic links.
    root: PathBuf,
}

impl FolderAccess {
    /// # Errors
    /// If the folder does not exist.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            root: directory.canonicalize()?,
        })
    }

    /// Checks the path of an object, or of the bucket if the key is empty.
    fn check_path(&self, bucket: &str, key: &str) -> S3Result<()> {
        // No file has such a key, and the store says so.
        if !key.is_empty() && keys::path(&self.root, bucket, key).is_err() {
            return Ok(());
        }
        self.path(bucket, key).map(drop)
    }

    /// The path of an object, or of the bucket if the key is empty.
    fn path(&self, bucket: &str, key: &str) -> S3Result<PathBuf> {
        let path = resolve(&self.root, &Path::new(bucket).join(key));
        let path = path.ok_or_else(|| s3_error!(AccessDenied, "The path is outside the store's folder."))?;
        if is_below(&self.root, &path) {
            Ok(path)
        } else {
            Err(s3_error!(
                AccessDenied,
                "A symbolic link points out of the store's folder."
            ))
        }
    }

    fn check_source(&self, source: &CopySource) -> S3Result<()> {
        match source {
            CopySource::Bucket { bucket, key, .. } => self.check_path(bucket, key),
            CopySource::AccessPoint { .. } | CopySource::Outpost { .. } => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl S3Access for FolderAccess {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        if context.credentials().is_none() {
            return Err(s3_error!(AccessDenied, "Signature is required"));
        }
        match context.s3_path() {
            S3Path::Root => Ok(()),
            S3Path::Bucket { bucket } => self.check_path(bucket, ""),
            S3Path::Object { bucket, key } => self.check_path(bucket, key),
        }
    }

    async fn copy_object(&self, request: &mut S3Request<CopyObjectInput>) -> S3Result<()> {
        self.check_source(&request.input.copy_source)
    }

    async fn upload_part_copy(&self, request: &mut S3Request<UploadPartCopyInput>) -> S3Result<()> {
        self.check_source(&request.input.copy_source)
    }

    async fn delete_objects(&self, request: &mut S3Request<DeleteObjectsInput>) -> S3Result<()> {
        let DeleteObjectsInput { bucket, delete, .. } = &request.input;
        let mut keys = delete.objects.iter().map(|object| &object.key);
        keys.try_for_each(|key| self.check_path(bucket, key))
    }

    async fn list_objects(&self, request: &mut S3Request<ListObjectsInput>) -> S3Result<()> {
        ignore_empty(&mut request.input.delimiter);
        Ok(())
    }

    async fn list_objects_v2(&self, request: &mut S3Request<ListObjectsV2Input>) -> S3Result<()> {
        ignore_empty(&mut request.input.delimiter);
        Ok(())
    }

    /// Turns a suffix range longer than the object into a range from its start: S3 sends the whole object for it, and
    /// s3s-fs fails.
    async fn get_object(&self, request: &mut S3Request<GetObjectInput>) -> S3Result<()> {
        let GetObjectInput {
            bucket, key, range, ..
        } = &mut request.input;
        if let Some(Range::Suffix { length }) = *range
            && let Ok(path) = keys::path(&self.root, bucket, key)
            && let Ok(file) = tokio::fs::metadata(path).await
            && file.len() < length
        {
            *range = Some(Range::Int { first: 0, last: None });
        }
        Ok(())
    }
}

/// S3 ignores an empty delimiter; s3s-fs treats every key as a folder.
fn ignore_empty(delimiter: &mut Option<String>) {
    *delimiter = delimiter.take().filter(|text| !text.is_empty());
}

/// Joins `path` to `root` and resolves `.` and `..` lexically, as s3s-fs does. `None` if the result is outside `root`.
fn resolve(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !below.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(root.join(below))
}

/// Whether `path`, or its longest existing prefix, is below `root` after following all links.
pub(super) fn is_below(root: &Path, path: &Path) -> bool {
    for existing in path.ancestors() {
        match existing.canonicalize() {
            Ok(real) => return real.starts_with(root),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
                ) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_out_of_the_folder_are_refused() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let bucket = folder.path().join("bucket");
        std::fs::create_dir(&bucket).unwrap();
        std::fs::write(bucket.join("file"), "f").unwrap();
        symlink(outside.path(), bucket.join("out")).unwrap();
        symlink(outside.path().join("secret"), bucket.join("secret")).unwrap();
        symlink(outside.path(), folder.path().join("linked-bucket")).unwrap();
        symlink("loop", bucket.join("loop")).unwrap();
        symlink("file", bucket.join("within")).unwrap();
        let access = FolderAccess::new(folder.path()).unwrap();
        for key in ["file", "within", "new", "deep/er/new", "", "out/../file"] {
            assert!(access.path("bucket", key).is_ok(), "{key}");
        }
        for key in [
            "secret",
            "out/secret",
            "out/new",
            "out",
            "loop",
            "../../secret",
            "/etc/passwd",
            "../linked-bucket/secret",
        ] {
            assert!(access.path("bucket", key).is_err(), "{key}");
        }
        for key in ["out/../file", "../../secret", "a//b", &"n".repeat(256)] {
            assert!(
                access.check_path("bucket", key).is_ok(),
                "no file has the key {key}"
            );
        }
        assert!(access.check_path("bucket", "out/secret").is_err());
        assert!(access.path("linked-bucket", "").is_err());
        assert!(access.path("linked-bucket", "secret").is_err());
    }
}
