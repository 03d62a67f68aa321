//! Opens the store, the pipeline and the data set of a reader.

use std::mem;

use pushdown::Pipeline;

use super::{DataSetKeys, ListingCallback, PushdownReaderBuilder, check_pipeline};
use crate::{
    error::{Error, Result},
    models::parse_with_model_folder,
    reader::ReadPlan,
    store::{Object, Store},
};

/// What every reader reads, and from where.
#[derive(Debug)]
pub(super) struct OpenedDataSet {
    pub(super) plan: ReadPlan,
    pub(super) bucket: String,
    pub(super) store: Store,
    pub(super) pipeline: Pipeline,
    pub(super) objects: Vec<Object>,
}

impl PushdownReaderBuilder {
    /// Checks the settings and lists the prefix.
    pub(super) async fn open(&mut self) -> Result<OpenedDataSet> {
        let shard = self.check()?;
        let bucket = self
            .bucket
            .take()
            .filter(|bucket| !bucket.is_empty())
            .ok_or_else(|| Error::config("no bucket is set"))?;
        let text = self.pipeline.as_deref().unwrap_or_default();
        // Before the store, so that an unreadable folder fails at once.
        let of_folder = self.models.as_deref();
        let of_folder = of_folder
            .map(|folder| parse_with_model_folder(text, folder))
            .transpose()?;
        let store = self.store.clone().build().await?;
        let pipeline = match of_folder {
            Some(pipeline) => pipeline,
            None => store.pipeline(text).await?,
        };
        check_pipeline(&pipeline, self.split, self.seed, self.epoch)?;
        let keys = mem::replace(&mut self.keys, DataSetKeys::Objects(Vec::new()));
        let objects = objects(&store, &bucket, keys, self.listing.as_ref()).await?;
        if self.start_position > objects.len() {
            return Err(Error::config(format!(
                "invalid start_position: expected at most {}, the number of samples, found {}",
                objects.len(),
                self.start_position
            )));
        }
        let plan = ReadPlan {
            batch_size: self.batch_size,
            shard,
            shuffle_seed: self.seed.filter(|_| self.shuffle),
            epoch: self.epoch,
            start_position: self.start_position,
            tail: self.tail,
            start: self.start,
            stride: self.stride,
            limit: self.limit,
            prefetch_bytes: self.prefetch_bytes,
            requests: self.requests,
        };
        Ok(OpenedDataSet {
            plan,
            bucket,
            store,
            pipeline,
            objects,
        })
    }
}

/// The objects of the data set, in its order.
async fn objects(
    store: &Store,
    bucket: &str,
    keys: DataSetKeys,
    listing: Option<&ListingCallback>,
) -> Result<Vec<Object>> {
    let objects = match keys {
        DataSetKeys::Prefix(prefix) => {
            let progress = |objects| {
                if let Some(ListingCallback(call)) = listing {
                    call(objects);
                }
            };
            store.list_with(bucket, &prefix, progress).await?
        }
        DataSetKeys::Objects(objects) => objects,
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
