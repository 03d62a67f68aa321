//! Samples that are members of shards, from the index that `pushdown index` made.

use std::{path::PathBuf, slice};

use clap::{Args, ValueEnum};
use pushdown_client::{ColumnSelection, Objects, SampleOrder, ShardIndex};

use crate::{
    errors::{PipelineError, Usage},
    location::{Location, expand},
};

/// Which members of an index are samples, and how they are shuffled.
#[derive(Debug, Args)]
#[command(next_help_heading = "Shards")]
pub(super) struct Indexed {
    /// List of `pushdown index`: read members of these shards instead of whole objects
    #[arg(long, value_name = "FILE")]
    index: Option<PathBuf>,
    /// Extension of the members for the pipeline [default: the first of jpg, jpeg, png and webp that a sample has]
    #[arg(long, value_name = "EXT", requires = "index")]
    column: Option<String>,
    /// Extensions of members that are read as they are, such as cls,json
    #[arg(long, value_name = "EXTS", value_delimiter = ',', requires = "index")]
    columns: Vec<String>,
    /// With --seed: shuffle all samples, or only shards and the samples in a buffer
    #[arg(long, value_name = "ORDER", value_enum, default_value_t, requires = "index")]
    order: Order,
    /// With --order shards: samples in the buffer
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "index")]
    buffer: usize,
}

// Without doc comments, for which `clap` would put each option's help on lines of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Order {
    #[default]
    Global,
    Shards,
}

impl Indexed {
    /// The samples in the shards at a location: those that a pattern names, or all under a prefix that ends in `/`. `None` without an
    /// index.
    pub(super) fn samples(&self, location: &Location) -> anyhow::Result<Option<Objects>> {
        let Some(path) = &self.index else {
            return Ok(None);
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
        let keys: Vec<String> = if location.key.is_empty() || location.key.ends_with('/') {
            let keys = index.shards().map(|(key, _etag)| key);
            let keys = keys.filter(|key| key.starts_with(&location.key));
            keys.map(str::to_owned).collect()
        } else {
            expand(slice::from_ref(location))?.1
        };
        let selection = ColumnSelection {
            value: self.column.clone(),
            further: self.columns.clone(),
        };
        let selected = index.select_shards(&keys);
        let samples = selected.and_then(|selected| selected.samples(&selection));
        Ok(Some(samples.map_err(of_library)?))
    }

    /// How the seed shuffles the samples.
    pub(super) const fn order(&self) -> SampleOrder {
        match self.order {
            Order::Global => SampleOrder::Global,
            Order::Shards => SampleOrder::Shards { buffer: self.buffer },
        }
    }
}
