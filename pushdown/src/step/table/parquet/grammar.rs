//! What Parquet's own structures look like (`parquet.thrift` of the Parquet format, 2.12).
//!
//! Parquet's decoder goes by the numbers of fields, and passes over what it does not know as often as a list claims. So bytes
//! are looked through before it sees them: each field that the format knows has the kind that the format gives it, and nothing
//! is longer than the bytes that are there.

use super::thrift::{
    BINARY, BYTE, Compact, DOUBLE, FALSE, Field, I16, I32, I64, LIST, STRUCT, TRUE, malformed,
};
use crate::{Error, Result};

/// What a field holds.
pub(super) enum Shape {
    Value(u8),
    Bool,
    List(&'static Self),
    /// Its fields, numbered from 1.
    Struct(&'static [Self]),
    /// A union: a structure of one of these.
    OneOf(&'static [Self]),
    /// A structure without fields: the decoder takes it for one byte.
    Empty,
    /// What is not read here.
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

/// `PageHeader`, with those of a data page, an index page, a dictionary page, and a data page of the second version. The second
/// field and the third are its sizes.
pub(super) const PAGE: &[Shape] = &[
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Struct(DATA_PAGE),
    Struct(&[]),
    Struct(&[Value(I32), Value(I32), Bool]),
    Struct(DATA_PAGE_V2),
];
/// `DataPageHeader` and `DataPageHeaderV2`. The first field of either is how many values it has.
pub(super) const DATA_PAGE: &[Shape] = &[Value(I32), Value(I32), Value(I32), Value(I32), STATISTICS];
pub(super) const DATA_PAGE_V2: &[Shape] = &[
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Value(I32),
    Bool,
    STATISTICS,
];

/// `ColumnIndex` and `OffsetIndex`.
pub(super) const COLUMN_INDEX: &[Shape] = &[List(&Bool), TEXTS, TEXTS, Value(I32), NUMBERS, NUMBERS, NUMBERS];
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

/// `FileMetaData`; the second field is the schema, which is looked through by itself.
pub(super) const FILE: &[Shape] = &[
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

/// Of a time: adjusted to UTC, and its unit.
const TIME: Shape = Struct(&[Bool, OneOf(&[Empty, Empty, Empty])]);
/// `LogicalType`: the fifth is a decimal, then from the seventh on time, timestamp and, as the tenth, integer; the last ones are
/// variant, geometry and geography.
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

/// `SchemaElement`; the fifth field is how many children it has.
pub(super) const ELEMENT: &[Shape] = &[
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

/// Goes past a structure of these fields.
pub(super) fn structure(bytes: &mut Compact<'_>, shapes: &[Shape]) -> Result<()> {
    let mut last = 0;
    while let Some(field) = bytes.field(last)? {
        member(bytes, field, shapes)?;
        last = field.id;
    }
    Ok(())
}

/// Goes past a field of a structure of these fields.
pub(super) fn member(bytes: &mut Compact<'_>, field: Field, shapes: &[Shape]) -> Result<()> {
    let place = usize::try_from(field.id).ok().and_then(|id| id.checked_sub(1));
    match (place.and_then(|place| shapes.get(place)), field.kind) {
        (None | Some(Any), kind) => bytes.skip(kind),
        (Some(Bool), TRUE | FALSE) => Ok(()),
        (Some(shape), kind) => value(bytes, kind, shape, field),
    }
}

fn one_of(bytes: &mut Compact<'_>, shapes: &[Shape]) -> Result<()> {
    let field = bytes.field(0)?.ok_or_else(|| malformed("a union of nothing"))?;
    member(bytes, field, shapes)?;
    match bytes.field(field.id)? {
        None => Ok(()),
        Some(_) => Err(malformed("a union of several")),
    }
}

fn value(bytes: &mut Compact<'_>, kind: u8, shape: &Shape, within: Field) -> Result<()> {
    match (shape, kind) {
        (Value(expected), _) if *expected == kind => bytes.skip(kind),
        // In a list each has a byte.
        (Bool, TRUE | FALSE) => bytes.pass(1),
        (Struct(shapes), STRUCT) => structure(bytes, shapes),
        (OneOf(shapes), STRUCT) => one_of(bytes, shapes),
        (Empty, STRUCT) => match bytes.byte()? {
            0 => Ok(()),
            _ => Err(unexpected(kind, within)),
        },
        (List(of), LIST) => {
            let (kind, length) = bytes.list()?;
            (0..length).try_for_each(|_| value(bytes, kind, of, within))
        }
        (Any, _) => bytes.skip(kind),
        _ => Err(unexpected(kind, within)),
    }
}

fn unexpected(kind: u8, within: Field) -> Error {
    malformed(format_args!(
        "field {} of kind {} with a value of kind {kind} in it, expected it as the format has it",
        within.id, within.kind
    ))
}
