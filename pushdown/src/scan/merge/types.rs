//! The type that holds the values of a column in two objects without loss.

use std::{cmp::max, sync::Arc};

use arrow_array::{Array as _, ArrayRef, cast::AsArray as _};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{
    ArrowError, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Fields,
    TimeUnit,
    extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY},
};
use pushdown_core::table::conversion::convert;

/// The largest width in bits of whole numbers that `Float32` holds.
const FLOAT32_BITS: u8 = 16;

/// The column of both, with the name and the order of fields of the first one. `None` if no type holds both.
///
/// A merged column and one of those that were merged into it have the merged type again.
pub(super) fn merge_fields(first: &Field, second: &Field) -> Option<Field> {
    let data_type = merge_types(first.data_type(), second.data_type())?;
    let is_null = |field: &Field| *field.data_type() == DataType::Null;
    let nullable = first.is_nullable() || second.is_nullable() || is_null(first) || is_null(second);
    let merged = match (is_null(first), is_null(second)) {
        (true, false) => second.clone().with_name(first.name()),
        (false, true) => first.clone(),
        _ => with_common_metadata(first, second)?,
    };
    Some(merged.with_data_type(data_type).with_nullable(nullable))
}

/// The first field with the metadata that both have. `None` for different extension types.
fn with_common_metadata(first: &Field, second: &Field) -> Option<Field> {
    if first.metadata() == second.metadata() {
        return Some(first.clone());
    }
    let extension = |field: &Field| {
        let value = |key| field.metadata().get(key).cloned();
        let name = value(EXTENSION_TYPE_NAME_KEY)?;
        Some((name, value(EXTENSION_TYPE_METADATA_KEY).unwrap_or_default()))
    };
    let (own, other) = (extension(first), extension(second));
    if own.is_some() && other.is_some() && own != other {
        return None;
    }
    let mut metadata = first.metadata().clone();
    metadata.retain(|key, value| second.metadata().get(key) == Some(value));
    Some(first.clone().with_metadata(metadata))
}

/// The type that holds the values of both.
pub(super) fn merge_types(first: &DataType, second: &DataType) -> Option<DataType> {
    use DataType::{
        Date32, Date64, Decimal128, Decimal256, Dictionary, Duration, Float16, Float32, Float64, Map, Null,
        Struct, Timestamp,
    };
    Some(match (first, second) {
        // The dictionaries of several objects have more values than that of one.
        (Dictionary(key, value), Dictionary(other_key, other)) => {
            let key = merge_integers(integer(key)?, integer(other_key)?);
            let key = if key == DataType::Int64 {
                key
            } else {
                DataType::Int32
            };
            Dictionary(Box::new(key), Box::new(merge_types(value, other)?))
        }
        _ if first == second => first.clone(),
        (Null, other) | (other, Null) => other.clone(),
        (Dictionary(_, value), other) => merge_types(value, other)?,
        (other, Dictionary(_, value)) => merge_types(other, value)?,
        (Float16 | Float32 | Float64, Float16 | Float32 | Float64) => {
            if *first == Float64 || *second == Float64 {
                Float64
            } else {
                Float32
            }
        }
        (Float16 | Float32 | Float64, _) => merge_float(first, integer(second)?),
        (_, Float16 | Float32 | Float64) => merge_float(second, integer(first)?),
        (Date32 | Date64, Date32 | Date64) => Date64,
        (Timestamp(unit, zone), Timestamp(other_unit, other)) => {
            let zone = match (zone, other) {
                (None, None) => None,
                (Some(zone), Some(other)) if zone == other => Some(Arc::clone(zone)),
                (Some(_), Some(_)) => Some("UTC".into()),
                _ => return None,
            };
            Timestamp(max(*unit, *other_unit), zone)
        }
        (Duration(unit), Duration(other)) => Duration(max(*unit, *other)),
        (Struct(fields), Struct(others)) => Struct(merge_structs(fields, others)?),
        (Map(entries, sorted), Map(others, others_sorted)) => Map(
            Arc::new(merge_fields(entries, others)?),
            *sorted && *others_sorted,
        ),
        _ => {
            if let (Some(one), Some(other)) = (integer(first), integer(second)) {
                merge_integers(one, other)
            } else if let (Some(unit), Some(other)) = (time_unit(first), time_unit(second)) {
                match max(unit, other) {
                    unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
                    unit => DataType::Time64(unit),
                }
            } else if let (Some((digits, scale)), Some((others, other_scale))) =
                (decimal(first), decimal(second))
            {
                let scale = max(scale, other_scale);
                let precision = u8::try_from(max(digits, others) + i16::from(scale)).ok()?;
                let is_wide = |data_type: &DataType| matches!(data_type, Decimal256(..));
                if precision <= DECIMAL128_MAX_PRECISION && !is_wide(first) && !is_wide(second) {
                    Decimal128(precision, scale)
                } else {
                    (precision <= DECIMAL256_MAX_PRECISION).then_some(Decimal256(precision, scale))?
                }
            } else if let (Some(one), Some(other)) = (bytes(first), bytes(second)) {
                one.merge(other)?
            } else {
                merge_lists(first, second)?
            }
        }
    })
}

/// A whole number: whether it has a sign, and its bits.
fn integer(data_type: &DataType) -> Option<(bool, u8)> {
    let bits = u8::try_from(data_type.primitive_width()? * 8).ok()?;
    data_type
        .is_integer()
        .then(|| (data_type.is_signed_integer(), bits))
}

/// `UInt64` and a type with a sign are `Int64`: a greater value is an error when it is read.
const fn merge_integers((signed, bits): (bool, u8), (other_signed, other_bits): (bool, u8)) -> DataType {
    let is_signed = signed || other_signed;
    // A number without a sign needs one more bit, and so the next width.
    let own = if is_signed && !signed { bits * 2 } else { bits };
    let other = if is_signed && !other_signed {
        other_bits * 2
    } else {
        other_bits
    };
    let bits = if own > other { own } else { other };
    match (is_signed, bits) {
        (true, 8) => DataType::Int8,
        (true, 16) => DataType::Int16,
        (true, 32) => DataType::Int32,
        (true, _) => DataType::Int64,
        (false, 8) => DataType::UInt8,
        (false, 16) => DataType::UInt16,
        (false, 32) => DataType::UInt32,
        (false, _) => DataType::UInt64,
    }
}

fn merge_float(float: &DataType, (_, bits): (bool, u8)) -> DataType {
    if bits <= FLOAT32_BITS && *float != DataType::Float64 {
        DataType::Float32
    } else {
        DataType::Float64
    }
}

const fn time_unit(data_type: &DataType) -> Option<TimeUnit> {
    match data_type {
        DataType::Time32(unit) | DataType::Time64(unit) => Some(*unit),
        _ => None,
    }
}

/// The digits of a decimal or of a whole number before the point, and those after it.
fn decimal(data_type: &DataType) -> Option<(i16, i8)> {
    match data_type {
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => Some((i16::from(*precision) - i16::from(*scale), *scale)),
        _ => match integer(data_type)? {
            (_, 8) => Some((3, 0)),
            (_, 16) => Some((5, 0)),
            (_, 32) => Some((10, 0)),
            _ => Some((20, 0)),
        },
    }
}

/// A type of texts or bytes.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    is_text: bool,
    is_large: bool,
    has_fixed_size: bool,
}

const fn bytes(data_type: &DataType) -> Option<Bytes> {
    let (is_text, is_large) = match data_type {
        DataType::Utf8 | DataType::Utf8View => (true, false),
        DataType::LargeUtf8 => (true, true),
        DataType::Binary | DataType::BinaryView | DataType::FixedSizeBinary(_) => (false, false),
        DataType::LargeBinary => (false, true),
        _ => return None,
    };
    Some(Bytes {
        is_text,
        is_large,
        has_fixed_size: matches!(data_type, DataType::FixedSizeBinary(_)),
    })
}

impl Bytes {
    /// Texts that old writers do not mark as such are bytes. Bytes of a fixed size are no texts.
    const fn merge(self, other: Self) -> Option<DataType> {
        let has_text = self.is_text || other.is_text;
        if has_text && (self.has_fixed_size || other.has_fixed_size) {
            return None;
        }
        Some(
            match (self.is_text && other.is_text, self.is_large || other.is_large) {
                (true, false) => DataType::Utf8,
                (true, true) => DataType::LargeUtf8,
                (false, false) => DataType::Binary,
                (false, true) => DataType::LargeBinary,
            },
        )
    }
}

/// The fields of both by name; those that one lacks are null.
fn merge_structs(fields: &Fields, others: &Fields) -> Option<Fields> {
    let optional = |field: &FieldRef| Field::clone(field).with_nullable(true);
    let merged = fields
        .iter()
        .enumerate()
        .map(|(index, field)| match find(others, index, field.name()) {
            Some(other) => merge_fields(field, other),
            None => Some(optional(field)),
        });
    let added = others.iter().enumerate();
    let added = added.filter(|(index, other)| find(fields, *index, other.name()).is_none());
    let added = added.map(|(_, other)| other);
    merged.chain(added.map(|other| Some(optional(other)))).collect()
}

/// The field of a name. Most structs have the same order.
fn find<'a>(fields: &'a Fields, index: usize, name: &str) -> Option<&'a FieldRef> {
    let same_place = fields.get(index).filter(|field| field.name() == name);
    same_place.or_else(|| fields.find(name).map(|(_, field)| field))
}

fn merge_lists(first: &DataType, second: &DataType) -> Option<DataType> {
    let item = |data_type: &DataType| match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            Some(FieldRef::clone(item))
        }
        _ => None,
    };
    let item = Arc::new(merge_fields(&*item(first)?, &*item(second)?)?);
    let is_large = |data_type: &DataType| matches!(data_type, DataType::LargeList(_));
    Some(match (first, second) {
        (DataType::FixedSizeList(_, length), DataType::FixedSizeList(_, other)) if length == other => {
            DataType::FixedSizeList(item, *length)
        }
        _ if is_large(first) || is_large(second) => DataType::LargeList(item),
        _ => DataType::List(item),
    })
}

/// Converts an array that is not nested to the type of a merged column.
///
/// # Errors
/// For a value that the type does not hold.
pub(super) fn convert_leaf(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), field.data_type()) {
        (DataType::Dictionary(..), DataType::Dictionary(_, value)) => {
            let dictionary = array.as_any_dictionary();
            let value = Field::new("", DataType::clone(value), true);
            let values = convert(dictionary.values(), &value, &convert_leaf)?;
            cast(&dictionary.with_values(values), field.data_type(), false)
        }
        (DataType::Dictionary(_, value), _) => convert(&cast(array, value, false)?, field, &convert_leaf),
        (number, float) if number.is_integer() && float.is_floating() => {
            let floats = cast(array, float, false)?;
            // A number that does not come back is null.
            let back = cast(&floats, number, true)?;
            if back.as_ref() == array.as_ref() {
                return Ok(floats);
            }
            Err(ArrowError::CastError(format!(
                "expected whole numbers that {float} holds, found greater ones"
            )))
        }
        (_, other) => cast(array, other, false),
    }
}

fn cast(array: &ArrayRef, data_type: &DataType, safe: bool) -> Result<ArrayRef, ArrowError> {
    let options = CastOptions {
        safe,
        ..CastOptions::default()
    };
    cast_with_options(array, data_type, &options)
}
