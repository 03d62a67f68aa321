//! Size estimates of a table scan, made before the scan starts.

use arrow_schema::{DataType, FieldRef, Schema};

use crate::float;

/// What a scan reads and returns, as far as the object's footer says. Unknown figures are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Size of the object.
    pub object_bytes: u64,
    /// Bytes that the scan reads from the object, without the footer; fewer if `limit` ends the scan early.
    pub scan_bytes: Option<u64>,
    /// Upper bound of the rows returned: the rows of the row groups and pages that the condition does not rule out.
    pub max_rows: Option<u64>,
    /// Size of `max_rows` rows in Arrow, from the widths of their types; approximate for strings and lists.
    pub output_bytes: Option<u64>,
    /// `output_bytes` where that is an upper bound. `None` if the footer does not say how long strings are.
    pub max_output_bytes: Option<u64>,
    /// Size of the rows that the condition probably selects, assuming that values are spread evenly between the minimum and
    /// the maximum of each row group.
    pub expected_output_bytes: Option<u64>,
    /// Upper bound of the memory in use at once: the stored columns of one row group and of those read ahead, and the pages of
    /// one. Includes the whole query budget for a query with known `max_rows` that sorts or has windows. Grouping and joins
    /// are not included.
    pub peak_memory_bytes: Option<u64>,
}

/// Bytes of stored columns that one core at the gateway turns into rows per second, measured on `lineitem` while the core also
/// serves the store; 335 MB/s if the store has cores of its own.
const GATEWAY_SCAN_BYTES_PER_SECOND: f64 = 130e6;
/// Assumed size of a value of variable length that `each` leaves unchanged.
const SHORT_VALUE_BYTES: u64 = 16;

impl Estimate {
    /// Whether the rows are probably smaller than the bytes read for them, so that the gateway should run the scan. The rows
    /// have to be smaller by more than a sixteenth, since running the scan remotely takes time.
    ///
    /// True if a size is unknown: after grouping, and for values of any size that `each` computes.
    pub fn is_reducing(&self) -> bool {
        match (self.expected_output_bytes, self.scan_bytes) {
            (Some(output), Some(scan)) => output.saturating_add(output / 16) < scan,
            _ => true,
        }
    }

    /// Row bytes that the gateway may send before the client gives up and reads the object itself, such that both together are
    /// at most 17/16 of the object. The limit is needed because the expected output is a guess.
    pub fn spare_bytes(&self) -> u64 {
        let max_bytes = self.object_bytes.saturating_add(self.object_bytes / 16);
        max_bytes.saturating_sub(self.scan_bytes.unwrap_or(self.object_bytes))
    }

    /// Whether a scan at the gateway is probably faster than a local one over a link of this speed: whether transferring the
    /// bytes that a remote scan saves takes longer than the remote scan.
    pub fn is_faster_at_gateway(&self, bytes_per_second: f64) -> bool {
        let (Some(output), Some(scan)) = (self.expected_output_bytes, self.scan_bytes) else {
            return true;
        };
        let saved = float(scan.saturating_sub(output));
        self.is_reducing() && saved * GATEWAY_SCAN_BYTES_PER_SECOND >= float(scan) * bytes_per_second
    }

    /// The estimate for the same rows after a step that changes the columns: computed values differ in size from their inputs.
    #[must_use]
    pub fn with_columns(self, before: &Schema, after: &Schema) -> Self {
        if before == after {
            return self;
        }
        let column_bytes = |field: &FieldRef| {
            let input = before.field_with_name(field.name());
            let is_unchanged = input.is_ok_and(|input| input.data_type() == field.data_type());
            // Unchanged columns are short compared with computed ones, and error texts are rare.
            let is_short = is_unchanged || field.data_type() == &DataType::Utf8;
            fixed_width_bytes(field.data_type()).or_else(|| is_short.then_some(SHORT_VALUE_BYTES))
        };
        let row_bytes: Option<u64> = after.fields().iter().map(column_bytes).sum();
        let output_bytes = self
            .max_rows
            .zip(row_bytes)
            .map(|(rows, row_bytes)| rows.saturating_mul(row_bytes));
        let expected_output_bytes = self
            .expected_output_bytes
            .zip(self.output_bytes)
            .zip(output_bytes)
            .map(|((expected, total), output)| {
                let scaled = u128::from(output) * u128::from(expected) / u128::from(total.max(1));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            });
        Self {
            output_bytes,
            max_output_bytes: output_bytes,
            expected_output_bytes,
            ..self
        }
    }

    /// The estimate for scanning this object and then another one.
    #[must_use]
    pub fn combined_with(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            object_bytes: self.object_bytes.saturating_add(other.object_bytes),
            scan_bytes: sum(self.scan_bytes, other.scan_bytes),
            max_rows: sum(self.max_rows, other.max_rows),
            output_bytes: sum(self.output_bytes, other.output_bytes),
            max_output_bytes: sum(self.max_output_bytes, other.max_output_bytes),
            expected_output_bytes: sum(self.expected_output_bytes, other.expected_output_bytes),
            peak_memory_bytes: self
                .peak_memory_bytes
                .zip(other.peak_memory_bytes)
                .map(|(a, b)| a.max(b)),
        }
    }
}

/// Bytes of one Arrow value of a type of fixed width.
fn fixed_width_bytes(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeList(item, length) => {
            let length = u64::try_from(*length).ok()?;
            Some(fixed_width_bytes(item.data_type())?.saturating_mul(length))
        }
        other => other.primitive_width().map(|width| width as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    #[test]
    fn the_faster_tier_runs_the_scan() {
        let estimate = |scan, output| Estimate {
            scan_bytes: Some(scan),
            expected_output_bytes: Some(output),
            ..Estimate::default()
        };
        let (slow_link, fast_link) = (12.5e6, 400e6);
        let half = estimate(67_000_000, 26_000_000);
        assert!(half.is_faster_at_gateway(slow_link));
        assert!(
            !half.is_faster_at_gateway(fast_link),
            "the remote scan takes longer"
        );
        let few = estimate(67_000_000, 1_000);
        assert!(few.is_faster_at_gateway(GATEWAY_SCAN_BYTES_PER_SECOND * 0.99));
        assert!(!few.is_faster_at_gateway(GATEWAY_SCAN_BYTES_PER_SECOND * 1.01));
        assert!(
            !estimate(10, 26).is_faster_at_gateway(0.0),
            "the rows are larger than the input"
        );
        assert!(
            Estimate::default().is_faster_at_gateway(fast_link),
            "the output of grouping is unknown"
        );
    }

    #[test]
    fn tensor_sizes_follow_from_their_shape() {
        let field = |name, data_type| Field::new(name, data_type, true);
        let with_photo = |value| Schema::new(vec![field("n", DataType::Int64), field("photo", value)]);
        let before = Estimate {
            max_rows: Some(100),
            output_bytes: Some(10_000_000),
            expected_output_bytes: Some(1_000_000),
            ..Estimate::default()
        };
        let item = Arc::new(field("item", DataType::Float32));
        let tensors = with_photo(DataType::FixedSizeList(item, 3 * 32 * 32));
        let stored = with_photo(DataType::Binary);
        assert_eq!(before.with_columns(&stored, &stored), before);
        let after = before.with_columns(&stored, &tensors);
        assert_eq!(after.output_bytes, Some(100 * (8 + 4 * 3 * 32 * 32)));
        assert_eq!(after.expected_output_bytes, Some(10 * (8 + 4 * 3 * 32 * 32)));
        let images = before.with_columns(&stored, &with_photo(DataType::LargeBinary));
        assert_eq!(
            (images.output_bytes, images.expected_output_bytes),
            (None, None),
            "images have any size"
        );
    }
}
