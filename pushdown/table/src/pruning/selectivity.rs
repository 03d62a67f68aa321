//! Estimates how many rows fulfil a condition.

use std::{cmp::Ordering, sync::Arc};

use ::parquet::{arrow::arrow_reader::statistics::StatisticsConverter, file::metadata::RowGroupMetaData};
use arrow_array::Array;
use arrow_schema::Schema;
use datafusion::{
    common::{ColumnStatistics, ScalarValue, Statistics, stats::Precision},
    logical_expr::interval_arithmetic::{Interval, cardinality_ratio},
    physical_expr::{AnalysisContext, PhysicalExpr, analyze, utils::collect_columns},
};

use crate::formats::parquet::ParquetFile;

/// Estimated number of rows in the row groups `groups` that fulfil `predicate`, assuming that the values of each column are
/// spread evenly between its minimum and maximum. All rows if there are no statistics.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate, clamped to the number of rows"
)]
pub(crate) fn expected_rows(file: &ParquetFile, groups: &[usize], predicate: &Arc<dyn PhysicalExpr>) -> u64 {
    let all = file.metadata().metadata().row_groups();
    let counts = groups
        .iter()
        .filter_map(|group| u64::try_from(all.get(*group)?.num_rows()).ok());
    let rows = counts.fold(0, u64::saturating_add);
    let ratio = selectivity_ratio(file, groups, predicate).unwrap_or(1.0);
    ((rows as f64 * ratio.clamp(0.0, 1.0)).ceil() as u64).min(rows)
}

fn selectivity_ratio(file: &ParquetFile, groups: &[usize], predicate: &Arc<dyn PhysicalExpr>) -> Option<f64> {
    let schema = file.schema();
    let mut statistics = Statistics::unknown_column(schema);
    for column in collect_columns(predicate) {
        // Fails for the column of row numbers, which is not stored.
        let column_statistics = statistics.get_mut(column.index())?;
        if let Some((min, max)) = column_bounds(file, groups, column.name()) {
            column_statistics.min_value = Precision::Inexact(min);
            column_statistics.max_value = Precision::Inexact(max);
        }
    }
    analyze_selectivity(predicate, schema, &statistics)
}

fn analyze_selectivity(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    statistics: &[ColumnStatistics],
) -> Option<f64> {
    let all = AnalysisContext::try_from_statistics(schema, statistics).ok()?;
    let selected = analyze(predicate, all.clone(), schema).ok()?;
    let pairs = all.boundaries.iter().zip(&selected.boundaries);
    let corrections = pairs
        .filter_map(|(all, selected)| width_correction(all.interval.as_ref()?, selected.interval.as_ref()?));
    Some(selected.selectivity? * corrections.product::<f64>())
}

/// Converts the engine's ratio for a floating-point column to a ratio of interval widths. The engine counts the representable
/// numbers in an interval: of those from 0 to 1, only 0.02 % are above 0.8.
fn width_correction(all: &Interval, selected: &Interval) -> Option<f64> {
    let width = |interval: &Interval| match (interval.lower(), interval.upper()) {
        (ScalarValue::Float32(Some(lower)), ScalarValue::Float32(Some(upper))) => {
            Some(f64::from(*upper) - f64::from(*lower))
        }
        (ScalarValue::Float64(Some(lower)), ScalarValue::Float64(Some(upper))) => Some(upper - lower),
        _ => None,
    };
    let correction = width(selected)? / width(all)? / cardinality_ratio(all, selected);
    correction.is_finite().then_some(correction)
}

/// The minimum and maximum of a column; `None` unless all row groups have statistics.
fn column_bounds(file: &ParquetFile, groups: &[usize], column: &str) -> Option<(ScalarValue, ScalarValue)> {
    let metadata = file.metadata();
    let converter = StatisticsConverter::try_new(column, file.schema(), metadata.parquet_schema()).ok()?;
    let all = metadata.metadata().row_groups();
    let groups: Vec<&RowGroupMetaData> = groups.iter().filter_map(|group| all.get(*group)).collect();
    let mins = converter.row_group_mins(groups.iter().copied()).ok()?;
    let maxes = converter.row_group_maxes(groups.iter().copied()).ok()?;
    let extreme = |values: &dyn Array, order: Ordering| {
        let mut extreme: Option<ScalarValue> = None;
        for group in 0..values.len() {
            let value = ScalarValue::try_from_array(values, group)
                .ok()
                .filter(|value| !value.is_null())?;
            let is_beyond = |current: &ScalarValue| value.partial_cmp(current) == Some(order);
            if extreme.as_ref().is_none_or(is_beyond) {
                extreme = Some(value);
            }
        }
        extreme
    };
    Some((
        extreme(&mins, Ordering::Less)?,
        extreme(&maxes, Ordering::Greater)?,
    ))
}
