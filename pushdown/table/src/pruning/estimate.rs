//! Estimates the input and output sizes of a query from the footer alone.

use arrow_schema::{DataType, FieldRef, Schema};
use datafusion::{
    common::tree_node::TreeNodeRecursion,
    logical_expr::{FetchType, LogicalPlan},
};
use parquet::{
    basic::{Compression, Encoding},
    file::metadata::{ColumnChunkMetaData, RowGroupMetaData},
};

use crate::{
    engine::object::ObjectTable,
    formats::{format::TableFile, parquet::ParquetFile},
    pruning::prune::{PrunedScan, RowGroupRows},
};
use pushdown_core::Estimate;

/// Assumed size in Arrow of a string or a list of unknown length.
const UNKNOWN_BYTES: u64 = 16;
/// Assumed size of a column's decoded pages unless its values are large: one page of values and one of its dictionary, 1 MiB
/// each by the default of every writer.
const PAGE_BYTES: u64 = 2 << 20;
/// Number of values that writers add to a page before they check its size.
const PAGE_VALUES: u64 = 1024;

/// Estimates the input and output of `plan` over `object`. Unknown sizes are `None`: all sizes of the output of formats other
/// than Parquet, and of plans that group or join.
pub(crate) fn estimate_query(object: &ObjectTable, plan: &LogicalPlan, schema: &Schema) -> Estimate {
    let scans = object.scans();
    let file = match object.stored() {
        TableFile::Parquet(file) => file,
        TableFile::Stream(file) => {
            return Estimate {
                object_bytes: file.object_bytes(),
                scan_bytes: Some(file.object_bytes()),
                ..Estimate::default()
            };
        }
    };
    let mut estimate = Estimate {
        object_bytes: file.object_bytes(),
        scan_bytes: Some(scans.iter().map(|scan| scan.scan_bytes).sum()),
        peak_memory_bytes: Some(scans.iter().map(|scan| peak_scan_bytes(file, scan)).sum()),
        ..Estimate::default()
    };
    if let [scan] = scans.as_slice()
        && let Some(limit) = max_rows_of_one_scan(plan)
    {
        let scan_rows = total_rows(scan);
        let max_rows = scan_rows.min(limit);
        let scan_output_bytes = scan_output_bytes(file, scan, schema);
        // Assumes rows of equal size.
        let output_bytes = |rows: u64| {
            let columns = scan_output_bytes.iter();
            let bytes =
                columns.map(|bytes| u128::from(*bytes) * u128::from(rows) / u128::from(scan_rows.max(1)));
            u64::try_from(bytes.fold(0, u128::saturating_add)).unwrap_or(u64::MAX)
        };
        estimate.max_rows = Some(max_rows);
        estimate.output_bytes = Some(output_bytes(max_rows));
        estimate.max_output_bytes = estimate
            .output_bytes
            .filter(|_| has_known_max_size(file, scan, schema));
        estimate.expected_output_bytes = Some(output_bytes(scan.expected_rows.min(max_rows)));
        if buffers_all_rows(plan) {
            let query_bytes = file.limits().max_query_bytes;
            estimate.peak_memory_bytes = estimate
                .peak_memory_bytes
                .map(|scan_bytes| scan_bytes.saturating_add(query_bytes));
        }
    }
    estimate
}

fn total_rows(scan: &PrunedScan) -> u64 {
    scan.row_groups.iter().map(|group| group.rows).sum()
}

/// For each output column, bytes in Arrow over all rows of a scan.
fn scan_output_bytes(file: &ParquetFile, scan: &PrunedScan, schema: &Schema) -> Vec<u64> {
    let bytes = |field: &FieldRef| {
        let index = file.schema().index_of(field.name()).ok();
        let is_same_type = |index: &usize| file.schema().field(*index).data_type() == field.data_type();
        match index.filter(is_same_type) {
            Some(column) => column_bytes(file, scan, column),
            None => total_rows(scan).saturating_mul(value_bytes(field.data_type())),
        }
    };
    schema.fields().iter().map(bytes).collect()
}

/// Whether the footer bounds the size of all output columns.
fn has_known_max_size(file: &ParquetFile, scan: &PrunedScan, schema: &Schema) -> bool {
    schema.fields().iter().all(|field| {
        let index = file.schema().index_of(field.name()).ok();
        fixed_width(field.data_type()).is_some()
            || index.is_some_and(|column| has_known_max_column_size(file, scan, column))
    })
}

/// Upper bound of the memory of one scan: the stored bytes of consecutive row groups, and the decoded pages of one.
fn peak_scan_bytes(file: &ParquetFile, scan: &PrunedScan) -> u64 {
    let mask = file.projection(&scan.scan.columns);
    let row_groups = file.metadata().metadata().row_groups();
    let to_bytes = |size: i64| u64::try_from(size).unwrap_or_default();
    let (mut stored_bytes, mut max_page_bytes) = (Vec::new(), 0);
    for group in &scan.row_groups {
        let Some(row_group) = row_groups.get(group.index) else {
            continue;
        };
        let leaves = row_group.columns().iter().enumerate();
        let (mut stored, mut pages) = (0_u64, 0_u64);
        for (_, chunk) in leaves.filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            let chunk_bytes = to_bytes(chunk.compressed_size()).saturating_mul(stored_copies(chunk));
            stored = stored.saturating_add(chunk_bytes);
            pages = pages.saturating_add(page_bytes(chunk));
        }
        stored_bytes.push(stored);
        max_page_bytes = pages.max(max_page_bytes);
    }
    let groups_in_memory = (1 + scan.scan.row_groups_ahead).min(stored_bytes.len()).max(1);
    let windows = stored_bytes.windows(groups_in_memory);
    let max_stored_bytes = windows
        .map(|groups| groups.iter().copied().fold(0, u64::saturating_add))
        .max();
    max_stored_bytes
        .unwrap_or_default()
        .saturating_add(max_page_bytes)
}

/// Copies of stored pages in memory: with the codec LZ4 there can be a second one, with the chunks of a page joined.
fn stored_copies(chunk: &ColumnChunkMetaData) -> u64 {
    if chunk.compression() == Compression::LZ4 {
        2
    } else {
        1
    }
}

/// Upper bound of the bytes of a column's pages that are decoded at a time.
fn page_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let total = u64::try_from(chunk.uncompressed_size()).unwrap_or_default();
    let values = u64::try_from(chunk.num_values()).unwrap_or_default().max(1);
    let large_page = (total / values).saturating_mul(PAGE_VALUES);
    total.min(large_page.max(PAGE_BYTES))
}

/// Whether a plan buffers rows until the input ends, for which it can use all of the query's memory.
fn buffers_all_rows(plan: &LogicalPlan) -> bool {
    let mut buffers = false;
    let walked = plan.apply_with_subqueries(|node| {
        buffers |= matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Window(_));
        Ok(TreeNodeRecursion::Continue)
    });
    buffers || walked.is_err()
}

/// The row limit of a plan that returns each row of one scan at most once; `None` for other plans.
fn max_rows_of_one_scan(plan: &LogicalPlan) -> Option<u64> {
    let mut max_rows = u64::MAX;
    let mut is_known = true;
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Limit(limit) => match limit.get_fetch_type() {
                Ok(FetchType::Literal(Some(rows))) => max_rows = max_rows.min(rows as u64),
                _ => is_known = false,
            },
            _ => is_known = false,
        }
        Ok(TreeNodeRecursion::Continue)
    });
    (is_known && walked.is_ok()).then_some(max_rows)
}

/// Bytes of one column in Arrow, over the rows of a scan.
fn column_bytes(file: &ParquetFile, scan: &PrunedScan, column: usize) -> u64 {
    let mask = file.projection(&[column]);
    let row_groups = file.metadata().metadata().row_groups();
    let group_bytes = |group: &RowGroupRows| {
        let row_group: &RowGroupMetaData = row_groups.get(group.index)?;
        let group_rows = u64::try_from(row_group.num_rows()).ok()?.max(1);
        let leaves = row_group.columns().iter().enumerate();
        let bytes = leaves
            .filter(|(leaf, _)| mask.leaf_included(*leaf))
            .map(|(_, chunk)| chunk_bytes(chunk))
            .fold(0, u64::saturating_add);
        u64::try_from(u128::from(bytes) * u128::from(group.rows) / u128::from(group_rows)).ok()
    };
    if let Some(width) = fixed_width(file.schema().field(column).data_type()) {
        return total_rows(scan).saturating_mul(width);
    }
    let groups = scan.row_groups.iter().filter_map(group_bytes);
    groups.fold(0, u64::saturating_add)
}

/// Whether the footer bounds the size of a column's values.
fn has_known_max_column_size(file: &ParquetFile, scan: &PrunedScan, column: usize) -> bool {
    let mask = file.projection(&[column]);
    let row_groups = file.metadata().metadata().row_groups();
    let mut chunks = scan
        .row_groups
        .iter()
        .filter_map(|group| row_groups.get(group.index))
        .flat_map(|group| {
            let leaves = group.columns().iter().enumerate();
            leaves
                .filter(|(leaf, _)| mask.leaf_included(*leaf))
                .map(|(_, chunk)| chunk)
        });
    chunks.all(|chunk| {
        // Dictionaries and shared prefixes store a value's bytes once for several values.
        let shares_prefixes = |encoding| encoding == Encoding::DELTA_BYTE_ARRAY;
        let is_plain = chunk.dictionary_page_offset().is_none() && !chunk.encodings().any(shares_prefixes);
        let is_byte_array = chunk.column_type() == parquet::basic::Type::BYTE_ARRAY;
        !is_byte_array || is_plain || chunk.unencoded_byte_array_data_bytes().is_some()
    })
}

/// Bytes of the values of a column chunk in Arrow.
fn chunk_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let values = u64::try_from(chunk.num_values()).unwrap_or_default();
    let stored = u64::try_from(chunk.uncompressed_size()).unwrap_or_default();
    if chunk.column_type() != parquet::basic::Type::BYTE_ARRAY {
        return values.saturating_mul(8);
    }
    let offsets = values.saturating_mul(4);
    let unencoded = chunk.unencoded_byte_array_data_bytes();
    let text = match (unencoded, chunk.dictionary_page_offset(), chunk.statistics()) {
        (Some(bytes), ..) => u64::try_from(bytes).unwrap_or_default(),
        // With a dictionary, each value can occur any number of times: assume the mean length of minimum and maximum.
        (None, Some(_), Some(statistics)) => {
            let bounds = [statistics.min_bytes_opt(), statistics.max_bytes_opt()];
            let lengths: Vec<_> = bounds
                .into_iter()
                .flatten()
                .map(|bound| bound.len() as u64)
                .collect();
            let length = lengths.iter().sum::<u64>() / (lengths.len() as u64).max(1);
            values.saturating_mul(length.max(1)).max(stored)
        }
        (None, Some(_), None) => values.saturating_mul(UNKNOWN_BYTES).max(stored),
        (None, None, _) => stored,
    };
    offsets.saturating_add(text)
}

fn fixed_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeBinary(width) => u64::try_from(*width).ok(),
        DataType::Boolean => Some(1),
        DataType::Null => Some(0),
        other => other.primitive_width().map(|width| width as u64),
    }
}

fn value_bytes(data_type: &DataType) -> u64 {
    fixed_width(data_type).unwrap_or(UNKNOWN_BYTES)
}
