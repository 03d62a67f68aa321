//! From settings to a reader of rows: footers, the condition, and where the steps run.

use std::sync::Arc;

use arrow_array::{cast::AsArray as _, types::Int64Type};
use arrow_schema::SchemaRef;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use pushdown::{Description, Estimate, Pipeline, wire::Split};

use super::{
    State, TableReader,
    outgrown::Outgrown,
    read::{Rows, Source, over},
    space::{Space, Unit},
};
use crate::{
    error::{Error, ErrorKind, Result},
    reader::Plan,
    session::Mode,
};

/// The column of places in what is asked of a condition.
const PLACE: &str = "pushdown row number";
/// The most rows of a row group: each has a bit where there is a condition, and a number where they are shuffled. A footer
/// may claim any.
const MAX_GROUP_ROWS: u64 = 1 << 28;
/// Row groups that are looked at to decide where the steps run.
const LOOKED_AT: usize = 8;

/// How a reader of rows reads.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) pipeline: Pipeline,
    pub(crate) mode: Mode,
    pub(crate) split: Split,
    pub(crate) plan: Plan,
    /// Objects asked for at a time before rows flow.
    pub(crate) gets: usize,
}

impl TableReader {
    /// Reads footers, and finds out which rows fulfil the condition.
    pub(crate) async fn open(source: Source, settings: Settings) -> Result<Self> {
        let pipeline = &settings.pipeline;
        if let Err(reason) = pipeline.check_row_preserving() {
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
        let cheaper = source.cheaper(&settings, &units).await?;
        let stage = fixed.unwrap_or(cheaper.stage);
        let chosen = fixed.is_none() && stage > 0;
        let rows = Rows {
            stage,
            outgrown: chosen.then(|| Outgrown::new(cheaper.read_row_bytes)),
            space: Space::new(units, cheaper.row_bytes),
            pipeline: settings.pipeline,
            source,
            schema,
        };
        Ok(Self {
            rows: Arc::new(rows),
            plan: settings.plan,
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
            if let Some(found) = misfit(description, first, &self.objects[0].key) {
                let text = format!("s3://{}/{}: {found}", self.bucket, object.key);
                return Err(Error::new(ErrorKind::Sample, text));
            }
        }
        Ok(described)
    }

    /// The row groups with rows that fulfil the condition, which is evaluated at the gateway or, at stage 0, here.
    async fn units(&self, settings: &Settings, described: &[Description], stage: usize) -> Result<Vec<Unit>> {
        let groups = |object: usize| described[object].row_groups.as_deref().unwrap_or_default();
        let all = (0..described.len()).map(|object| Unit::of_object(object, groups(object)));
        let units = if settings.pipeline.condition().is_none() {
            all.flatten().collect::<Vec<_>>()
        } else {
            let places = settings.pipeline.matching_rows(PLACE);
            let places = places.ok_or_else(|| Error::internal("conditions are those of `select`"))?;
            let places = &places;
            let kept = all.enumerate().map(|(object, units)| async move {
                let found = self.places(object, places, stage, settings.plan.epoch).await?;
                Ok::<_, Error>(
                    units
                        .into_iter()
                        .map(|unit| unit.keep(&found))
                        .collect::<Vec<_>>(),
                )
            });
            let kept: Vec<_> = stream::iter(kept)
                .buffered(settings.plan.requests)
                .try_collect()
                .await?;
            kept.into_iter().flatten().collect()
        };
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
        let scan = self.tables[0]
            .scan(&nothing, self.seed, settings.plan.epoch)
            .await?;
        Ok(SchemaRef::clone(scan.schema()))
    }

    /// Where fewer bytes travel, by the footers of some row groups, and by what is known of the condition.
    async fn cheaper(&self, settings: &Settings, units: &[Unit]) -> Result<Cheaper> {
        let (mut rows, mut stored_rows, mut all) = (
            0_u64,
            0_u64,
            Estimate {
                scan_bytes: Some(0),
                expected_output_bytes: Some(0),
                ..Estimate::default()
            },
        );
        for unit in units.iter().step_by(units.len().div_ceil(LOOKED_AT).max(1)) {
            let over = over(&settings.pipeline, unit.rows())?;
            let scan = self.tables[unit.object()]
                .scan(&over, self.seed, settings.plan.epoch)
                .await?;
            let of = scan.estimate();
            let left = of.output_bytes.zip(of.max_rows).map(|(bytes, of)| {
                let bytes = u128::from(bytes) * u128::from(unit.count()) / u128::from(of.max(1));
                u64::try_from(bytes).unwrap_or(u64::MAX)
            });
            let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
            rows = rows.saturating_add(unit.count());
            let range = unit.rows();
            stored_rows = stored_rows.saturating_add(range.end.saturating_sub(range.start));
            all.scan_bytes = sum(all.scan_bytes, of.scan_bytes);
            all.expected_output_bytes = sum(all.expected_output_bytes, left);
        }
        // What `each` makes of values may be any number of bytes.
        let stage = if all.expected_output_bytes.is_some() && all.is_reducing() {
            settings.pipeline.len()
        } else {
            0
        };
        Ok(Cheaper {
            stage,
            row_bytes: all.expected_output_bytes.or(all.scan_bytes).unwrap_or_default() / rows.max(1),
            read_row_bytes: all.scan_bytes.unwrap_or_default().div_ceil(stored_rows.max(1)),
        })
    }
}

/// What travels where fewer bytes do.
struct Cheaper {
    /// The rows of the whole pipeline, or columns as they are stored, stage 0.
    stage: usize,
    /// Bytes of a row that fulfils the condition.
    row_bytes: u64,
    /// Bytes that are read for a row of an object, if rows are made here.
    read_row_bytes: u64,
}

/// Why the rows of an object cannot be samples beside those of the first one.
fn misfit(description: &Description, first: &Description, first_key: &str) -> Option<String> {
    let Some(groups) = &description.row_groups else {
        let format = description.format.name();
        return Some(format!(
            "found {format}, expected Parquet: rows are read by row groups"
        ));
    };
    if let Some(rows) = groups.iter().max().filter(|rows| **rows > MAX_GROUP_ROWS) {
        return Some(format!(
            "found a row group of {rows} rows, expected at most {MAX_GROUP_ROWS}"
        ));
    }
    (description.schema.fields() != first.schema.fields()).then(|| {
        format!(
            "found the columns {}, expected those of {first_key}: {}",
            description.schema, first.schema
        )
    })
}

#[cfg(test)]
mod tests {
    use arrow_schema::Schema;
    use pushdown::step::table::Format;

    use super::*;

    #[test]
    fn a_footer_that_claims_too_many_rows_is_refused() {
        let of = |rows| Description {
            format: Format::Parquet,
            schema: Arc::new(Schema::empty()),
            object_bytes: 100,
            rows: None,
            row_groups: Some(vec![1, rows]),
        };
        let most = of(MAX_GROUP_ROWS);
        assert_eq!(misfit(&most, &most, "k"), None);
        let found = misfit(&of(MAX_GROUP_ROWS + 1), &most, "k").unwrap();
        assert_eq!(
            found,
            "found a row group of 268435457 rows, expected at most 268435456"
        );
    }
}
