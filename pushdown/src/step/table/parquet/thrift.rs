//! Thrift's compact protocol, as far as Parquet has it, gone through without setting anything aside.

use crate::{Error, Result};

/// Kinds of values as the protocol numbers them; those of `TRUE` and `FALSE` are the value.
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

/// How deep what is passed over may be nested: no footer has more than two or three.
const MAX_SKIPPED: u8 = 16;

/// Bytes that are read from their start.
pub(super) struct Compact<'a>(&'a [u8]);

/// What a field of a struct starts with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) id: i16,
    pub(super) kind: u8,
}

impl<'a> Compact<'a> {
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
        let (byte, rest) = self.0.split_first().ok_or_else(cut)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// A number with a sign, however wide it was written.
    pub(super) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T> {
        let number = self.varint()?;
        let sign = (number & 1).cast_signed().wrapping_neg();
        let number = (number >> 1).cast_signed() ^ sign;
        T::try_from(number).map_err(|_| malformed(format_args!("the number {number} out of its range")))
    }

    /// The next field of a struct, behind the one with the id `last`; none at its end.
    pub(super) fn field(&mut self, last: i16) -> Result<Option<Field>> {
        let header = self.byte()?;
        let kind = header & 0x0f;
        if kind == 0 {
            return Ok(None);
        }
        let id = match header >> 4 {
            0 => self.integer()?,
            more => last
                .checked_add(i16::from(more))
                .ok_or_else(|| malformed("a field whose number is out of range"))?,
        };
        Ok(Some(Field { id, kind }))
    }

    /// The kind of a list's elements, and how many there are: each has a byte at least.
    pub(super) fn list(&mut self) -> Result<(u8, usize)> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        match usize::try_from(length) {
            Ok(length) if length <= self.0.len() => Ok((header & 0x0f, length)),
            _ => Err(malformed(format_args!(
                "a list of {length} elements, expected at most {}, which is how many bytes are left",
                self.0.len()
            ))),
        }
    }

    /// Goes past a value.
    pub(super) fn skip(&mut self, kind: u8) -> Result<()> {
        self.skip_within(kind, MAX_SKIPPED)
    }

    fn skip_within(&mut self, kind: u8, depth: u8) -> Result<()> {
        let deeper = depth.checked_sub(1).ok_or_else(|| {
            malformed(format_args!(
                "values nested deeper than {MAX_SKIPPED} in a field that is not known"
            ))
        })?;
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            UUID => self.pass(16),
            BINARY => {
                let length = self.varint()?;
                self.pass(usize::try_from(length).map_err(|_| cut())?)
            }
            LIST | SET => match self.list()? {
                // Readers disagree about how many bytes these take.
                (TRUE | FALSE, 1..) => Err(malformed("a list of booleans in a field that is not known")),
                (kind, length) => (0..length).try_for_each(|_| self.skip_within(kind, deeper)),
            },
            STRUCT => {
                while let Some(field) = self.field(0)? {
                    self.skip_within(field.kind, deeper)?;
                }
                Ok(())
            }
            other => Err(malformed(format_args!("a value of the unknown kind {other}"))),
        }
    }

    /// Goes past so many bytes.
    pub(super) fn pass(&mut self, length: usize) -> Result<()> {
        self.0 = self.0.get(length..).ok_or_else(cut)?;
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
        Err(malformed("a number of more than 64 bits"))
    }
}

/// What is wrong with a file.
pub(super) fn malformed(found: impl std::fmt::Display) -> Error {
    Error::undecodable(format!("found malformed Parquet: its metadata has {found}"))
}

fn cut() -> Error {
    Error::undecodable("found malformed Parquet: its metadata ends in the middle of a value")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn numbers_and_fields_are_read() {
        let mut bytes = Compact::new(&[0x15, 0x03, 0x06, 0xd0, 0x0f, 0xac, 0x02, 0xf0]);
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
    fn what_is_not_known_is_passed_over() {
        // A list of two texts, a struct with a struct in it, a double.
        let values = [
            (LIST, &[0x28, 1, b'a', 2, b'b', b'c'][..]),
            (STRUCT, &[0x1c, 0x15, 0x80, 0x01, 0, 0x11, 0][..]),
            (DOUBLE, &[0; 8][..]),
        ];
        for (kind, value) in values {
            let object = [value, &[7]].concat();
            let mut bytes = Compact::new(&object);
            bytes.skip(kind).unwrap();
            assert_eq!(bytes.byte().unwrap(), 7, "{kind}");
            for length in 0..value.len() {
                let error = Compact::new(&value[..length]).skip(kind).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Undecodable, "{kind} {length}: {error}");
            }
        }
    }

    #[test]
    fn nests_and_long_numbers_end() {
        for (kind, value) in [(STRUCT, [0x1c_u8; 100]), (LIST, [0x19; 100]), (I64, [0xff; 100])] {
            let error = Compact::new(&value).skip(kind).unwrap_err();
            assert!(error.to_string().contains("its metadata has"), "{kind}: {error}");
        }
    }
}
