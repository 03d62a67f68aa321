//! How many of the rows that are read a condition likely holds for.

use std::{cmp::Ordering, sync::Arc};

use ::parquet::{arrow::arrow_reader::statistics::StatisticsConverter, file::metadata::RowGroupMetaData};
use arrow_array::Array;
use arrow_schema::Schema;
use datafusion::{
    common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision},
    logical_expr::interval_arithmetic::{Interval, cardinality_ratio},
    physical_expr::{AnalysisContext, PhysicalExpr, analyze, utils::collect_columns},
};

use super::parquet::ParquetFile;

/// The rows of `groups` that `predicate` holds for, if the values of each column are spread evenly between the least and the
/// greatest one; all where nothing is known.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate from 0 to all of them"
)]
pub(super) fn expected_rows(file: &ParquetFile, groups: &[usize], predicate: &Arc<dyn PhysicalExpr>) -> u64 {
    let all = file.metadata().metadata().row_groups();
    let counts = groups
        .iter()
        .filter_map(|group| u64::try_from(all.get(*group)?.num_rows()).ok());
    let rows = counts.fold(0, u64::saturating_add);
    let part = part(file, groups, predicate).unwrap_or(1.0);
    ((rows as f64 * part.clamp(0.0, 1.0)).ceil() as u64).min(rows)
}

fn part(file: &ParquetFile, groups: &[usize], predicate: &Arc<dyn PhysicalExpr>) -> Option<f64> {
    let schema = file.schema();
    let mut statistics = Statistics::unknown_column(schema);
    for column in collect_columns(predicate) {
        // Places of rows are not stored.
        let known = statistics.get_mut(column.index())?;
        if let Some((least, greatest)) = range(file, groups, column.name()) {
            known.min_value = Precision::Inexact(least);
            known.max_value = Precision::Inexact(greatest);
        }
    }
    selectivity(predicate, schema, &statistics)
}

fn selectivity(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    statistics: &[ColumnStatistics],
) -> Option<f64> {
    let all = AnalysisContext::try_from_statistics(schema, statistics).ok()?;
    let left = analyze(predicate, all.clone(), schema).ok()?;
    let pairs = all.boundaries.iter().zip(&left.boundaries);
    let by_width = pairs.filter_map(|(all, left)| by_width(all.interval.as_ref()?, left.interval.as_ref()?));
    Some(left.selectivity? * by_width.product::<f64>())
}

/// What makes the part that is left of a floating-point column one by width. The engine takes it by how many such numbers there
/// are in an interval: of those from 0 to 1, 0.02 % are above 0.8.
fn by_width(all: &Interval, left: &Interval) -> Option<f64> {
    let width = |interval: &Interval| match (interval.lower(), interval.upper()) {
        (ScalarValue::Float32(Some(lower)), ScalarValue::Float32(Some(upper))) => {
            Some(f64::from(*upper) - f64::from(*lower))
        }
        (ScalarValue::Float64(Some(lower)), ScalarValue::Float64(Some(upper))) => Some(upper - lower),
        _ => None,
    };
    let part = width(left)? / width(all)? / cardinality_ratio(all, left);
    part.is_finite().then_some(part)
}

/// The least and the greatest value of a column, where all of the row groups tell theirs.
fn range(file: &ParquetFile, groups: &[usize], column: &str) -> Option<(ScalarValue, ScalarValue)> {
    let metadata = file.metadata();
    let converter = StatisticsConverter::try_new(column, file.schema(), metadata.parquet_schema()).ok()?;
    let all = metadata.metadata().row_groups();
    let groups: Vec<&RowGroupMetaData> = groups.iter().filter_map(|group| all.get(*group)).collect();
    let least = converter.row_group_mins(groups.iter().copied()).ok()?;
    let greatest = converter.row_group_maxes(groups.iter().copied()).ok()?;
    let outermost = |values: &dyn Array, beyond: Ordering| {
        let mut outermost: Option<ScalarValue> = None;
        for group in 0..values.len() {
            let value = ScalarValue::try_from_array(values, group)
                .ok()
                .filter(|value| !value.is_null())?;
            let replaces = |found: &ScalarValue| value.partial_cmp(found) == Some(beyond);
            if outermost.as_ref().is_none_or(replaces) {
                outermost = Some(value);
            }
        }
        outermost
    };
    Some((
        outermost(&least, Ordering::Less)?,
        outermost(&greatest, Ordering::Greater)?,
    ))
}
