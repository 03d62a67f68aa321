//! Looks through a footer before Parquet's decoder does, which recurses into each group of its schema and sets aside what a
//! group claims to hold: neither has an end that the decoder knows of.

use crate::{
    Error, Result,
    limits::TableLimits,
    step::table::parquet::{
        grammar::{ELEMENT, FILE, member},
        thrift::{Compact, I32, LIST, STRUCT, malformed},
    },
};

/// The deepest nesting of groups. What reads them recurses, on threads with stacks of 2 MiB; the Arrow schema that a file
/// may have beside this one ends at the same depth.
const MAX_DEPTH: usize = 64;

/// Checks a footer: its schema's depth, claims and number of columns, and the form of all that stands behind it.
pub(super) fn check(footer: &[u8], limits: &TableLimits) -> Result<()> {
    let mut bytes = Compact::new(footer);
    let (mut last, mut seen) = (0, false);
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (2, LIST) => {
                elements(&mut bytes, limits)?;
                seen = true;
            }
            (2, kind) => {
                return Err(malformed(format_args!(
                    "a schema of kind {kind}, expected a list"
                )));
            }
            (1, I32) => bytes.skip(I32)?,
            (id, kind) if !seen => {
                return Err(malformed(format_args!(
                    "field {id} of kind {kind} first, expected its version and its schema"
                )));
            }
            _ => member(&mut bytes, field, FILE)?,
        }
        last = field.id;
    }
    if seen { Ok(()) } else { Err(malformed("no schema")) }
}

/// Goes through the elements of the schema: each group stands before its children.
fn elements(bytes: &mut Compact<'_>, limits: &TableLimits) -> Result<()> {
    let (kind, count) = bytes.list()?;
    if kind != STRUCT {
        return Err(malformed(format_args!(
            "a schema of kind {kind}, expected structs"
        )));
    }
    // The groups that an element stands in, by how many children of each are still to come, and how many these are together.
    let mut open: Vec<usize> = Vec::new();
    let (mut pending, mut columns) = (0, 0);
    for index in 0..count {
        while open.last() == Some(&0) {
            open.pop();
        }
        match open.last_mut() {
            Some(more) => {
                *more -= 1;
                pending -= 1;
            }
            None if index == 0 => {}
            None => {
                return Err(malformed(format_args!(
                    "{} columns behind the end of its schema, expected none",
                    count - index
                )));
            }
        }
        let children = element(bytes)?;
        let left = count - index - 1 - pending;
        let children = match usize::try_from(children) {
            Ok(children) if children <= left => children,
            _ => {
                return Err(malformed(format_args!(
                    "a group of {children} columns, expected at most {left}, which is how many are left"
                )));
            }
        };
        if children > 0 {
            if open.len() == MAX_DEPTH {
                return Err(malformed(format_args!(
                    "groups nested deeper than {MAX_DEPTH}, expected no more"
                )));
            }
            pending += children;
            open.push(children);
        } else if index > 0 {
            columns += 1;
        }
    }
    if columns > limits.max_columns {
        return Err(Error::too_large(format!(
            "the object has {columns} columns, more than the limit of {}",
            limits.max_columns
        )));
    }
    Ok(())
}

/// Goes past an element, and gives the number of its children.
fn element(bytes: &mut Compact<'_>) -> Result<i32> {
    let (mut children, mut last) = (0, 0);
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (5, I32) => children = bytes.integer()?,
            _ => member(bytes, field, ELEMENT)?,
        }
        last = field.id;
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
    use crate::ErrorKind;

    /// A footer that starts with a schema.
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

    fn says(elements: &[&[u8]], text: &str) {
        let error = check(&footer(elements), &TableLimits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }

    #[test]
    fn schemas_are_trees() {
        let limits = TableLimits::default();
        check(&footer(&[ROOT, GROUP, LEAF, LEAF]), &limits).unwrap();
        check(&footer(&[ROOT, LEAF, GROUP, GROUP, LEAF]), &limits).unwrap();
        says(&[ROOT, LEAF], "a group of 2 columns, expected at most 1");
        says(&[ROOT, LEAF, GROUP], "a group of 1 columns, expected at most 0");
        says(&[ROOT, LEAF, LEAF, LEAF], "1 columns behind the end");
        says(
            &[ROOT, LEAF, &[0x48, 1, b'g', 0x15, 1, 0]],
            "a group of -1 columns",
        );
        let narrow = TableLimits {
            max_columns: 1,
            ..limits
        };
        let error = check(&footer(&[ROOT, LEAF, LEAF]), &narrow).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }

    /// The decoder would pass over two thousand million truths that take no bytes.
    #[test]
    fn what_stands_behind_the_schema_has_the_form_of_the_format() {
        let behind = |fields: &[u8]| {
            let mut footer = footer(&[ROOT, LEAF, LEAF]);
            footer.truncate(footer.len() - 1);
            footer.extend(fields);
            check(&footer, &TableLimits::default())
        };
        behind(&[0x16, 2, 0x19, 0x1c, 0x19, 0x0c, 0x16, 0, 0x16, 2, 0, 0]).unwrap();
        for fields in [
            // Field 30: a list of booleans; row groups that are numbers; row groups without bytes.
            &[0x09, 60, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07, 0][..],
            &[0x16, 2, 0x19, 0x15, 2, 0],
            &[0x16, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0x16, 2],
        ] {
            let error = behind(fields).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{fields:?}: {error}");
        }
    }

    /// What Parquet's decoder would read as other columns.
    #[test]
    fn fields_have_the_kinds_of_the_format() {
        // A name that says it is a number, a number of children that says it is wide.
        says(&[ROOT, &[0x45, 1, b'n', 0], LEAF], "field 4 of kind 5");
        says(&[&[0x48, 1, b'r', 0x16, 4, 0], LEAF, LEAF], "field 5 of kind 6");
        // An integer's width that says it is a text, and a text that is no empty struct.
        let width = [0x48, 1, b'n', 0x6c, 0xac, 0x18, 8, 0x11, 0, 0, 0];
        says(&[ROOT, &width, LEAF], "field 1 of kind 8");
        let text = [0x48, 1, b'n', 0x6c, 0x1c, 0x15, 8, 0, 0, 0];
        says(&[ROOT, &text, LEAF], "field 1 of kind 12");
    }

    #[test]
    fn every_type_that_is_written_passes() {
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
        check(&file[file.len() - length..], &TableLimits::default()).unwrap();
    }
}
