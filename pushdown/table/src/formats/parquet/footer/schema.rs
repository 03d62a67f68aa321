//! Checks a footer before Parquet's decoder reads it. The decoder recurses into each group of the schema and allocates memory
//! for the number of children that the group claims, both without a limit.

use crate::formats::parquet::{
    structures::{FILE_METADATA, SCHEMA_ELEMENT, skip_field},
    thrift::{CompactReader, I32, LIST, STRUCT, malformed},
};
use pushdown_core::{Error, Result, limits::TableLimits};

/// Maximum nesting depth of groups. Readers recurse into them, on threads with stacks of 2 MiB. The same limit applies to the
/// Arrow schema in the key-value metadata.
const MAX_DEPTH: usize = 64;

/// Checks the depth, the claimed sizes and the number of columns of a footer's schema, and the structure of the other fields.
pub(super) fn check_footer(footer: &[u8], limits: &TableLimits) -> Result<()> {
    let mut bytes = CompactReader::new(footer);
    let (mut last_id, mut has_schema) = (0, false);
    while let Some(field) = bytes.field(last_id)? {
        match (field.id, field.kind) {
            (2, LIST) => {
                check_elements(&mut bytes, limits)?;
                has_schema = true;
            }
            (2, kind) => {
                return Err(malformed(format_args!(
                    "expected a list in the field of the schema, found a value of kind {kind}"
                )));
            }
            (1, I32) => bytes.skip_value(I32)?,
            (id, kind) if !has_schema => {
                return Err(malformed(format_args!(
                    "expected its version and its schema first, found field {id} of kind {kind}"
                )));
            }
            _ => skip_field(&mut bytes, field, FILE_METADATA)?,
        }
        last_id = field.id;
    }
    if has_schema {
        Ok(())
    } else {
        Err(malformed("missing schema"))
    }
}

/// Checks the elements of the schema, a depth-first list: each group precedes its children.
fn check_elements(bytes: &mut CompactReader<'_>, limits: &TableLimits) -> Result<()> {
    let (kind, count) = bytes.list()?;
    if kind != STRUCT {
        return Err(malformed(format_args!(
            "expected structs in the schema, found values of kind {kind}"
        )));
    }
    // For each group around the current element, the number of its children that have not been read; `pending` is their sum.
    let mut open_groups: Vec<usize> = Vec::new();
    let (mut pending, mut columns) = (0, 0);
    for index in 0..count {
        while open_groups.last() == Some(&0) {
            open_groups.pop();
        }
        match open_groups.last_mut() {
            Some(children_left) => {
                *children_left -= 1;
                pending -= 1;
            }
            None if index == 0 => {}
            None => {
                return Err(malformed(format_args!(
                    "expected the end of the schema, found {} more columns",
                    count - index
                )));
            }
        }
        let children = read_child_count(bytes)?;
        let elements_left = count - index - 1 - pending;
        let children = match usize::try_from(children) {
            Ok(children) if children <= elements_left => children,
            _ => {
                return Err(malformed(format_args!(
                    "expected at most {elements_left} columns in a group, the number left in the schema, found {children}"
                )));
            }
        };
        if children > 0 {
            if open_groups.len() == MAX_DEPTH {
                return Err(malformed(format_args!(
                    "expected groups at most {MAX_DEPTH} deep, found deeper ones"
                )));
            }
            pending += children;
            open_groups.push(children);
        } else if index > 0 {
            columns += 1;
        }
    }
    if columns > limits.max_columns {
        return Err(Error::too_large(format!(
            "too many columns: expected at most {}, found {columns}",
            limits.max_columns
        )));
    }
    Ok(())
}

/// Skips an element and returns the number of its children.
fn read_child_count(bytes: &mut CompactReader<'_>) -> Result<i32> {
    let (mut children, mut last_id) = (0, 0);
    while let Some(field) = bytes.field(last_id)? {
        match (field.id, field.kind) {
            (5, I32) => children = bytes.integer()?,
            _ => skip_field(bytes, field, SCHEMA_ELEMENT)?,
        }
        last_id = field.id;
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::RecordBatch;
    use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};
    use parquet::arrow::ArrowWriter;

    use super::*;
    use pushdown_core::ErrorKind;

    /// A footer whose schema has these elements.
    fn footer(elements: &[&[u8]]) -> Vec<u8> {
        let mut footer = vec![
            0x15,
            0x02,
            0x19,
            0x0c | u8::try_from(elements.len() << 4).unwrap(),
        ];
        footer.extend(elements.concat());
        footer.push(0);
        footer
    }

    /// The root, with two children.
    const ROOT: &[u8] = &[0x48, 1, b'r', 0x15, 4, 0];
    /// A group with one child.
    const GROUP: &[u8] = &[0x35, 0, 0x18, 1, b'g', 0x15, 2, 0];
    const LEAF: &[u8] = &[0x15, 2, 0x25, 0, 0x18, 1, b'n', 0];

    fn assert_rejected(elements: &[&[u8]], message: &str) {
        let error = check_footer(&footer(elements), &TableLimits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }

    #[test]
    fn schema_elements_form_one_tree() {
        let limits = TableLimits::default();
        check_footer(&footer(&[ROOT, GROUP, LEAF, LEAF]), &limits).unwrap();
        check_footer(&footer(&[ROOT, LEAF, GROUP, GROUP, LEAF]), &limits).unwrap();
        assert_rejected(
            &[ROOT, LEAF],
            "expected at most 1 columns in a group, the number left in the schema, found 2",
        );
        assert_rejected(
            &[ROOT, LEAF, GROUP],
            "expected at most 0 columns in a group, the number left in the schema, found 1",
        );
        assert_rejected(&[ROOT, LEAF, LEAF, LEAF], "found 1 more columns");
        assert_rejected(&[ROOT, LEAF, &[0x48, 1, b'g', 0x15, 1, 0]], "found -1");
        let narrow = TableLimits {
            max_columns: 1,
            ..limits
        };
        let error = check_footer(&footer(&[ROOT, LEAF, LEAF]), &narrow).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }

    /// The decoder would skip 2^31 - 1 booleans of zero bytes each.
    #[test]
    fn fields_after_the_schema_match_the_format() {
        let check_with = |fields: &[u8]| {
            let mut footer = footer(&[ROOT, LEAF, LEAF]);
            footer.truncate(footer.len() - 1);
            footer.extend(fields);
            check_footer(&footer, &TableLimits::default())
        };
        check_with(&[0x16, 2, 0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16, 2, 0, 0]).unwrap();
        for fields in [
            // Field 30 is a list of booleans; the row groups are numbers; the row groups have no bytes.
            &[0x09, 60, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0][..],
            &[0x16, 2, 0x19, 0x15, 2, 0],
            &[0x16, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0x16, 2],
        ] {
            let error = check_with(fields).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{fields:?}: {error}");
        }
    }

    /// Parquet's decoder would read these as other columns.
    #[test]
    fn field_kinds_match_the_format() {
        // A name marked as an I32; a number of children marked as an I64.
        assert_rejected(&[ROOT, &[0x45, 1, b'n', 0], LEAF], "field 4 of kind 5");
        assert_rejected(&[&[0x48, 1, b'r', 0x16, 4, 0], LEAF, LEAF], "field 5 of kind 6");
        // An integer's width marked as a text; a text type that is not an empty struct.
        let width = [0x48, 1, b'n', 0x6c, 0xac, 0x18, 8, 0x11, 0, 0, 0];
        assert_rejected(&[ROOT, &width, LEAF], "field 1 of kind 8");
        let text = [0x48, 1, b'n', 0x6c, 0x1c, 0x15, 8, 0, 0, 0];
        assert_rejected(&[ROOT, &text, LEAF], "field 1 of kind 12");
    }

    #[test]
    fn every_written_type_passes() {
        let number = Field::new("number", DataType::Int16, true);
        let types = [
            DataType::Boolean,
            DataType::UInt8,
            DataType::Int64,
            DataType::Float16,
            DataType::Float64,
            DataType::Utf8,
            DataType::BinaryView,
            DataType::Date32,
            DataType::Time32(TimeUnit::Millisecond),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            DataType::Decimal128(20, 3),
            DataType::FixedSizeBinary(7),
            DataType::List(Arc::new(number.clone())),
            DataType::Struct(Fields::from(vec![number])),
            DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        ];
        let fields = types.into_iter().enumerate();
        let fields: Vec<_> = fields
            .map(|(index, data_type)| Field::new(format!("c{index}"), data_type, true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let mut writer = ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), None).unwrap();
        writer.write(&RecordBatch::new_empty(schema)).unwrap();
        let object = writer.into_inner().unwrap();
        let (file, tail) = object.split_last_chunk::<8>().unwrap();
        let length = u32::from_le_bytes(*tail.first_chunk().unwrap()) as usize;
        check_footer(&file[file.len() - length..], &TableLimits::default()).unwrap();
    }
}
