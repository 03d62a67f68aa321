//! Opens the store, the pipeline and the data set of a reader.

use std::mem;

use pushdown::Pipeline;

use super::{DataSetKeys, ListingCallback, PushdownReaderBuilder, applies::SampleKind, check_pipeline};
use crate::{
    epoch::ReadPlan,
    error::{Error, Result},
    models::parse_with_model_folder,
    objects::Objects,
    planning::Mode,
    store::{HiddenObjects, Store, StoreBuilder},
};

/// What every reader reads, and from where.
#[derive(Debug)]
pub(super) struct OpenedDataSet {
    pub(super) plan: ReadPlan,
    pub(super) store: Store,
    pub(super) pipeline: Pipeline,
    pub(super) objects: Objects,
}

impl PushdownReaderBuilder {
    /// The mode: plain in place of a plan if there is certainly no gateway.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`](crate::ErrorKind) for a reader that needs one.
    fn settled_mode(&self, store: &Store) -> Result<Mode> {
        match self.spec.mode {
            Mode::Pushdown => store.check_has_gateway().map(|()| Mode::Pushdown),
            Mode::Auto if !store.has_gateway() => Ok(Mode::Plain),
            mode @ (Mode::Auto | Mode::Plain) => Ok(mode),
        }
    }

    /// Checks the settings and lists the prefix.
    pub(super) async fn open(&mut self, samples: SampleKind) -> Result<OpenedDataSet> {
        let rank = self.check()?;
        let bucket = self.data_set_bucket()?;
        let text = self.spec.pipeline.clone().unwrap_or_default();
        // Before the store, so that an unreadable folder fails at once.
        let of_folder = self.spec.models.as_deref();
        let of_folder = of_folder
            .map(|folder| parse_with_model_folder(&text, folder))
            .transpose()?;
        let store = StoreBuilder {
            spec: self.spec.store.clone(),
            credentials: self.credentials.take(),
        };
        let store = store.build().await?;
        // Whole shards are always read plainly.
        if samples != SampleKind::Shards {
            self.spec.mode = self.settled_mode(&store)?;
        }
        let pipeline = match of_folder {
            Some(pipeline) => pipeline,
            None => store.pipeline(&text).await?,
        };
        check_pipeline(&pipeline, self.spec.split, self.spec.seed, self.spec.epoch)?;
        let keys = mem::replace(&mut self.keys, DataSetKeys::Prefix(String::new()));
        let objects = objects(&store, bucket, keys, self.hidden, self.listing.as_ref()).await?;
        if self.spec.start_position > objects.len() {
            return Err(Error::config(format!(
                "invalid start_position: expected at most {}, the number of samples, found {}",
                objects.len(),
                self.spec.start_position
            )));
        }
        let plan = self.plan(rank);
        Ok(OpenedDataSet {
            plan,
            store,
            pipeline,
            objects,
        })
    }

    /// The bucket of all samples.
    fn data_set_bucket(&self) -> Result<String> {
        let of_objects = match &self.keys {
            DataSetKeys::Objects(objects) => Some(objects.bucket()),
            DataSetKeys::Prefix(_) | DataSetKeys::Keys(_) => None,
        };
        match (self.bucket.as_deref(), of_objects) {
            (Some(set), Some(listed)) if set != listed => Err(Error::config(format!(
                "invalid bucket: expected `{listed}`, that of the objects, found `{set}`"
            ))),
            (Some(bucket), _) | (None, Some(bucket)) if !bucket.is_empty() => Ok(bucket.to_owned()),
            _ => Err(Error::config("no bucket is set")),
        }
    }
}

/// The objects of the data set, in its order.
async fn objects(
    store: &Store,
    bucket: String,
    keys: DataSetKeys,
    hidden: HiddenObjects,
    listing: Option<&ListingCallback>,
) -> Result<Objects> {
    let objects = match keys {
        DataSetKeys::Prefix(prefix) => {
            let progress = |objects| {
                if let Some(ListingCallback(call)) = listing {
                    call(objects);
                }
            };
            store
                .list_objects_with(&bucket, &prefix, hidden, progress)
                .await?
        }
        DataSetKeys::Keys(keys) => Objects::from_key_column(bucket.into(), keys),
        DataSetKeys::Objects(objects) => objects,
    };
    // Without a listing, whose answer would have named it: otherwise all first requests would learn the region.
    store.locate(objects.bucket()).await?;
    if u32::try_from(objects.len()).is_err() {
        return Err(Error::config(format!(
            "found {} objects, expected at most {}",
            objects.len(),
            u32::MAX
        )));
    }
    Ok(objects)
}
