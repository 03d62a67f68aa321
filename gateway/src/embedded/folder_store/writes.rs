//! What is checked before s3s-fs changes the folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use s3s::dto::{CopyObjectInput, CopySource, ETag, ETagCondition};
use s3s::{S3Error, S3Result, s3_error};

use super::FolderStore;
use crate::embedded::{
    attributes::{self, Attributes, is_missing},
    keys,
};

/// What keeps a key from being stored.
#[derive(Debug, PartialEq, Eq)]
enum Obstacle {
    /// An object whose key is a folder of this key.
    Object(String),
    /// Objects below this key.
    Folder,
}

impl FolderStore {
    /// Checks that an object with this key can be written, and makes room for it.
    pub(super) async fn prepare_write(&self, bucket: &str, key: &str, is_upload: bool) -> S3Result<()> {
        keys::path(&self.root, bucket, key)?;
        keys::check_attributes(bucket, key, is_upload)?;
        let (of_bucket, of_key) = (bucket.to_owned(), key.to_owned());
        let obstacle = self
            .blocking(move |root| obstacle(root, &of_bucket, &of_key))
            .await?;
        match obstacle {
            None => Ok(()),
            Some(Obstacle::Object(other)) => Err(s3_error!(
                InvalidRequest,
                "The folder of this store cannot hold `{key}`: expected no object with the key `{other}`, found one"
            )),
            Some(Obstacle::Folder) => Err(s3_error!(
                InvalidRequest,
                "The folder of this store cannot hold `{key}`: expected no objects below `{key}/`, found some"
            )),
        }
    }

    /// The same for an object in parts.
    pub(super) async fn prepare_upload(&self, bucket: &str, key: &str) -> S3Result<()> {
        if keys::is_folder(key) {
            return Err(s3_error!(
                InvalidRequest,
                "A key that ends with `/` is that of an empty object: expected no upload in parts"
            ));
        }
        self.prepare_write(bucket, key, true).await
    }

    /// Evaluates `If-Match` with the ETag that reads and listings show, and leaves to s3s-fs whether there is an object.
    pub(super) async fn check_if_match(
        &self,
        bucket: &str,
        key: &str,
        condition: &mut Option<ETagCondition>,
    ) -> S3Result<()> {
        if let Some(ETagCondition::ETag(expected)) = condition
            && let Some(found) = self.attributes(bucket, key).await?
        {
            if !expected.strong_cmp(&ETag::Strong(found.etag)) {
                return Err(s3_error!(PreconditionFailed, "ETag does not match"));
            }
            *condition = Some(ETagCondition::Any);
        }
        Ok(())
    }

    /// Checks source, conditions on its ETag, and target of a copy.
    pub(super) async fn prepare_copy(&self, input: &mut CopyObjectInput) -> S3Result<()> {
        if let CopySource::Bucket { bucket, key, .. } = &input.copy_source {
            let (bucket, key) = (String::from(&**bucket), String::from(&**key));
            let source = self.existing(&bucket, &key).await?;
            if keys::is_folder(&key) {
                return Err(s3_error!(
                    NotImplemented,
                    "The embedded store does not copy folders: expected a key that does not end with `/`"
                ));
            }
            check_source(input, &source)?;
            if !source.is_uploaded {
                // s3s-fs would give its ETag and checksums to the copy.
                self.forget_etag(bucket, key).await?;
            }
        }
        if keys::is_folder(&input.key) {
            return Err(s3_error!(
                InvalidRequest,
                "A key that ends with `/` is that of an empty object: expected no copy"
            ));
        }
        self.prepare_write(&input.bucket, &input.key, false).await
    }

    /// Removes an object. If it does not exist, nothing happens.
    pub(super) async fn remove(&self, bucket: &str, key: &str) -> S3Result<()> {
        if !self.bucket(bucket).is_dir() {
            return Err(self.missing(bucket));
        }
        let Ok(path) = keys::path(&self.root, bucket, key) else {
            return Ok(());
        };
        if keys::is_folder(key) {
            self.forget_etag(bucket.to_owned(), key.to_owned()).await?;
        }
        let removed = if keys::is_folder(key) {
            tokio::fs::remove_dir(path).await
        } else {
            tokio::fs::remove_file(path).await
        };
        match removed {
            Ok(()) => Ok(()),
            Err(error) if is_missing(&error) || is_other_kind(&error) => Ok(()),
            Err(error) => Err(S3Error::internal_error(error)),
        }
    }

    /// Makes an object of a folder.
    pub(super) async fn mark_folder(&self, bucket: String, key: String) -> S3Result<()> {
        self.blocking(move |root| attributes::mark_folder(root, &bucket, &key))
            .await
    }

    /// Removes the attributes of all objects of a bucket that does not exist any more: another one may have its name.
    pub(super) async fn forget_bucket(&self, bucket: String) -> S3Result<()> {
        self.blocking(move |root| keys::remove_attributes(root, &bucket))
            .await
    }

    async fn forget_etag(&self, bucket: String, key: String) -> S3Result<()> {
        let remove = move |root: &Path| match fs::remove_file(keys::etag_file(root, &bucket, &key)) {
            Err(error) if !is_missing(&error) => Err(error),
            _ => Ok(()),
        };
        self.blocking(remove).await
    }
}

/// Evaluates the conditions on the ETag of a copy's source, and on its time where those on its ETag take precedence.
fn check_source(input: &mut CopyObjectInput, source: &Attributes) -> S3Result<()> {
    let etag = ETag::Strong(source.etag.clone());
    let matches = |condition: &ETagCondition, is_equal: fn(&ETag, &ETag) -> bool| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(expected) => is_equal(&etag, expected),
    };
    let failed = || s3_error!(PreconditionFailed, "A condition on the source does not hold");
    if let Some(condition) = input.copy_source_if_match.take() {
        if !matches(&condition, ETag::strong_cmp) {
            return Err(failed());
        }
        input.copy_source_if_unmodified_since = None;
    }
    if let Some(condition) = input.copy_source_if_none_match.take() {
        if matches(&condition, ETag::weak_cmp) {
            return Err(failed());
        }
        input.copy_source_if_modified_since = None;
    }
    Ok(())
}

/// What keeps the folder from holding a key. Folders without objects give way.
fn obstacle(root: &Path, bucket: &str, key: &str) -> io::Result<Option<Obstacle>> {
    let is_folder = keys::is_folder(key);
    let name = key.strip_suffix('/').unwrap_or(key);
    let parents = name.match_indices('/').map(|(end, _)| &name[..end]);
    // The path of a folder must not be that of an object, either.
    for parent in parents.chain(is_folder.then_some(name)) {
        match fs::metadata(root.join(bucket).join(parent)) {
            Ok(found) if !found.is_dir() => return Ok(Some(Obstacle::Object(parent.to_owned()))),
            Ok(_) => {}
            Err(error) if is_missing(&error) => break,
            Err(error) => return Err(error),
        }
    }
    let path = root.join(bucket).join(name);
    let has_objects = !is_folder && path.is_dir() && !remove_empty(root, bucket, &format!("{name}/"), path)?;
    Ok(has_objects.then_some(Obstacle::Folder))
}

/// Removes a folder that has no objects, and those below it. Returns whether it did.
fn remove_empty(root: &Path, bucket: &str, key: &str, path: PathBuf) -> io::Result<bool> {
    let mut left = vec![(key.to_owned(), path)];
    let mut empty = Vec::new();
    while let Some((key, path)) = left.pop() {
        if Attributes::read(root, bucket, &key)?.is_some() {
            return Ok(false);
        }
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                return Ok(false);
            };
            if !entry.file_type()?.is_dir() {
                return Ok(false);
            }
            left.push((format!("{key}{name}/"), entry.path()));
        }
        empty.push(path);
    }
    // Folders come after those that contain them. One that is not empty any more stays.
    Ok(empty.iter().rev().all(|path| fs::remove_dir(path).is_ok()))
}

/// Whether the path is that of a folder instead of a file, or the other way around, or of a folder in use.
fn is_other_kind(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory | io::ErrorKind::DirectoryNotEmpty
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_stored_beside_one_that_is_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/folder/empty/deep")).unwrap();
        fs::create_dir_all(root.join("b/empty/deep")).unwrap();
        fs::create_dir_all(root.join("b/parent/marked")).unwrap();
        attributes::mark_folder(root, "b", "parent/marked/").unwrap();
        fs::write(root.join("b/folder/object"), "o").unwrap();
        fs::write(root.join("b/object"), "o").unwrap();
        let of_object = |key: &str| Some(Obstacle::Object(key.to_owned()));
        for (key, expected) in [
            ("new", None),
            ("new/deep/key", None),
            ("object", None),
            ("folder/new", None),
            ("folder/", None),
            ("object/below", of_object("object")),
            ("object/below/deeper", of_object("object")),
            ("object/", of_object("object")),
            ("folder", Some(Obstacle::Folder)),
            ("parent", Some(Obstacle::Folder)),
            ("parent/marked", Some(Obstacle::Folder)),
            ("empty", None),
            ("folder/empty", None),
        ] {
            assert_eq!(obstacle(root, "b", key).unwrap(), expected, "{key}");
        }
        assert!(!root.join("b/empty").exists(), "nothing is in its way");
        assert!(root.join("b/folder/object").exists() && root.join("b/parent/marked").exists());
    }
}
