//! From settings to a store, a pipeline and a data set.

use std::mem;

use pushdown::Pipeline;

use super::{Keys, Listing, PushdownReaderBuilder, check_pipeline};
use crate::{
    error::{Error, Result},
    models::pipeline_of_folder,
    reader::Plan,
    store::{Object, Store},
};

/// What every reader reads, and where from.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) plan: Plan,
    pub(super) bucket: String,
    pub(super) store: Store,
    pub(super) pipeline: Pipeline,
    pub(super) objects: Vec<Object>,
}

impl PushdownReaderBuilder {
    /// Checks the settings and lists the prefix.
    pub(super) async fn open(&mut self) -> Result<Opened> {
        let shard = self.check()?;
        let bucket = self
            .bucket
            .take()
            .filter(|bucket| !bucket.is_empty())
            .ok_or_else(|| Error::config("no bucket is set"))?;
        let text = self.pipeline.as_deref().unwrap_or_default();
        // Before the store: a folder that cannot be read is told at once.
        let of_folder = self.models.as_deref();
        let of_folder = of_folder
            .map(|folder| pipeline_of_folder(text, folder))
            .transpose()?;
        let store = self.store.clone().build().await?;
        let pipeline = match of_folder {
            Some(pipeline) => pipeline,
            None => store.pipeline(text).await?,
        };
        check_pipeline(&pipeline, self.split, self.seed, self.epoch)?;
        let keys = mem::replace(&mut self.keys, Keys::These(Vec::new()));
        let objects = objects(&store, &bucket, keys, self.listing.as_ref()).await?;
        let plan = Plan {
            batch_size: self.batch_size,
            shard,
            shuffle_seed: self.seed.filter(|_| self.shuffle),
            epoch: self.epoch,
            start: self.start,
            limit: self.limit,
            prefetch_bytes: self.prefetch_bytes,
            requests: self.requests,
        };
        Ok(Opened {
            plan,
            bucket,
            store,
            pipeline,
            objects,
        })
    }
}

/// The data set, in its order.
async fn objects(store: &Store, bucket: &str, keys: Keys, listing: Option<&Listing>) -> Result<Vec<Object>> {
    let objects = match keys {
        Keys::Prefix(prefix) => {
            let progress = |objects| {
                if let Some(Listing(call)) = listing {
                    call(objects);
                }
            };
            store.list_with(bucket, &prefix, progress).await?
        }
        Keys::These(objects) => objects,
    };
    if u32::try_from(objects.len()).is_err() {
        return Err(Error::config(format!(
            "found {} objects, expected at most {}",
            objects.len(),
            u32::MAX
        )));
    }
    Ok(objects)
}
