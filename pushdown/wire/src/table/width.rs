//! Upper bounds of the size of encoded rows, before any are encoded.

use arrow_schema::{DataType, Schema};

use super::TableForm;
use pushdown_core::{Estimate, uuid};

impl TableForm {
    /// The maximum size of rows with these columns in this form, from the estimate of a scan. `None` if there is no upper bound,
    /// as for strings in texts.
    pub fn max_bytes(self, schema: &Schema, estimate: &Estimate) -> Option<u64> {
        let has_names = match self {
            Self::ArrowStream(_) | Self::Parquet => return estimate.max_output_bytes,
            Self::Csv => false,
            Self::Ndjson => true,
        };
        let column = |field: &arrow_schema::FieldRef| {
            // In JSON, each character of a name may be escaped; the name has quotes, a colon and a comma.
            let name = if has_names {
                6 * field.name().len() as u64 + 5
            } else {
                1
            };
            // In JSON, the text has quotes.
            let uuid = uuid::is_uuid(field).then_some(uuid::TEXT_LENGTH + 2);
            Some(name + uuid.or_else(|| max_width(field.data_type()))?)
        };
        let row: u64 = schema.fields().iter().map(column).sum::<Option<u64>>()?;
        Some(estimate.max_rows?.saturating_mul(row + 3))
    }
}

/// The maximum number of characters of a value.
fn max_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::Null => Some(4),
        DataType::Boolean => Some(5),
        number if number.is_integer() => Some(20),
        // Up to 17 digits, a sign, a point and an exponent.
        DataType::Float16 | DataType::Float32 | DataType::Float64 => Some(25),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{iter, sync::Arc};

    use arrow_array::{ArrayRef, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, RecordBatch};
    use arrow_schema::{Field, extension::EXTENSION_TYPE_NAME_KEY};
    use bytes::Bytes;

    use super::*;
    use crate::TableEncoder;

    #[test]
    fn encoded_rows_never_exceed_the_maximum() {
        let rows = 4;
        let uuids = FixedSizeBinaryArray::try_from_iter(iter::repeat_n([0xab_u8; 16], rows)).unwrap();
        let columns: [(&str, ArrayRef); 4] = [
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
            ("d", Arc::new(uuids)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut fields: Vec<Field> = batch
            .schema()
            .fields()
            .iter()
            .map(|field| Field::clone(field))
            .collect();
        fields[3] = fields[3]
            .clone()
            .with_metadata([(EXTENSION_TYPE_NAME_KEY.to_owned(), uuid::NAME.to_owned())].into());
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec()).unwrap();
        let estimate = Estimate {
            max_rows: Some(rows as u64 + 1),
            ..Estimate::default()
        };
        for form in [TableForm::Csv, TableForm::Ndjson] {
            let mut encoder = TableEncoder::new(form, &batch.schema()).unwrap();
            let mut parts = encoder.write(&batch).unwrap();
            parts.extend(encoder.finish().unwrap());
            let bytes: usize = parts.iter().map(Bytes::len).sum();
            let max_bytes = form.max_bytes(&batch.schema(), &estimate).unwrap();
            assert!(bytes as u64 <= max_bytes, "{form:?}: {bytes} of {max_bytes}");
        }
    }

    #[test]
    fn strings_in_texts_have_no_maximum() {
        let schema = Schema::new(vec![Field::new("s", DataType::Utf8, true)]);
        let estimate = Estimate {
            max_rows: Some(10),
            max_output_bytes: Some(100),
            ..Estimate::default()
        };
        let max_bytes = |form: TableForm| form.max_bytes(&schema, &estimate);
        assert_eq!(TableForm::ALL.map(max_bytes), [Some(100), Some(100), None, None]);
    }
}
