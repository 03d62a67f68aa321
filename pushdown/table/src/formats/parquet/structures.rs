//! The Thrift structures of Parquet (`parquet.thrift` of the Parquet format, 2.12), and checks of bytes against them.
//!
//! Parquet's decoder reads fields by number, and skips as many elements of an unknown list as the list claims. So metadata is
//! checked before the decoder reads it: each known field has the kind that the format defines, and nothing is longer than the
//! available bytes.

use super::thrift::{
    BINARY, BYTE, CompactReader, DOUBLE, FALSE, FieldHeader, I16, I32, I64, LIST, STRUCT, TRUE, malformed,
};
use pushdown_core::{Error, Result};

/// The type of a field.
pub(super) enum Shape {
    /// A value of this Thrift kind.
    Value(u8),
    Bool,
    List(&'static Self),
    /// A structure with these fields, numbered from 1.
    Struct(&'static [Self]),
    /// A union: a structure with exactly one of these fields.
    OneOf(&'static [Self]),
    /// A structure without fields. The decoder reads it as one byte.
    Empty,
    /// A field that is skipped without a check.
    Any,
}

use Shape::{Any, Bool, Empty, List, OneOf, Struct, Value};

const NUMBERS: Shape = List(&Value(I64));
const TEXTS: Shape = List(&Value(BINARY));
const STATISTICS: Shape = Struct(&[
    Value(BINARY),
    Value(BINARY),
    Value(I64),
    Value(I64),
    Value(BINARY),
    Value(BINARY),
    Bool,
    Bool,
    Value(I64),
]);

/// `PageHeader`, with the headers of a data page, an index page, a dictionary page and a data page v2. Fields 2 and 3 are its
/// uncompressed and stored sizes.
pub(super) const PAGE_HEADER: &[Shape] = &[
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Struct(DATA_PAGE_HEADER),
    Struct(&[]),
    Struct(&[Value(I32), Value(I32), Bool]),
    Struct(DATA_PAGE_HEADER_V2),
];
/// `DataPageHeader`. Field 1 is the number of values.
pub(super) const DATA_PAGE_HEADER: &[Shape] = &[Value(I32), Value(I32), Value(I32), Value(I32), STATISTICS];
/// `DataPageHeaderV2`. Field 1 is the number of values.
pub(super) const DATA_PAGE_HEADER_V2: &[Shape] = &[
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Bool,
    STATISTICS,
];

/// `ColumnIndex`.
pub(super) const COLUMN_INDEX: &[Shape] = &[List(&Bool), TEXTS, TEXTS, Value(I32), NUMBERS, NUMBERS, NUMBERS];
/// `OffsetIndex`.
pub(super) const OFFSET_INDEX: &[Shape] = &[List(&Struct(&[Value(I64), Value(I32), Value(I64)])), NUMBERS];

const KEY_VALUES: Shape = List(&Struct(&[Value(BINARY), Value(BINARY)]));
const SIZES: Shape = Struct(&[Value(I64), NUMBERS, NUMBERS]);
const BOX: Shape = Struct(&[
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
    Value(DOUBLE),
]);
const COLUMN: Shape = Struct(&[
    Value(I32),
    List(&Value(I32)),
    TEXTS,
    Value(I32),
    Value(I64),
    Value(I64),
    Value(I64),
    KEY_VALUES,
    Value(I64),
    Value(I64),
    Value(I64),
    STATISTICS,
    List(&Struct(&[Value(I32), Value(I32), Value(I32)])),
    Value(I64),
    Value(I32),
    SIZES,
    Struct(&[BOX, List(&Value(I32))]),
]);
const CHUNK: Shape = Struct(&[
    Value(BINARY),
    Value(I64),
    COLUMN,
    Value(I64),
    Value(I32),
    Value(I64),
    Value(I32),
    Any,
    Value(BINARY),
]);
const ROW_GROUP: Shape = Struct(&[
    List(&CHUNK),
    Value(I64),
    Value(I64),
    List(&Struct(&[Value(I32), Bool, Bool])),
    Value(I64),
    Value(I64),
    Value(I16),
]);

/// `FileMetaData`. Field 2 is the schema (`footer::schema` checks it).
pub(super) const FILE_METADATA: &[Shape] = &[
    Value(I32),
    Any,
    Value(I64),
    List(&ROW_GROUP),
    KEY_VALUES,
    Value(BINARY),
    List(&OneOf(&[Empty, Empty])),
    Any,
    Value(BINARY),
];

/// `TimeType` and `TimestampType`: whether it is adjusted to UTC, and the unit.
const TIME: Shape = Struct(&[Bool, OneOf(&[Empty, Empty, Empty])]);
/// `LogicalType`. Field 5 is decimal, 7 time, 8 timestamp, 10 integer; the last three are variant, geometry and geography.
const LOGICAL: Shape = OneOf(&[
    Empty,
    Empty,
    Empty,
    Empty,
    Struct(&[Value(I32), Value(I32)]),
    Empty,
    TIME,
    TIME,
    Any,
    Struct(&[Value(BYTE), Bool]),
    Empty,
    Empty,
    Empty,
    Empty,
    Empty,
    Struct(&[Value(BYTE)]),
    Struct(&[Value(BINARY)]),
    Struct(&[Value(BINARY), Value(I32)]),
]);

/// `SchemaElement`. Field 5 is the number of children.
pub(super) const SCHEMA_ELEMENT: &[Shape] = &[
    Value(I32),
    Value(I32),
    Value(I32),
    Value(BINARY),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    LOGICAL,
];

/// Skips a structure with these fields.
pub(super) fn skip_struct(bytes: &mut CompactReader<'_>, shapes: &[Shape]) -> Result<()> {
    let mut last_id = 0;
    while let Some(field) = bytes.field(last_id)? {
        skip_field(bytes, field, shapes)?;
        last_id = field.id;
    }
    Ok(())
}

/// Skips a field of a structure with these fields.
pub(super) fn skip_field(bytes: &mut CompactReader<'_>, field: FieldHeader, shapes: &[Shape]) -> Result<()> {
    let index = usize::try_from(field.id).ok().and_then(|id| id.checked_sub(1));
    match (index.and_then(|index| shapes.get(index)), field.kind) {
        (None | Some(Any), kind) => bytes.skip_value(kind),
        (Some(Bool), TRUE | FALSE) => Ok(()),
        (Some(shape), kind) => skip_shape(bytes, kind, shape, field),
    }
}

fn skip_union(bytes: &mut CompactReader<'_>, shapes: &[Shape]) -> Result<()> {
    let field = bytes
        .field(0)?
        .ok_or_else(|| malformed("expected one field in a union, found none"))?;
    skip_field(bytes, field, shapes)?;
    match bytes.field(field.id)? {
        None => Ok(()),
        Some(_) => Err(malformed("expected one field in a union, found several")),
    }
}

fn skip_shape(bytes: &mut CompactReader<'_>, kind: u8, shape: &Shape, parent: FieldHeader) -> Result<()> {
    match (shape, kind) {
        (Value(expected), _) if *expected == kind => bytes.skip_value(kind),
        // In a list, a boolean takes a byte.
        (Bool, TRUE | FALSE) => bytes.skip_bytes(1),
        (Struct(shapes), STRUCT) => skip_struct(bytes, shapes),
        (OneOf(shapes), STRUCT) => skip_union(bytes, shapes),
        (Empty, STRUCT) => match bytes.byte()? {
            0 => Ok(()),
            _ => Err(unexpected(kind, parent)),
        },
        (List(element), LIST) => {
            let (kind, length) = bytes.list()?;
            (0..length).try_for_each(|_| skip_shape(bytes, kind, element, parent))
        }
        (Any, _) => bytes.skip_value(kind),
        _ => Err(unexpected(kind, parent)),
    }
}

fn unexpected(kind: u8, parent: FieldHeader) -> Error {
    malformed(format_args!(
        "expected the kind that the format defines, found kind {kind} in field {} of kind {}",
        parent.id, parent.kind
    ))
}
