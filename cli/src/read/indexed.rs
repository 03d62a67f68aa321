//! Samples that are members of shards: from the index that `pushdown index` made, or whole shards in their order.

use std::{path::PathBuf, slice};

use clap::{Args, ValueEnum};
use pushdown_client::{
    reader::SampleOrder,
    shards::{ColumnSelection, ShardIndex},
    store::Objects,
};

use crate::{
    errors::{PipelineError, Usage},
    location::{Location, expand},
};

/// Which members of shards are samples, and how they are shuffled.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shards")]
pub(super) struct Indexed {
    /// List of `pushdown index`: read members of these shards instead of whole objects
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// Extension of the members for the pipeline [default: the first of jpg, jpeg, png and webp that a sample has]
    #[arg(long, value_name = "EXT")]
    column: Option<String>,
    /// Extensions of members that are read as they are, such as cls,json
    #[arg(long, value_name = "EXTS", value_delimiter = ',')]
    columns: Vec<String>,
    /// With --seed: shuffle all samples, or only shards and the samples in a buffer, for which tars need no --index
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    order: Order,
    /// With --order shards: samples in the buffer
    #[arg(long, value_name = "N", default_value_t = 1000)]
    buffer: usize,
}

// Without doc comments, for which `clap` would put each option's help on lines of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    #[default]
    Global,
    Shards,
}

/// What is read.
#[derive(Debug)]
pub(super) enum DataSet {
    /// The objects under the prefix.
    Prefix,
    /// Members of an index.
    Members(Objects),
    /// Whole shards: these, or all under the prefix.
    Shards {
        keys: Option<Vec<String>>,
        columns: ColumnSelection,
    },
}

impl Indexed {
    /// What is read at a location. Shards are those that a pattern names, or all under a prefix that ends in `/`.
    pub(super) fn data_set(&self, location: &Location) -> anyhow::Result<DataSet> {
        let columns = ColumnSelection {
            value: self.column.clone(),
            further: self.columns.clone(),
        };
        let is_prefix = location.key.is_empty() || location.key.ends_with('/');
        let Some(path) = &self.index else {
            return match self.order {
                Order::Shards => {
                    let keys = (!is_prefix).then(|| expand(slice::from_ref(location)));
                    let keys = keys.transpose()?.map(|(_bucket, keys)| keys);
                    Ok(DataSet::Shards { keys, columns })
                }
                Order::Global if columns != ColumnSelection::default() => {
                    Err(Usage("--column and --columns require --index or --order shards".to_owned()).into())
                }
                Order::Global => Ok(DataSet::Prefix),
            };
        };
        let of_library = |error| PipelineError::wrap("", error);
        let index = ShardIndex::load(path).map_err(of_library)?;
        if location.bucket != index.bucket() {
            let text = format!(
                "the index {} has shards of the bucket {}, found {location}",
                path.display(),
                index.bucket()
            );
            return Err(Usage(text).into());
        }
        let keys: Vec<String> = if is_prefix {
            let keys = index.shards().map(|(key, _etag)| key);
            let keys = keys.filter(|key| key.starts_with(&location.key));
            keys.map(str::to_owned).collect()
        } else {
            expand(slice::from_ref(location))?.1
        };
        let selected = index.select_shards(&keys);
        let samples = selected.and_then(|selected| selected.samples(&columns));
        Ok(DataSet::Members(samples.map_err(of_library)?))
    }

    /// How the seed shuffles the samples.
    pub(super) const fn order(&self) -> SampleOrder {
        match self.order {
            Order::Global => SampleOrder::Global,
            Order::Shards => SampleOrder::Shards { buffer: self.buffer },
        }
    }
}
