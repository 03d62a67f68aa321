//! Holds a message's header against its body, so that what Arrow does with both can fail but not panic.
//!
//! The types are those that pushdown's own streams are made of: integers, floats, text, binary, lists and structs
//! of them. Dictionaries, views, unions and the rest are refused.

#[cfg(test)]
mod tests;

use arrow_ipc as fb;
use arrow_schema::{DataType, Schema};

use super::frames::Message;
use crate::{Error, Result};

/// The deepest nesting of types.
const MAX_DEPTH: usize = 4;
/// The most fields of a schema, nested ones included.
const MAX_FIELDS: usize = 1 << 16;
/// The most stored bytes of a compressed buffer that is read, or written. Arrow's LZ4 decoder sets the announced length
/// aside, and inflates before it compares.
pub(crate) const MAX_COMPRESSED: usize = 1 << 20;
/// What LZ4 cannot exceed.
const MAX_RATIO: u64 = 255;

/// Checks that a schema has only types that are known here, before Arrow reads it.
pub(super) fn schema(schema: &fb::Schema<'_>) -> Result<()> {
    let fields = schema
        .fields()
        .ok_or_else(|| Error::wire("found an Arrow schema without fields"))?;
    if schema.endianness() != fb::Endianness::Little {
        return Err(Error::wire("found an Arrow schema that is not little-endian"));
    }
    let mut budget = MAX_FIELDS;
    fields
        .iter()
        .try_for_each(|field| check_field(&field, MAX_DEPTH, &mut budget))
}

fn check_field(field: &fb::Field<'_>, depth: usize, budget: &mut usize) -> Result<()> {
    let unknown = || {
        let name: String = field.name().unwrap_or_default().chars().take(64).collect();
        Error::wire(format!(
            "found Arrow field {name:?} of a type that is not known here ({:?})",
            field.type_type()
        ))
    };
    let depth = depth.checked_sub(1).ok_or_else(unknown)?;
    *budget = budget.checked_sub(1).ok_or_else(unknown)?;
    let children = field.children();
    let count = match &children {
        Some(children) => children.len(),
        None => 0,
    };
    let known = field.dictionary().is_none()
        && match field.type_type() {
            fb::Type::Int => field
                .type_as_int()
                .is_some_and(|int| matches!(int.bitWidth(), 8 | 16 | 32 | 64)),
            fb::Type::FloatingPoint => field.type_as_floating_point().is_some_and(|float| {
                matches!(float.precision(), fb::Precision::HALF | fb::Precision::SINGLE)
            }),
            fb::Type::Utf8 | fb::Type::LargeUtf8 | fb::Type::Binary | fb::Type::LargeBinary => true,
            fb::Type::List => count == 1,
            fb::Type::FixedSizeList => {
                count == 1
                    && field
                        .type_as_fixed_size_list()
                        .is_some_and(|list| list.listSize() >= 0)
            }
            fb::Type::Struct_ => count > 0,
            _ => false,
        };
    if !known {
        return Err(unknown());
    }
    children
        .into_iter()
        .flatten()
        .try_for_each(|child| check_field(&child, depth, budget))
}

/// Checks what does not take the schema, and gives the number of rows.
pub(super) fn batch(message: &Message) -> Result<usize> {
    let malformed = |what: &str| Error::wire(format!("found an Arrow record batch {what}"));
    let batch = message.batch().ok_or_else(|| malformed("that is none"))?;
    if batch
        .variadicBufferCounts()
        .is_some_and(|counts| !counts.is_empty())
    {
        return Err(malformed("with views"));
    }
    if batch
        .compression()
        .is_some_and(|compression| compression.codec() != fb::CompressionType::LZ4_FRAME)
    {
        return Err(malformed("compressed with another codec than LZ4"));
    }
    let stored = message.body().len() as u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
        if !matches!(range, (Ok(offset), Ok(length)) if offset.checked_add(length).is_some_and(|end| end <= stored))
        {
            return Err(malformed("with a buffer outside its body"));
        }
    }
    u32::try_from(batch.length())
        .map(|rows| rows as usize)
        .map_err(|_| malformed("of impossible length"))
}

/// Checks that nodes and buffers fit the schema, and the columns in `read` in depth.
pub(super) fn columns(message: &Message, schema: &Schema, read: &[usize]) -> Result<()> {
    let malformed = || Error::wire("found an Arrow record batch without nodes or buffers");
    let batch = message.batch().ok_or_else(malformed)?;
    let mut walk = Walk {
        nodes: batch.nodes().ok_or_else(malformed)?.iter(),
        buffers: batch.buffers().ok_or_else(malformed)?.iter(),
        body: message.body().as_slice(),
        compressed: batch.compression().is_some(),
        deep: false,
    };
    for (index, field) in schema.fields().iter().enumerate() {
        walk.deep = read.contains(&index);
        let rows = walk.column(field.data_type())?;
        if walk.deep && i64::try_from(rows) != Ok(batch.length()) {
            return Err(Error::wire(format!(
                "found {rows} rows in column {:?} of {}",
                field.name(),
                batch.length()
            )));
        }
    }
    Ok(())
}

/// Goes through nodes and buffers in the order in which Arrow will.
struct Walk<'a, N, B> {
    nodes: N,
    buffers: B,
    body: &'a [u8],
    compressed: bool,
    /// Whether the column will be read, rather than passed over.
    deep: bool,
}

impl<'a, N, B> Walk<'a, N, B>
where
    N: Iterator<Item = &'a fb::FieldNode>,
    B: Iterator<Item = &'a fb::Buffer>,
{
    /// Checks a column and what is below it; gives its length.
    fn column(&mut self, data_type: &DataType) -> Result<usize> {
        let node = self
            .nodes
            .next()
            .ok_or_else(|| Error::wire("found too few nodes in an Arrow record batch"))?;
        // Any array of ours is counted in 32 bits, so that no product below overflows.
        let (Ok(length), Ok(nulls)) = (u32::try_from(node.length()), u32::try_from(node.null_count())) else {
            return Err(Error::wire("found an Arrow array of impossible length"));
        };
        let length = length as usize;
        if nulls as usize > length {
            return Err(Error::wire("found more nulls than rows in an Arrow array"));
        }
        // Of an empty array, and of one without nulls, the buffers may be missing.
        let offsets = if length > 0 { length + 1 } else { 0 };
        self.buffer(if nulls > 0 { length.div_ceil(8) } else { 0 }, 1)?;
        match data_type {
            DataType::Utf8 | DataType::Binary => {
                self.buffer(offsets, size_of::<i32>())?;
                self.buffer(0, 1)?;
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                self.buffer(offsets, size_of::<i64>())?;
                self.buffer(0, 1)?;
            }
            DataType::List(item) => {
                self.buffer(offsets, size_of::<i32>())?;
                self.column(item.data_type())?;
            }
            DataType::FixedSizeList(item, size) => {
                let elements = self.column(item.data_type())?;
                if usize::try_from(*size).is_ok_and(|size| elements < length * size) {
                    return Err(Error::wire("found too few elements in an Arrow list"));
                }
            }
            DataType::Struct(fields) => {
                for field in fields {
                    if self.column(field.data_type())? != length {
                        return Err(Error::wire("found columns of unequal length in an Arrow struct"));
                    }
                }
            }
            primitive => self.buffer(length, primitive.primitive_width().unwrap_or(1))?,
        }
        Ok(length)
    }

    /// Checks that the next buffer has at least `count` elements of `width` bytes, and no part of one.
    fn buffer(&mut self, count: usize, width: usize) -> Result<()> {
        let malformed = |what: &str| Error::wire(format!("found {what} in an Arrow record batch"));
        let buffer = self.buffers.next().ok_or_else(|| malformed("too few buffers"))?;
        if !self.deep {
            return Ok(());
        }
        let range = usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok());
        let stored = range.and_then(|(offset, length)| self.body.get(offset..)?.get(..length));
        let stored = stored.ok_or_else(|| malformed("a buffer outside its body"))?;
        let length = if self.compressed && !stored.is_empty() {
            inflated(stored)?
        } else {
            stored.len()
        };
        if length < count * width || length % width != 0 {
            return Err(malformed(&format!(
                "a buffer of {length} bytes, expected {count} times {width},"
            )));
        }
        Ok(())
    }
}

/// The length of a compressed buffer once it is not.
fn inflated(stored: &[u8]) -> Result<usize> {
    let malformed = || Error::wire("found a compressed buffer without its length in an Arrow record batch");
    let (length, rest) = stored.split_first_chunk().ok_or_else(malformed)?;
    match i64::from_le_bytes(*length) {
        -1 => Ok(rest.len()),
        _ if rest.len() > MAX_COMPRESSED => Err(Error::too_large(format!(
            "a compressed Arrow buffer of {} bytes is more than the limit of {MAX_COMPRESSED}",
            rest.len()
        ))),
        length => match usize::try_from(length) {
            Ok(bytes) if bytes as u64 <= rest.len() as u64 * MAX_RATIO => Ok(bytes),
            _ => Err(malformed()),
        },
    }
}
