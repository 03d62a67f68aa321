//! Options for the objects of a data set, which several commands share.

use std::path::{Path, PathBuf};

use clap::Args;
use pushdown_client::{
    Result,
    shards::{ColumnSelection, ShardIndex},
    store::{HiddenObjects, Objects, Store},
};

use crate::{location::Location, progress::Listing};

/// Where the samples are.
#[derive(Debug, Args)]
pub(crate) struct DataSet {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    pub(crate) prefix: Location,
    /// List of `pushdown index`: values of members of these shards instead of whole objects
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// With --index: extension of the members for the pipeline [default: the first of jpg, jpeg, png and webp that a sample has]
    #[arg(long, value_name = "EXT", requires = "index")]
    column: Option<String>,
    /// manifest.json of an S3 Inventory of the bucket, in CSV or Parquet: its objects under the prefix, without a listing
    #[arg(long, value_name = "s3://BUCKET/KEY", conflicts_with = "index")]
    inventory: Option<Location>,
    /// Include hidden objects: files of desktops, and empty objects that stand for folders
    #[arg(long)]
    include_hidden: bool,
}

impl DataSet {
    /// The objects, or members of shards with these further columns.
    pub(crate) async fn objects(&self, store: &Store, further: &[String]) -> Result<Objects> {
        if let Some(path) = &self.index {
            return self.members(path, further);
        }
        let hidden = if self.include_hidden {
            HiddenObjects::Listed
        } else {
            HiddenObjects::LeftOut
        };
        let Location { bucket, key } = &self.prefix;
        if let Some(manifest) = &self.inventory {
            let reading = Listing::of_inventory(manifest);
            let progress = |objects| reading.update(objects);
            let manifest = manifest.to_string();
            return store
                .read_inventory(&manifest, bucket, key, hidden, progress)
                .await;
        }
        let listing = Listing::new(&self.prefix);
        let progress = |objects| listing.update(objects);
        store.list_objects_with(bucket, key, hidden, progress).await
    }

    /// The members that an index has.
    fn members(&self, index: &Path, further: &[String]) -> Result<Objects> {
        let columns = ColumnSelection {
            value: self.column.clone(),
            further: further.to_vec(),
        };
        ShardIndex::load(index)?.samples(&columns)
    }
}
