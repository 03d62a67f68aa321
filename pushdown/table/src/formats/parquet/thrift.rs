//! Reads the part of Thrift's compact protocol that Parquet uses, without allocating memory.

use pushdown_core::{Error, Result};

/// Kinds of values, as numbered by the protocol. `TRUE` and `FALSE` include the value.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const BYTE: u8 = 3;
pub(super) const I16: u8 = 4;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Maximum nesting depth of skipped values. Footers have two or three levels.
const MAX_SKIPPED_DEPTH: u8 = 16;

/// Reads values from the start of bytes.
pub(super) struct CompactReader<'a>(&'a [u8]);

/// The header of a field of a struct.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldHeader {
    pub(super) id: i16,
    pub(super) kind: u8,
}

impl<'a> CompactReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        let (byte, rest) = self.0.split_first().ok_or_else(truncated)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// A signed number of any stored width.
    pub(super) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let number = self.varint()?;
        let sign = (number & 1).cast_signed().wrapping_neg();
        let number = (number >> 1).cast_signed() ^ sign;
        T::try_from(number).map_err(|_| {
            malformed(format_args!(
                "expected a number in the range of its field, found the number {number}"
            ))
        })
    }

    /// The next field of a struct, after the one with the id `last_id`. `None` at the end of the struct.
    pub(super) fn field(&mut self, last_id: i16) -> Result<Option<FieldHeader>> {
        let header = self.byte()?;
        let kind = header & 0x0f;
        if kind == 0 {
            return Ok(None);
        }
        let id = match header >> 4 {
            0 => self.integer()?,
            delta => last_id
                .checked_add(i16::from(delta))
                .ok_or_else(|| malformed("expected the id of a field in 16 bits, found a larger one"))?,
        };
        Ok(Some(FieldHeader { id, kind }))
    }

    /// The kind and the number of a list's elements. Each element takes at least one byte.
    pub(super) fn list(&mut self) -> Result<(u8, usize)> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        match usize::try_from(length) {
            Ok(length) if length <= self.0.len() => Ok((header & 0x0f, length)),
            _ => Err(malformed(format_args!(
                "expected at most {} elements in a list, one per byte left, found {length}",
                self.0.len()
            ))),
        }
    }

    /// Skips a value.
    pub(super) fn skip_value(&mut self, kind: u8) -> Result<()> {
        self.skip_within(kind, MAX_SKIPPED_DEPTH)
    }

    fn skip_within(&mut self, kind: u8, depth: u8) -> Result<()> {
        let deeper = depth.checked_sub(1).ok_or_else(|| {
            malformed(format_args!(
                "expected an unknown field at most {MAX_SKIPPED_DEPTH} levels deep, found a deeper one"
            ))
        })?;
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.skip_bytes(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.skip_bytes(8),
            UUID => self.skip_bytes(16),
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(usize::try_from(length).map_err(|_| truncated())?)
            }
            LIST | SET => match self.list()? {
                // Readers disagree about the size of booleans in lists.
                (TRUE | FALSE, 1..) => Err(malformed("unsupported unknown field: a list of booleans")),
                (kind, length) => (0..length).try_for_each(|_| self.skip_within(kind, deeper)),
            },
            STRUCT => {
                while let Some(field) = self.field(0)? {
                    self.skip_within(field.kind, deeper)?;
                }
                Ok(())
            }
            other => Err(malformed(format_args!(
                "expected a kind of the protocol, found kind {other}"
            ))),
        }
    }

    /// Skips `length` bytes.
    pub(super) fn skip_bytes(&mut self, length: usize) -> Result<()> {
        self.0 = self.0.get(length..).ok_or_else(truncated)?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(malformed(
            "expected a number of at most 64 bits, found a longer one",
        ))
    }
}

/// The error for metadata that does not follow the format.
pub(super) fn malformed(problem: impl std::fmt::Display) -> Error {
    Error::undecodable(format!("malformed Parquet metadata: {problem}"))
}

fn truncated() -> Error {
    Error::undecodable("malformed Parquet metadata: it ends in the middle of a value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushdown_core::ErrorKind;

    #[test]
    fn numbers_and_fields_are_read() {
        let mut bytes = CompactReader::new(&[0x15, 0x03, 0x06, 0xd0, 0x0f, 0xac, 0x02, 0xf0]);
        let field = bytes.field(0).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (1, I32));
        assert_eq!(bytes.integer::<i32>().unwrap(), -2);
        let field = bytes.field(1).unwrap().unwrap();
        assert_eq!((field.id, field.kind), (1000, I64));
        assert_eq!(bytes.integer::<i64>().unwrap(), 150);
        assert!(bytes.field(1000).unwrap().is_none());
        assert!(bytes.byte().is_err());
    }

    #[test]
    fn unknown_values_are_skipped() {
        // A list of two texts, a struct with a struct in it, a double.
        let values = [
            (LIST, &[0x28, 1, b'a', 2, b'b', b'c'][..]),
            (STRUCT, &[0x1c, 0x15, 0x80, 0x01, 0, 0x11, 0][..]),
            (DOUBLE, &[0; 8][..]),
        ];
        for (kind, value) in values {
            let object = [value, &[7]].concat();
            let mut bytes = CompactReader::new(&object);
            bytes.skip_value(kind).unwrap();
            assert_eq!(bytes.byte().unwrap(), 7, "{kind}");
            for length in 0..value.len() {
                let error = CompactReader::new(&value[..length]).skip_value(kind).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Undecodable, "{kind} {length}: {error}");
            }
        }
    }

    #[test]
    fn deep_nesting_and_long_numbers_are_malformed() {
        for (kind, value) in [(STRUCT, [0x1c_u8; 100]), (LIST, [0x19; 100]), (I64, [0xff; 100])] {
            let error = CompactReader::new(&value).skip_value(kind).unwrap_err();
            assert!(
                error.to_string().contains("malformed Parquet metadata: expected"),
                "{kind}: {error}"
            );
        }
    }
}
