//! How much a query will read and give, before it has read anything but the footer.

use arrow_schema::{DataType, Schema};
use datafusion::{
    common::tree_node::TreeNodeRecursion,
    logical_expr::{FetchType, LogicalPlan},
};
use parquet::{
    basic::{Compression, Encoding},
    file::metadata::{ColumnChunkMetaData, RowGroupMetaData},
};

use super::{format::TableFile, object::ObjectTable, parquet::ParquetFile, prune::Kept};
use crate::Estimate;

/// What a string or a list is taken to have where nothing is known of it, in bytes.
const UNKNOWN_BYTES: u64 = 16;
/// What a column's pages in decoding are taken to have, unless its values are large: one of values and one of its
/// dictionary, 1 MiB each by the default of every writer.
const PAGE_BYTES: u64 = 2 << 20;
/// Values that writers put into a page before they look at how large it has become.
const PAGE_VALUES: u64 = 1024;

/// What `plan` will read of `object`, and at most give.
pub(super) fn estimate_query(object: &ObjectTable, plan: &LogicalPlan, schema: &Schema) -> Estimate {
    let scans = object.scans();
    let file = match object.stored() {
        TableFile::Parquet(file) => file,
        TableFile::Stream(file) => {
            return Estimate {
                object_bytes: file.object_bytes(),
                scan_bytes: Some(file.object_bytes()),
                max_rows: None,
                output_bytes: None,
                max_output_bytes: None,
                expected_output_bytes: None,
                peak_memory_bytes: None,
            };
        }
    };
    let mut estimate = Estimate {
        object_bytes: file.object_bytes(),
        scan_bytes: Some(scans.iter().map(|scan| scan.bytes).sum()),
        max_rows: None,
        output_bytes: None,
        max_output_bytes: None,
        expected_output_bytes: None,
        peak_memory_bytes: Some(scans.iter().map(|scan| held(file, scan)).sum()),
    };
    // Of grouping and joining nothing is known beforehand.
    if let [scan] = scans.as_slice()
        && let Some(limit) = rows_of_one_scan(plan)
    {
        let left: u64 = scan.rows.iter().map(|(_, rows)| rows).sum();
        let rows = left.min(limit);
        let likely = scan.likely.min(rows);
        let bytes = schema.fields().iter().map(|field| {
            let index = file.schema().index_of(field.name()).ok();
            let same = index.filter(|index| file.schema().field(*index).data_type() == field.data_type());
            let all = match same {
                Some(column) => column_bytes(file, scan, column),
                None => left.saturating_mul(width(field.data_type())),
            };
            // Rows are taken to be of one size.
            let of = |rows: u64| u128::from(all) * u128::from(rows) / u128::from(left.max(1));
            (of(rows), of(likely))
        });
        let (answer, likely) = bytes.fold((0, 0), |sum: (u128, u128), column| {
            (sum.0.saturating_add(column.0), sum.1.saturating_add(column.1))
        });
        let short = |bytes| Some(u64::try_from(bytes).unwrap_or(u64::MAX));
        if keeps_rows(plan) {
            let query = file.limits().max_query_bytes;
            estimate.peak_memory_bytes = estimate.peak_memory_bytes.map(|held| held.saturating_add(query));
        }
        estimate.max_rows = Some(rows);
        estimate.output_bytes = short(answer);
        let sure = schema.fields().iter().all(|field| {
            let index = file.schema().index_of(field.name()).ok();
            fixed_width(field.data_type()).is_some()
                || index.is_some_and(|column| is_sure(file, scan, column))
        });
        estimate.max_output_bytes = estimate.output_bytes.filter(|_| sure);
        estimate.expected_output_bytes = short(likely);
    }
    estimate
}

/// The most bytes of one scan that are in memory at once: row groups as they are stored, and pages of one.
fn held(file: &ParquetFile, scan: &Kept) -> u64 {
    let mask = file.projection(&scan.part.columns);
    let groups = file.metadata().metadata().row_groups();
    let bytes = |size: i64| u64::try_from(size).unwrap_or_default();
    let group = |(index, _): &(usize, u64)| {
        let chunks = groups.get(*index)?.columns().iter().enumerate();
        let read = chunks.filter(|(leaf, _)| mask.leaf_included(*leaf));
        Some(read.fold((0_u64, 0_u64), |(stored, pages), (_, chunk)| {
            (
                stored.saturating_add(bytes(chunk.compressed_size()).saturating_mul(copies(chunk))),
                pages.saturating_add(page_bytes(chunk)),
            )
        }))
    };
    let groups: Vec<_> = scan.rows.iter().filter_map(group).collect();
    let together = groups.windows((1 + scan.part.row_groups_ahead).min(groups.len()).max(1));
    let stored = together.map(|groups| {
        groups
            .iter()
            .fold(0, |sum: u64, group| sum.saturating_add(group.0))
    });
    let pages = groups.iter().map(|(_, pages)| *pages).max();
    let stored = stored.max().unwrap_or_default();
    stored.saturating_add(pages.unwrap_or_default())
}

/// How often stored pages are in memory: of the codec LZ4 there may be those whose chunks are joined as well.
fn copies(chunk: &ColumnChunkMetaData) -> u64 {
    if chunk.compression() == Compression::LZ4 {
        2
    } else {
        1
    }
}

/// The most bytes of a column's pages that are decoded at a time.
fn page_bytes(chunk: &ColumnChunkMetaData) -> u64 {
    let all = u64::try_from(chunk.uncompressed_size()).unwrap_or_default();
    let values = u64::try_from(chunk.num_values()).unwrap_or_default().max(1);
    let large = (all / values).saturating_mul(PAGE_VALUES);
    all.min(large.max(PAGE_BYTES))
}

/// Whether a plan keeps rows until the last one has come: for that it may take all of the memory of a query.
fn keeps_rows(plan: &LogicalPlan) -> bool {
    let mut keeps = false;
    let walked = plan.apply_with_subqueries(|node| {
        keeps |= matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Window(_));
        Ok(TreeNodeRecursion::Continue)
    });
    keeps || walked.is_err()
}

/// The most rows of a plan that gives rows of one scan, one for one at most; `None` for any other plan.
fn rows_of_one_scan(plan: &LogicalPlan) -> Option<u64> {
    let mut most = u64::MAX;
    let mut known = true;
    let walked = plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::SubqueryAlias(_) => {}
            LogicalPlan::Limit(limit) => match limit.get_fetch_type() {
                Ok(FetchType::Literal(Some(rows))) => most = most.min(rows as u64),
                _ => known = false,
            },
            _ => known = false,
        }
        Ok(TreeNodeRecursion::Continue)
    });
    (known && walked.is_ok()).then_some(most)
}

/// Bytes of one column in Arrow, over the rows that are read.
fn column_bytes(file: &ParquetFile, scan: &Kept, column: usize) -> u64 {
    let mask = file.projection(&[column]);
    let groups = file.metadata().metadata().row_groups();
    let group = |(index, rows): &(usize, u64)| {
        let group: &RowGroupMetaData = groups.get(*index)?;
        let all = u64::try_from(group.num_rows()).ok()?.max(1);
        let leaves = group.columns().iter().enumerate();
        let leaves = leaves.filter(|(leaf, _)| mask.leaf_included(*leaf));
        let bytes = leaves
            .map(|(_, chunk)| chunk_bytes(chunk))
            .fold(0, u64::saturating_add);
        u64::try_from(u128::from(bytes) * u128::from(*rows) / u128::from(all)).ok()
    };
    let data_type = file.schema().field(column).data_type();
    match fixed_width(data_type) {
        Some(width) => {
            let rows: u64 = scan.rows.iter().map(|(_, rows)| rows).sum();
            rows.saturating_mul(width)
        }
        None => scan.rows.iter().filter_map(group).fold(0, u64::saturating_add),
    }
}

/// Whether the footer tells how many bytes the values of a column have at most.
fn is_sure(file: &ParquetFile, scan: &Kept, column: usize) -> bool {
    let mask = file.projection(&[column]);
    let groups = file.metadata().metadata().row_groups();
    let mut chunks = scan
        .rows
        .iter()
        .filter_map(|(index, _)| groups.get(*index))
        .flat_map(|group| {
            let leaves = group.columns().iter().enumerate();
            leaves
                .filter(|(leaf, _)| mask.leaf_included(*leaf))
                .map(|(_, chunk)| chunk)
        });
    chunks.all(|chunk| {
        let shares = |encoding| encoding == Encoding::DELTA_BYTE_ARRAY;
        let plain = chunk.dictionary_page_offset().is_none() && !chunk.encodings().any(shares);
        let text = chunk.column_type() == parquet::basic::Type::BYTE_ARRAY;
        !text || plain || chunk.unencoded_byte_array_data_bytes().is_some()
    })
}

/// Bytes of the values of a leaf in Arrow.
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
        // Of a dictionary each value may stand there any number of times.
        (None, Some(_), Some(statistics)) => {
            let ends = [statistics.min_bytes_opt(), statistics.max_bytes_opt()];
            let lengths: Vec<_> = ends.into_iter().flatten().map(|end| end.len() as u64).collect();
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

fn width(data_type: &DataType) -> u64 {
    fixed_width(data_type).unwrap_or(UNKNOWN_BYTES)
}
