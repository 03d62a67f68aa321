//! Validates the header of a message against its body, so that Arrow returns errors instead of panicking.
//!
//! Accepts the types that pushdown writes: integers, floats, text, binary, and lists and structs of them. Dictionaries,
//! views, unions and other types are errors.

#[cfg(test)]
mod tests;

use arrow_ipc as fb;
use arrow_schema::{DataType, Schema};

use super::message_reader::Message;
use pushdown_core::{Error, Result};

/// Maximum nesting depth of types.
const MAX_DEPTH: usize = 4;
/// Maximum number of fields of a schema, including nested ones.
const MAX_FIELDS: usize = 1 << 16;
/// Maximum size of a compressed buffer that is read or written. The LZ4 decoder of Arrow allocates the announced length, and
/// decompresses before it compares the lengths.
pub(crate) const MAX_COMPRESSED_BYTES: usize = 1 << 20;
/// Maximum compression ratio of LZ4.
const MAX_LZ4_RATIO: u64 = 255;

/// Checks that a schema has only supported types, before Arrow reads it.
pub(super) fn schema(schema: &fb::Schema<'_>) -> Result<()> {
    let fields = schema
        .fields()
        .ok_or_else(|| Error::wire("invalid Arrow schema: no fields"))?;
    if schema.endianness() != fb::Endianness::Little {
        return Err(Error::wire("unsupported Arrow schema: expected little-endian"));
    }
    let mut budget = MAX_FIELDS;
    fields
        .iter()
        .try_for_each(|field| check_field(&field, MAX_DEPTH, &mut budget))
}

fn check_field(field: &fb::Field<'_>, depth: usize, budget: &mut usize) -> Result<()> {
    let unsupported = || {
        let name: String = field.name().unwrap_or_default().chars().take(64).collect();
        Error::wire(format!(
            "unsupported type of Arrow field {name:?}: {:?}",
            field.type_type()
        ))
    };
    let depth = depth.checked_sub(1).ok_or_else(unsupported)?;
    *budget = budget.checked_sub(1).ok_or_else(unsupported)?;
    let children = field.children();
    let count = match &children {
        Some(children) => children.len(),
        None => 0,
    };
    let is_supported = field.dictionary().is_none()
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
    if !is_supported {
        return Err(unsupported());
    }
    children
        .into_iter()
        .flatten()
        .try_for_each(|child| check_field(&child, depth, budget))
}

/// Checks a record batch without its schema, and returns the number of rows.
pub(super) fn batch(message: &Message) -> Result<usize> {
    let malformed = |fault: &str| Error::wire(format!("invalid Arrow record batch: {fault}"));
    let batch = message
        .batch()
        .ok_or_else(|| malformed("not a record batch message"))?;
    if batch
        .variadicBufferCounts()
        .is_some_and(|counts| !counts.is_empty())
    {
        return Err(malformed("views are not supported"));
    }
    if batch
        .compression()
        .is_some_and(|compression| compression.codec() != fb::CompressionType::LZ4_FRAME)
    {
        return Err(malformed("expected LZ4 compression or none"));
    }
    let stored = message.body().len() as u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
        if !matches!(range, (Ok(offset), Ok(length)) if offset.checked_add(length).is_some_and(|end| end <= stored))
        {
            return Err(malformed("a buffer is outside the body"));
        }
    }
    u32::try_from(batch.length())
        .map(|rows| rows as usize)
        .map_err(|_| malformed("impossible number of rows"))
}

/// Checks that nodes and buffers match the schema, and the contents of the columns in `read`.
pub(super) fn columns(message: &Message, schema: &Schema, read: &[usize]) -> Result<()> {
    let malformed = || Error::wire("invalid Arrow record batch: no nodes or buffers");
    let batch = message.batch().ok_or_else(malformed)?;
    let mut walk = Walk {
        nodes: batch.nodes().ok_or_else(malformed)?.iter(),
        buffers: batch.buffers().ok_or_else(malformed)?.iter(),
        body: message.body().as_slice(),
        compressed: batch.compression().is_some(),
        is_read: false,
    };
    for (index, field) in schema.fields().iter().enumerate() {
        walk.is_read = read.contains(&index);
        let rows = walk.column(field.data_type())?;
        if walk.is_read && i64::try_from(rows) != Ok(batch.length()) {
            return Err(Error::wire(format!(
                "invalid column {:?}: expected {} rows, found {rows}",
                field.name(),
                batch.length()
            )));
        }
    }
    Ok(())
}

/// Visits nodes and buffers in the order of Arrow.
struct Walk<'a, N, B> {
    nodes: N,
    buffers: B,
    body: &'a [u8],
    compressed: bool,
    /// Whether the column will be decoded, so that its buffers have to be checked.
    is_read: bool,
}

impl<'a, N, B> Walk<'a, N, B>
where
    N: Iterator<Item = &'a fb::FieldNode>,
    B: Iterator<Item = &'a fb::Buffer>,
{
    /// Checks a column and its children, and returns its length.
    fn column(&mut self, data_type: &DataType) -> Result<usize> {
        let node = self
            .nodes
            .next()
            .ok_or_else(|| Error::wire("invalid Arrow record batch: too few nodes"))?;
        // 32 bits are enough for the arrays of pushdown, and keep the products below from overflowing.
        let (Ok(length), Ok(nulls)) = (u32::try_from(node.length()), u32::try_from(node.null_count())) else {
            return Err(Error::wire("invalid Arrow array: impossible length"));
        };
        let length = length as usize;
        if nulls as usize > length {
            return Err(Error::wire("invalid Arrow array: more nulls than rows"));
        }
        // Offsets may be missing for an empty array, and the validity buffer for an array without nulls.
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
                    return Err(Error::wire("invalid Arrow list: too few elements"));
                }
            }
            DataType::Struct(fields) => {
                for field in fields {
                    if self.column(field.data_type())? != length {
                        return Err(Error::wire("invalid Arrow struct: columns of different lengths"));
                    }
                }
            }
            primitive => self.buffer(length, primitive.primitive_width().unwrap_or(1))?,
        }
        Ok(length)
    }

    /// Checks that the next buffer has at least `count` elements of `width` bytes, and only whole elements.
    fn buffer(&mut self, count: usize, width: usize) -> Result<()> {
        let malformed = |fault: &str| Error::wire(format!("invalid Arrow record batch: {fault}"));
        let buffer = self.buffers.next().ok_or_else(|| malformed("too few buffers"))?;
        if !self.is_read {
            return Ok(());
        }
        let range = usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok());
        let stored = range.and_then(|(offset, length)| self.body.get(offset..)?.get(..length));
        let stored = stored.ok_or_else(|| malformed("a buffer is outside the body"))?;
        let length = if self.compressed && !stored.is_empty() {
            decompressed_bytes(stored)?
        } else {
            stored.len()
        };
        if length < count * width || length % width != 0 {
            return Err(malformed(&format!(
                "expected a buffer of {count} times {width} bytes, found {length}"
            )));
        }
        Ok(())
    }
}

/// The announced decompressed length of a compressed buffer.
fn decompressed_bytes(stored: &[u8]) -> Result<usize> {
    let malformed = || Error::wire("invalid Arrow record batch: invalid length of a compressed buffer");
    let (length, rest) = stored.split_first_chunk().ok_or_else(malformed)?;
    match i64::from_le_bytes(*length) {
        -1 => Ok(rest.len()),
        _ if rest.len() > MAX_COMPRESSED_BYTES => Err(Error::too_large(format!(
            "the compressed Arrow buffer is too large: expected at most {MAX_COMPRESSED_BYTES} bytes, found {}",
            rest.len()
        ))),
        length => match usize::try_from(length) {
            Ok(bytes) if bytes as u64 <= rest.len() as u64 * MAX_LZ4_RATIO => Ok(bytes),
            _ => Err(malformed()),
        },
    }
}
