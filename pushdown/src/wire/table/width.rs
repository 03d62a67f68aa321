//! How many bytes rows may have in a form, before there are any.

use arrow_schema::{DataType, Schema};

use super::TableForm;
use crate::Estimate;

impl TableForm {
    /// The most bytes that rows of these columns have in this form, by what a footer tells; `None` where it tells nothing that
    /// is sure: of strings in texts, say.
    pub fn max_bytes(self, schema: &Schema, estimate: &Estimate) -> Option<u64> {
        let named = match self {
            Self::ArrowStream(_) | Self::Parquet => return estimate.max_output_bytes,
            Self::Csv => false,
            Self::Ndjson => true,
        };
        let column = |field: &arrow_schema::FieldRef| {
            // In JSON a character of a name may be escaped, and stands in quotes before a colon.
            let name = if named {
                6 * field.name().len() as u64 + 5
            } else {
                1
            };
            Some(name + width(field.data_type())?)
        };
        let row: u64 = schema.fields().iter().map(column).sum::<Option<u64>>()?;
        Some(estimate.max_rows?.saturating_mul(row + 3))
    }
}

/// The most characters of a value.
fn width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Null => Some(4),
        DataType::Boolean => Some(5),
        number if number.is_integer() => Some(20),
        // The shortest digits that say it: 17 of them, a sign, a point and an exponent.
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Some(25),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch};
    use arrow_schema::Field;
    use bytes::Bytes;

    use super::*;
    use crate::wire::TableEncoder;

    #[test]
    fn no_value_is_wider_than_its_type_says() {
        let rows = 4;
        let columns: [(&str, ArrayRef); 3] = [
            (
                "a\n",
                Arc::new(Int64Array::from(vec![
                    Some(i64::MIN),
                    Some(i64::MAX),
                    None,
                    Some(0),
                ])),
            ),
            (
                "b",
                Arc::new(Float64Array::from(vec![
                    f64::MIN,
                    -f64::MIN_POSITIVE,
                    f64::NAN,
                    -1.0 / 3.0,
                ])),
            ),
            ("c", Arc::new(BooleanArray::from(vec![false; rows]))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let estimate = Estimate {
            max_rows: Some(rows as u64 + 1),
            ..Estimate::default()
        };
        for form in [TableForm::Csv, TableForm::Ndjson] {
            let mut encoder = TableEncoder::new(form, &batch.schema()).unwrap();
            let mut parts = encoder.write(&batch).unwrap();
            parts.extend(encoder.finish().unwrap());
            let bytes: usize = parts.iter().map(Bytes::len).sum();
            let most = form.max_bytes(&batch.schema(), &estimate).unwrap();
            assert!(bytes as u64 <= most, "{form:?}: {bytes} of {most}");
        }
    }

    #[test]
    fn nothing_is_sure_of_strings_as_text() {
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8, true)]);
        let estimate = Estimate {
            max_rows: Some(10),
            max_output_bytes: Some(100),
            ..Estimate::default()
        };
        let of = |form: TableForm| form.max_bytes(&schema, &estimate);
        assert_eq!(TableForm::ALL.map(of), [Some(100), Some(100), None, None]);
    }
}
