//! Builds a reader of rows: footers, the condition, and where the steps run.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{cast::AsArray as _, types::Int64Type};
use arrow_schema::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use pushdown::{
    Description, Pipeline,
    wire::{Features, Split},
};
use tokio::runtime::Handle;

use super::{
    RowsRead, TableReader,
    columns::Columns,
    fallback::Fallback,
    read::{RowReader, over},
    row_groups::{RowGroup, SampleRows},
    rows_left::RowsLeft,
    source::{TableSource, is_refusal},
    splits::RowSplit,
};
use crate::{
    epoch::{EpochStream, ReadPlan},
    error::{Error, ErrorKind, Result},
    planning::{ExpansionGuard, Mode, Observations, ReaderSize, RowGroupCosts, RowPlanner},
    weights::models_of,
};

/// Name of the column of row numbers in the evaluation of a condition.
const ROW_NUMBER: &str = "pushdown row number";
/// The most rows of a row group. Each row takes a bit if there is a condition, and a number if rows are shuffled, and a footer
/// may claim any number.
const MAX_GROUP_ROWS: u64 = 1 << 28;
/// Row groups whose footers decide where the steps run.
const SAMPLED_GROUPS: usize = 8;

/// Settings of a reader of rows.
#[derive(Debug)]
pub(crate) struct TableSettings {
    pub(crate) pipeline: Pipeline,
    pub(crate) mode: Mode,
    pub(crate) split: Split,
    pub(crate) plan: ReadPlan,
    /// What earlier worlds have read of the first epoch, merged.
    pub(crate) rows_read: Vec<RowsRead>,
    /// Objects opened concurrently before rows are read.
    pub(crate) gets: usize,
    /// What the planner of an earlier reader has observed.
    pub(crate) observations: Option<Box<Observations>>,
}

impl TableReader {
    /// Reads footers, and evaluates the condition.
    pub(crate) async fn open(source: TableSource, settings: TableSettings) -> Result<Self> {
        let pipeline = &settings.pipeline;
        if let Err(reason) = pipeline.check_row_preserving() {
            return Err(Error::config(format!(
                "the rows of `{pipeline}` cannot be samples: {reason}"
            )));
        }
        let described = source.describe(settings.gets).await?;
        let columns = source.columns(&settings, &described).await?;
        let splits = RowSplit::all(pipeline);
        let (fixed, can_cut) = source.fixed_split(&settings, &splits).await;
        let groups = source
            .row_groups(&settings, &described, fixed.unwrap_or(1).min(1))
            .await?;
        let costs = source.costs(&settings, &splits, &groups).await?;
        let first_split = source.first_split(&splits).await?;
        let is_possible = |index: usize| index >= first_split && (can_cut || !splits[index].is_inside_each());
        let split = match (fixed, costs.smallest_split(is_possible)) {
            (Some(fixed), _) => fixed,
            // This host cannot run models.
            (None, 0) if first_split > 0 => splits.len() - 1,
            (None, smallest) => smallest,
        };
        let is_chosen = fixed.is_none() && first_split == 0 && split > 0;
        let bytes = costs.split_bytes();
        let falls_back = is_chosen && settings.mode == Mode::Auto;
        let size = ReaderSize {
            threads: source.cpu.threads(),
            ranks: settings.plan.rank.world(),
        };
        let planner = || {
            let stages: Vec<_> = splits.iter().map(|split| split.stage).collect();
            let planner = RowPlanner::new(pipeline, &stages, is_possible, split, &bytes, size)?;
            Some(match settings.observations {
                Some(known) => planner.with_observations(*known),
                None => planner,
            })
        };
        let weight_download = falls_back.then(|| source.store.download_weights(pipeline.steps()));
        let rows = RowReader {
            expansion_guard: is_chosen.then(|| ExpansionGuard::new(bytes.read_row_bytes)),
            planner: falls_back.then(planner).flatten(),
            fallback: falls_back.then(Fallback::default),
            samples: SampleRows::new(groups),
            first_rows: first_rows(&described),
            source,
            splits,
            mode: settings.mode,
            split,
            bytes,
            columns,
        };
        Ok(Self {
            left: RowsLeft::new(rows.samples.len(), &settings.rows_read),
            rows_read: settings.rows_read,
            rows: Arc::new(rows),
            plan: settings.plan,
            runtime: Handle::current(),
            stream: EpochStream::new(),
            _weight_download: weight_download.flatten(),
        })
    }
}

impl TableSource {
    /// Reads the descriptions of all objects, and checks that they are Parquet.
    async fn describe(&self, gets: usize) -> Result<Vec<Description>> {
        let descriptions = self
            .tables
            .iter()
            .map(|table| async move { table.describe().await });
        let described: Vec<Description> = stream::iter(descriptions).buffered(gets).try_collect().await?;
        if described.is_empty() {
            return Err(Error::config(
                "the data set has no objects: expected at least one to determine the columns",
            ));
        }
        for (object, description) in self.objects.iter().zip(&described) {
            if let Some(found) = mismatch(description) {
                let text = format!("s3://{}/{}: {found}", self.objects.bucket(), object.key);
                return Err(Error::new(ErrorKind::Sample, text));
            }
        }
        Ok(described)
    }

    /// The row groups with rows that satisfy the condition. It is evaluated at the gateway or, at stage 0, on this host.
    async fn row_groups(
        &self,
        settings: &TableSettings,
        described: &[Description],
        stage: usize,
    ) -> Result<Vec<RowGroup>> {
        let sizes = |object: usize| described[object].row_groups.as_deref().unwrap_or_default();
        let all = (0..described.len()).map(|object| RowGroup::of_object(object, sizes(object)));
        let groups = if settings.pipeline.condition().is_none() {
            all.flatten().collect::<Vec<_>>()
        } else {
            let condition = settings.pipeline.matching_rows(ROW_NUMBER);
            let condition = condition.ok_or_else(|| Error::internal("only `select` can have a condition"))?;
            let condition = &condition;
            let selected = all.enumerate().map(|(object, groups)| async move {
                let rows = self
                    .row_numbers(object, condition, stage, settings.plan.epoch)
                    .await?;
                Ok::<_, Error>(
                    groups
                        .into_iter()
                        .map(|group| group.select(&rows))
                        .collect::<Vec<_>>(),
                )
            });
            let selected: Vec<_> = stream::iter(selected)
                .buffered(settings.plan.requests)
                .try_collect()
                .await?;
            selected.into_iter().flatten().collect()
        };
        Ok(groups.into_iter().filter(|group| group.count() > 0).collect())
    }

    /// The numbers of the rows that satisfy the condition, ascending.
    async fn row_numbers(
        &self,
        object: usize,
        condition: &Pipeline,
        stage: usize,
        epoch: u32,
    ) -> Result<Vec<u64>> {
        let is_dispensable = self.engine.is_some() && self.store.is_gateway_dispensable(condition.steps());
        let stage = if is_dispensable && !self.store.gateway_serves() {
            0
        } else {
            stage
        };
        let route = self.route(object).dispensable_if(is_dispensable);
        let (table, _) = match self.rows(object, condition, stage, epoch, None, route).await {
            Err(error) if stage > 0 && is_dispensable && error.is_retryable() => {
                self.rows(object, condition, 0, epoch, None, route).await
            }
            Err(error) if stage > 0 && self.engine.is_some() && is_refusal(&error) => {
                tracing::warn!(%error, "the condition is evaluated on this host");
                self.rows(object, condition, 0, epoch, None, route).await
            }
            read => read,
        }?;
        let mut found = Vec::new();
        for batch in table.batches() {
            let column = batch.column_by_name(ROW_NUMBER);
            let column = column.and_then(|column| column.as_primitive_opt::<Int64Type>());
            let column = column.ok_or_else(|| {
                Error::protocol("invalid row numbers from the gateway: expected an int64 column")
            })?;
            found.extend(
                column
                    .values()
                    .iter()
                    .filter_map(|number| u64::try_from(*number).ok()),
            );
        }
        if !found.is_sorted() {
            return Err(Error::protocol(
                "invalid row numbers from the gateway: expected ascending numbers",
            ));
        }
        Ok(found)
    }

    /// The columns of the pipeline's result, planned once for objects with the same stored columns.
    async fn columns(&self, settings: &TableSettings, described: &[Description]) -> Result<Columns> {
        let nothing = &over(&settings.pipeline, 0..0)?;
        let (mut known, mut first_objects) = (HashMap::new(), Vec::new());
        let index = |(object, description): (usize, &Description)| {
            *known
                .entry(description.schema.fields().clone())
                .or_insert_with(|| {
                    first_objects.push(object);
                    first_objects.len() - 1
                })
        };
        let of_object = described.iter().enumerate().map(index).collect();
        let planned = first_objects.into_iter().map(|object| async move {
            let table = &self.tables[object];
            let scan = table.scan(nothing, self.seed, settings.plan.epoch).await?;
            Ok::<_, Error>((object, SchemaRef::clone(scan.schema())))
        });
        let distinct = stream::iter(planned)
            .buffered(settings.gets)
            .try_collect()
            .await?;
        Columns::merge(&self.objects, distinct, of_object, self.limits.tables.max_columns)
    }

    /// The split that follows from the settings and the endpoint alone, and whether the gateway runs parts of an `each`.
    async fn fixed_split(&self, settings: &TableSettings, splits: &[RowSplit]) -> (Option<usize>, bool) {
        let fixed = match settings.mode {
            Mode::Plain => Some(0),
            Mode::Auto | Mode::Pushdown => RowSplit::fixed(splits, settings.split),
        };
        let has_inner_stages = splits.iter().any(RowSplit::is_inside_each);
        if fixed.is_some() || settings.mode == Mode::Pushdown && !has_inner_stages {
            return (fixed, false);
        }
        let features = self.store.ask_for_features().await;
        let is_lost = features == Features::default() && !self.store.probe_gateway().await;
        // A store lists nothing. A gateway beside it that does not serve may come back.
        let is_plain = settings.mode == Mode::Auto && features == Features::default() && !is_lost;
        (is_plain.then_some(0), features.has(Features::EACH_PARTS))
    }

    /// The first split from which this host can run the rest of the pipeline: one after all models, if it cannot run models.
    async fn first_split(&self, splits: &[RowSplit]) -> Result<usize> {
        let splits = splits.to_vec();
        let runs_on_host = |split: &RowSplit| {
            let mut models = models_of(&split.pipeline.steps()[split.steps..]).into_iter();
            models.all(|model| model.runtime_identity().is_ok())
        };
        let first = self.cpu.run(move || splits.iter().position(runs_on_host)).await?;
        Ok(first.unwrap_or_default())
    }

    /// The bytes of rows at each split, by the footers of some row groups and the selectivity of the condition.
    async fn costs(
        &self,
        settings: &TableSettings,
        splits: &[RowSplit],
        groups: &[RowGroup],
    ) -> Result<RowGroupCosts> {
        let mut costs = RowGroupCosts::new(splits.len());
        for group in groups
            .iter()
            .step_by(groups.len().div_ceil(SAMPLED_GROUPS).max(1))
        {
            let mut estimates = Vec::new();
            for split in splits.iter().filter(|split| !split.is_local()) {
                let over = over(&split.pipeline, group.rows())?;
                let scan = self.tables[group.object()].scan_steps(
                    &over,
                    split.steps,
                    self.seed,
                    settings.plan.epoch,
                );
                estimates.push(*scan.await?.estimate());
            }
            let range = group.rows();
            let stored_rows = range.end.saturating_sub(range.start);
            costs.add(group.count(), stored_rows, &estimates);
        }
        Ok(costs)
    }
}

/// Rows of the objects before each object.
fn first_rows(described: &[Description]) -> Vec<u64> {
    let rows = described.iter().scan(0_u64, |first, description| {
        let rows = description.row_groups.iter().flatten();
        let before = *first;
        *first = rows.fold(before, |sum, rows| sum.saturating_add(*rows));
        Some(before)
    });
    rows.collect()
}

/// Why the rows of an object cannot be samples.
fn mismatch(description: &Description) -> Option<String> {
    let Some(groups) = &description.row_groups else {
        let format = description.format.name();
        return Some(format!(
            "found {format}, expected Parquet: rows are read by row groups"
        ));
    };
    let rows = groups.iter().max().filter(|rows| **rows > MAX_GROUP_ROWS)?;
    Some(format!(
        "found a row group of {rows} rows, expected at most {MAX_GROUP_ROWS}"
    ))
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;
    use pushdown::step::table::Format;

    use super::*;

    #[test]
    fn a_footer_that_claims_too_many_rows_is_refused() {
        let described = |rows| Description {
            format: Format::Parquet,
            schema: Arc::new(Schema::empty()),
            object_bytes: 100,
            rows: None,
            row_groups: Some(vec![1, rows]),
        };
        assert_eq!(mismatch(&described(MAX_GROUP_ROWS)), None);
        let found = mismatch(&described(MAX_GROUP_ROWS + 1)).unwrap();
        assert_eq!(
            found,
            "found a row group of 268435457 rows, expected at most 268435456"
        );
    }
}
