//! From settings to a reader of rows: footers, the condition, and where the steps run.

use std::sync::Arc;

use arrow_array::{cast::AsArray as _, types::Int64Type};
use arrow_schema::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use pushdown::{Description, Estimate, Pipeline, wire::Split};

use super::{
    Plan, State, TableReader,
    read::{Rows, Source, over},
    space::{Space, Unit},
};
use crate::{
    error::{Error, ErrorKind, Result},
    order::Shard,
    session::Mode,
};

/// The column of places in what is asked of a condition.
const PLACE: &str = "pushdown row number";
/// Row groups that are looked at to decide where the steps run.
const LOOKED_AT: usize = 8;

/// How a reader of rows reads.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) pipeline: Pipeline,
    pub(crate) mode: Mode,
    pub(crate) split: Split,
    pub(crate) batch_size: usize,
    pub(crate) shard: Shard,
    pub(crate) shuffle_seed: Option<u64>,
    pub(crate) epoch: u32,
    pub(crate) start: usize,
    pub(crate) prefetch_bytes: u64,
    pub(crate) requests: usize,
    /// Objects asked for at a time before rows flow.
    pub(crate) gets: usize,
}

impl TableReader {
    /// Reads footers, and finds out which rows fulfil the condition.
    pub(crate) async fn open(source: Source, settings: Settings) -> Result<Self> {
        let pipeline = &settings.pipeline;
        if let Some(reason) = pipeline.no_row_for_row() {
            return Err(Error::config(format!(
                "the rows of `{pipeline}` cannot be samples: {reason}"
            )));
        }
        let described = source.describe(settings.gets).await?;
        let fixed = match (settings.mode, settings.split) {
            (Mode::Plain, _) => Some(0),
            (_, Split::At(stage)) => Some(usize::from(stage)),
            (_, Split::Full) => Some(pipeline.len()),
            (_, Split::Smallest) => None,
        };
        let units = source
            .units(&settings, &described, fixed.unwrap_or(1).min(1))
            .await?;
        let schema = source.schema(&settings).await?;
        let (cheaper, row_bytes) = source.cheaper(&settings, &units).await?;
        let rows = Rows {
            stage: fixed.unwrap_or(cheaper),
            space: Space::new(units, row_bytes),
            pipeline: settings.pipeline,
            source,
            schema,
        };
        Ok(Self {
            rows: Arc::new(rows),
            plan: Plan {
                batch_size: settings.batch_size,
                shard: settings.shard,
                shuffle_seed: settings.shuffle_seed,
                epoch: settings.epoch,
                start: settings.start,
                prefetch_bytes: settings.prefetch_bytes,
                requests: settings.requests,
            },
            state: State::Idle,
            waiting_since: None,
        })
    }
}

impl Source {
    /// What all objects say of themselves: Parquet, and of the same columns.
    async fn describe(&self, gets: usize) -> Result<Vec<Description>> {
        let descriptions = self
            .tables
            .iter()
            .map(|table| async move { table.describe().await });
        let described: Vec<Description> = stream::iter(descriptions).buffered(gets).try_collect().await?;
        let first = described.first().ok_or_else(|| {
            Error::config("the data set has no objects, so that nothing is known of its columns")
        })?;
        for (object, description) in self.objects.iter().zip(&described) {
            let misfit = |found: String| {
                let text = format!("s3://{}/{}: {found}", self.bucket, object.key);
                Err(Error::new(ErrorKind::Sample, text))
            };
            if description.row_groups.is_none() {
                let format = description.format.name();
                return misfit(format!(
                    "found {format}, expected Parquet: rows are read by row groups"
                ));
            }
            if description.schema.fields() != first.schema.fields() {
                return misfit(format!(
                    "found the columns {}, expected those of {}: {}",
                    description.schema, self.objects[0].key, first.schema
                ));
            }
        }
        Ok(described)
    }

    /// The row groups with rows that fulfil the condition, which is evaluated at the gateway or, at stage 0, here.
    async fn units(&self, settings: &Settings, described: &[Description], stage: usize) -> Result<Vec<Unit>> {
        let groups = |object: usize| described[object].row_groups.as_deref().unwrap_or_default();
        let all = (0..described.len()).map(|object| Unit::of_object(object, groups(object)));
        let too_long = |unit: &Unit| u32::try_from(unit.rows().end - unit.rows().start).is_err();
        let units = if settings.pipeline.condition().is_none() {
            all.flatten().collect::<Vec<_>>()
        } else {
            let places = settings.pipeline.places(PLACE);
            let places = places.ok_or_else(|| Error::internal("conditions are those of `select`"))?;
            let places = &places;
            let kept = all.enumerate().map(|(object, units)| async move {
                let found = self.places(object, places, stage, settings.epoch).await?;
                Ok::<_, Error>(
                    units
                        .into_iter()
                        .map(|unit| unit.keep(&found))
                        .collect::<Vec<_>>(),
                )
            });
            let kept: Vec<_> = stream::iter(kept)
                .buffered(settings.requests)
                .try_collect()
                .await?;
            kept.into_iter().flatten().collect()
        };
        if let Some(unit) = units.iter().find(|unit| too_long(unit)) {
            return Err(Error::config(format!(
                "s3://{}/{} has a row group of more than {} rows",
                self.bucket,
                self.objects[unit.object()].key,
                u32::MAX
            )));
        }
        Ok(units.into_iter().filter(|unit| unit.count() > 0).collect())
    }

    async fn places(&self, object: usize, places: &Pipeline, stage: usize, epoch: u32) -> Result<Vec<u64>> {
        let table = self.table(object, places, stage, epoch).await?;
        let mut found = Vec::new();
        for batch in table.batches() {
            let column = batch.column_by_name(PLACE);
            let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
            let column =
                column.ok_or_else(|| Error::protocol("the gateway answered places with other columns"))?;
            found.extend(
                column
                    .values()
                    .iter()
                    .filter_map(|place| u64::try_from(*place).ok()),
            );
        }
        if !found.is_sorted() {
            return Err(Error::protocol("the gateway answered places that do not ascend"));
        }
        Ok(found)
    }

    /// The columns that the pipeline makes.
    async fn schema(&self, settings: &Settings) -> Result<SchemaRef> {
        let nothing = over(&settings.pipeline, 0..0)?;
        let scan = self.tables[0].scan(&nothing, self.seed, settings.epoch).await?;
        Ok(SchemaRef::clone(scan.schema()))
    }

    /// Where fewer bytes travel, the rows of the whole pipeline or columns as they are stored; and bytes of a row. By the
    /// footers of some row groups, and by what is known of the condition.
    async fn cheaper(&self, settings: &Settings, units: &[Unit]) -> Result<(usize, u64)> {
        let (mut rows, mut all) = (
            0_u64,
            Estimate {
                read: Some(0),
                likely: Some(0),
                ..Estimate::default()
            },
        );
        for unit in units.iter().step_by(units.len().div_ceil(LOOKED_AT).max(1)) {
            let over = over(&settings.pipeline, unit.rows())?;
            let scan = self.tables[unit.object()]
                .scan(&over, self.seed, settings.epoch)
                .await?;
            let of = scan.estimate();
            let left = of.answer.zip(of.rows).map(|(bytes, of)| {
                let bytes = u128::from(bytes) * u128::from(unit.count()) / u128::from(of.max(1));
                u64::try_from(bytes).unwrap_or(u64::MAX)
            });
            let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
            rows = rows.saturating_add(unit.count());
            all.read = sum(all.read, of.read);
            all.likely = sum(all.likely, left);
        }
        let stage = if all.rows_are_fewer_bytes() {
            settings.pipeline.len()
        } else {
            0
        };
        Ok((stage, all.likely.or(all.read).unwrap_or_default() / rows.max(1)))
    }
}
