//! The rows of all objects under a prefix, as one table.

use std::sync::Arc;

use clap::ValueEnum;
use pushdown::{Limits, MergeRule, Pipeline, SchemaRule, wire::Split};
use pushdown_client::{Store, TablesScan};

use super::{Get, out::Out, rows::Format};
use crate::{connection::Randomness, fault::Usage, location::Location, progress::Listing};

/// What the tables of several objects have to have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Schema {
    /// The same columns in the same order
    Same,
    /// The same types; what a table lacks is null
    Union,
}

impl Get {
    /// Whether all objects under a prefix are wanted: a bucket, or what ends like a folder.
    pub(super) fn is_prefix(&self) -> bool {
        let Location { key, .. } = &self.object;
        key.is_empty() || key.ends_with('/')
    }

    /// Writes the rows of all objects to where they belong, from where they are there sooner, unless it is said where.
    pub(super) async fn several_to(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: Format,
        out: &mut Out,
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
                .several_here(scan.map_err(|error| self.fault(error))?, format, out)
                .await;
        }
        if self.split == Split::Smallest {
            let rows = tables.rows(pipeline, seed, epoch).await;
            return self
                .rows_sooner(rows.map_err(|error| self.fault(error))?, format, out)
                .await;
        }
        let what = self.what(pipeline, Some(format.content_type()));
        let value = tables.stream(&what).await.map_err(|error| self.fault(error))?;
        self.write_value(value, out).await
    }

    /// The object, or all of the prefix.
    async fn keys(&self, store: &Store) -> anyhow::Result<Vec<Arc<str>>> {
        let Location { bucket, key } = &self.object;
        if !self.is_prefix() {
            return Ok(vec![key.as_str().into()]);
        }
        let listing = Listing::of(&self.object);
        let objects = store
            .list_with(bucket, key, |objects| listing.listed(objects))
            .await;
        drop(listing);
        let objects = objects.map_err(|error| self.fault(error))?;
        if objects.is_empty() {
            return Err(Usage(format!("there is no object under {}", self.object)).into());
        }
        Ok(objects.into_iter().map(|object| object.key).collect())
    }

    async fn several_here(&self, mut scan: TablesScan, format: Format, out: &mut Out) -> anyhow::Result<()> {
        let mut rows = self.rows_into(format, scan.schema(), out)?;
        while let Some(batch) = scan.next().await.map_err(|error| self.fault(error))? {
            rows.write(&batch)?;
        }
        rows.finish()?;
        tracing::info!(estimate = ?scan.estimate(), "read");
        Ok(())
    }
}
