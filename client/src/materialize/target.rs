//! The target of a materialized data set: what it has, and what is written into it.

use std::collections::BTreeMap;

use bytes::Bytes;
use pushdown::{
    Limits,
    part::{NotesRead, PartFormat, PartNote, read_notes},
};

use super::{
    layout::number_in,
    manifest::{MANIFEST_NAME, MAX_MANIFEST_BYTES, Manifest},
    recipe::{MAX_RECIPE_BYTES, RECIPE_NAME, Recipe},
};
use crate::{
    error::{Error, Result},
    store::{HiddenObjects, Store},
};

/// Bytes of a part that are read for its notes at first, and at most.
const FIRST_NOTES_BYTES: u64 = 64 << 10;
const MAX_NOTES_BYTES: u64 = 64 << 20;

/// Where the parts go.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) store: Store,
    pub(super) bucket: String,
    /// Ends with `/`, unless it is empty.
    pub(super) prefix: String,
}

/// What a target has.
#[derive(Debug, Default)]
pub(super) struct TargetContents {
    pub(super) recipe: Option<Recipe>,
    pub(super) manifest: Option<Manifest>,
    /// Sizes of the parts by name.
    pub(super) parts: BTreeMap<String, u64>,
}

impl Target {
    pub(super) fn new(store: Store, bucket: String, prefix: &str) -> Self {
        let prefix = if prefix.is_empty() || prefix.ends_with('/') {
            prefix.to_owned()
        } else {
            format!("{prefix}/")
        };
        Self {
            store,
            bucket,
            prefix,
        }
    }

    /// The URL, for people.
    pub(super) fn url(&self) -> String {
        format!("s3://{}/{}", self.bucket, self.prefix)
    }

    pub(super) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Lists the target, and reads its documents.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an object that is no part of this format, and no document; those of the store.
    pub(super) async fn contents(&self, extension: &str) -> Result<TargetContents> {
        let listed = self
            .store
            .list_objects_with(&self.bucket, &self.prefix, HiddenObjects::Listed, |_| ())
            .await?;
        let mut contents = TargetContents::default();
        let (mut has_recipe, mut has_manifest) = (false, false);
        for object in listed.iter() {
            let name = object.key.strip_prefix(&self.prefix).unwrap_or(object.key);
            match name {
                // An empty object that stands for the folder.
                "" => {}
                RECIPE_NAME => has_recipe = true,
                MANIFEST_NAME => has_manifest = true,
                name if number_in(name, extension).is_some() => {
                    let bytes = object.bytes.unwrap_or_default();
                    contents.parts.insert(name.to_owned(), bytes);
                }
                _ => {
                    return Err(Error::config(format!(
                        "{} has other objects: expected none but parts of this format, found `{}`; use an empty target",
                        self.url(),
                        object.key
                    )));
                }
            }
        }
        if !has_recipe && !contents.parts.is_empty() {
            return Err(Error::config(format!(
                "{} has parts without {RECIPE_NAME}: use an empty target",
                self.url()
            )));
        }
        if has_recipe {
            contents.recipe = Some(self.recipe().await?);
        }
        if has_manifest {
            let json = self.read(MANIFEST_NAME, MAX_MANIFEST_BYTES).await?;
            contents.manifest = Some(Manifest::parse(&json, &self.object_url(MANIFEST_NAME))?);
        }
        Ok(contents)
    }

    /// Writes the recipe, unless another run has written one meanwhile. Returns the one that is there then: a store may ignore the
    /// condition, and the last of two recipes wins.
    pub(super) async fn claim(&self, recipe: &Recipe) -> Result<Recipe> {
        let json = Bytes::from(recipe.to_json()?);
        self.store
            .put_new(&self.bucket, &self.key(RECIPE_NAME), json)
            .await?;
        self.recipe().await
    }

    pub(super) async fn recipe(&self) -> Result<Recipe> {
        let json = self.read(RECIPE_NAME, MAX_RECIPE_BYTES).await?;
        Recipe::parse(&json, &self.object_url(RECIPE_NAME))
    }

    pub(super) async fn write_manifest(&self, manifest: &Manifest) -> Result<()> {
        self.write(MANIFEST_NAME, &manifest.to_json()?).await
    }

    /// Writes an object.
    pub(super) async fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let mut upload = self.store.upload(&self.bucket, &self.key(name));
        if let Err(error) = upload.write(content).await {
            // The first error says more.
            drop(upload.abort().await);
            return Err(error);
        }
        upload.finish().await
    }

    /// Deletes a part that another one replaces.
    pub(super) async fn delete(&self, name: &str) -> Result<()> {
        self.store.delete(&self.bucket, &self.key(name)).await
    }

    /// What a part says about samples that are not in it; `None` if it does not tell.
    pub(super) async fn notes(
        &self,
        name: &str,
        bytes: u64,
        format: PartFormat,
    ) -> Result<Option<Vec<PartNote>>> {
        let foreign = || {
            Err(Error::config(format!(
                "{} is no part that `pushdown materialize` has written: delete it, and run again",
                self.object_url(name)
            )))
        };
        if bytes == 0 {
            return foreign();
        }
        let mut wanted = FIRST_NOTES_BYTES.min(bytes);
        loop {
            let range = match format {
                PartFormat::Wds => 0..wanted,
                PartFormat::Parquet => bytes - wanted..bytes,
            };
            let piece = self.store.get_range(&self.bucket, &self.key(name), range).await?;
            match read_notes(format, &piece, bytes) {
                Ok(NotesRead::Notes(notes)) => return Ok(Some(notes)),
                Ok(NotesRead::Unknown) => return Ok(None),
                Ok(NotesRead::Needs(more)) if more > wanted && more <= bytes.min(MAX_NOTES_BYTES) => {
                    wanted = more;
                }
                Ok(NotesRead::Needs(_)) | Err(_) => return foreign(),
            }
        }
    }

    /// The URL of an object, for people.
    pub(super) fn object_url(&self, name: &str) -> String {
        format!("s3://{}/{}", self.bucket, self.key(name))
    }

    async fn read(&self, name: &str, max_bytes: u64) -> Result<Bytes> {
        let limits = Limits {
            max_object_bytes: max_bytes,
            ..Limits::default()
        };
        self.store.get(&self.bucket, &self.key(name), &limits).await
    }
}
