//! The rows of all objects under a prefix, as one table.

use std::sync::Arc;

use clap::ValueEnum;
use pushdown::{Limits, MergeRule, Pipeline, SchemaRule, wire::Split};
use pushdown_client::store::{HiddenObjects, Store, TablesScan};

use super::{Get, output::Output, rows::TableFormat};
use crate::{connection::Randomness, errors::Usage, location::Location, progress::Listing};

/// How the columns of several tables must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Schema {
    /// The same columns, in any order
    Same,
    /// Columns missing from a table are null
    Union,
}

impl Get {
    /// Whether the location is a prefix: a bucket, or a key that ends in a slash.
    pub(super) fn is_prefix(&self) -> bool {
        let Location { key, .. } = &self.object;
        key.is_empty() || key.ends_with('/')
    }

    /// Writes the rows of all objects. Without an explicit split, the client chooses the placement.
    pub(super) async fn write_tables(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let keys = self.keys(store).await?;
        let rule = MergeRule {
            key: self.key_column,
            schema: match self.schema {
                Schema::Same => SchemaRule::Same,
                Schema::Union => SchemaRule::Union,
            },
        };
        let tables = store.tables(&self.object.bucket, keys, rule, &Limits::default());
        let Randomness { seed, epoch } = self.randomness;
        if self.plain || self.split == Split::At(0) {
            let scan = tables.scan(pipeline, seed, epoch).await;
            return self
                .write_local_tables(scan.map_err(|error| self.wrap_error(error))?, format, out)
                .await;
        }
        if self.split == Split::Smallest {
            let rows = tables.rows(pipeline, seed, epoch).await;
            return self
                .write_placed_rows(rows.map_err(|error| self.wrap_error(error))?, format, out)
                .await;
        }
        let request = self.request(pipeline, Some(format.content_type()));
        let value = tables
            .stream(&request)
            .await
            .map_err(|error| self.wrap_error(error))?;
        self.write_value(value, out).await
    }

    /// The keys of the object, or of all objects under the prefix.
    async fn keys(&self, store: &Store) -> anyhow::Result<Vec<Arc<str>>> {
        let Location { bucket, key } = &self.object;
        if !self.is_prefix() {
            return Ok(vec![key.as_str().into()]);
        }
        let listing = Listing::new(&self.object);
        let objects = store
            .list_objects_with(bucket, key, HiddenObjects::LeftOut, |objects| {
                listing.update(objects);
            })
            .await;
        drop(listing);
        let objects = objects.map_err(|error| self.wrap_error(error))?;
        if objects.is_empty() {
            return Err(Usage(format!("no objects found under {}", self.object)).into());
        }
        Ok(objects.iter().map(|object| object.key.into()).collect())
    }

    async fn write_local_tables(
        &self,
        mut scan: TablesScan,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let mut rows = self.row_writer(format, scan.schema(), out)?;
        while let Some(batch) = scan.next().await.map_err(|error| self.wrap_error(error))? {
            rows.write(&batch)?;
        }
        rows.finish()?;
        tracing::info!(estimate = ?scan.estimate(), "read");
        Ok(())
    }
}
