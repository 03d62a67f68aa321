//! The memory that a scan reserves.

use pushdown::{
    Estimate, Step,
    limits::{BATCH_BYTES, BATCH_ROWS},
    step::RowwiseStep,
};

/// Memory of a streamed object without an estimate: pieces of the stream, and the decompressor.
const STREAM_BYTES: u64 = 8 << 20;
/// Additional memory of such an object, if it is large enough: 16 MiB of text, and the record batch that is parsed from it.
const TEXT_BYTES: u64 = 32 << 20;
/// Assumed ratio of the inflated size of such an object to its stored size.
const INFLATION_RATIO: u64 = 16;
/// Assumed size of a record batch without an estimate.
const UNKNOWN_BATCH_BYTES: u64 = 1 << 20;
/// Record batches in memory at a time: one that is computed, those that are ready, and one that is being sent.
pub(in crate::routes) const LIVE_BATCHES: usize = 4;

/// Memory of a scan without its source: a stored row group, record batches, and the state of grouping and joins
/// (`max_query_bytes`). The memory of sorting is part of the estimate.
pub(super) fn working_bytes(estimate: &Estimate, steps: &[Step], max_query_bytes: u64) -> u64 {
    let batch = match (estimate.output_bytes, estimate.max_rows) {
        (Some(bytes), Some(rows)) => {
            let rows = rows.max(1);
            (bytes / rows)
                .saturating_mul(rows.min(BATCH_ROWS as u64))
                .min(BATCH_BYTES)
        }
        _ => UNKNOWN_BATCH_BYTES,
    };
    let computed = steps
        .iter()
        .filter_map(Step::rowwise)
        .map(RowwiseStep::computed_bytes);
    let values = computed.max().unwrap_or_default();
    // Batches of computed values are cut at that size.
    let batch = if values > 0 { batch.min(values) } else { batch };
    let reader = steps.first().and_then(Step::table_reader);
    let is_any_query = reader.is_some_and(|reader| reader.row_selection().is_none());
    let computing = if is_any_query && estimate.output_bytes.is_none() {
        max_query_bytes
    } else {
        0
    };
    let streamed = || STREAM_BYTES + TEXT_BYTES.min(estimate.object_bytes.saturating_mul(INFLATION_RATIO));
    estimate
        .peak_memory_bytes
        .unwrap_or_else(streamed)
        .saturating_add(batch.saturating_add(values).saturating_mul(LIVE_BATCHES as u64))
        .saturating_add(computing)
}

#[cfg(all(test, feature = "tables"))]
mod tests {
    use pushdown::{Pipeline, limits::EACH_BYTES};

    use super::*;

    #[test]
    fn a_stream_reserves_memory_for_its_text_and_its_rows() {
        let select: Pipeline = "select()".parse().unwrap();
        let sql: Pipeline = "sql('select 1 from object')".parse().unwrap();
        let bytes = |stored, pipeline: &Pipeline| {
            let estimate = Estimate {
                object_bytes: stored,
                ..Estimate::default()
            };
            working_bytes(&estimate, pipeline.steps(), 256 << 20)
        };
        let batches = LIVE_BATCHES as u64 * UNKNOWN_BATCH_BYTES;
        assert_eq!(bytes(0, &select), STREAM_BYTES + batches);
        assert_eq!(bytes(1 << 20, &select), STREAM_BYTES + (16 << 20) + batches);
        assert_eq!(bytes(1 << 40, &select), STREAM_BYTES + TEXT_BYTES + batches);
        assert_eq!(bytes(0, &sql), STREAM_BYTES + batches + (256 << 20));
    }

    /// 8,192 tensors of 602 KB are never in memory together.
    #[test]
    fn record_batches_of_large_values_have_few_rows() {
        let select: Pipeline = "select".parse().unwrap();
        let each: Pipeline = "select | each(photo: decode | resize(224, 224) | to_float)"
            .parse()
            .unwrap();
        let estimate = Estimate {
            max_rows: Some(100_000),
            output_bytes: Some(100_000 * 602_112),
            peak_memory_bytes: Some(1000),
            ..Estimate::default()
        };
        let bytes = |pipeline: &Pipeline| working_bytes(&estimate, pipeline.steps(), 0) - 1000;
        assert_eq!(bytes(&select), LIVE_BATCHES as u64 * BATCH_BYTES);
        assert_eq!(bytes(&each), LIVE_BATCHES as u64 * 2 * EACH_BYTES as u64);
    }
}
