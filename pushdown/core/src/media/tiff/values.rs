//! The values of a tag: integers and fractions of any TIFF type.

use crate::{Error, Result};

/// The byte order of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// `II`.
    Little,
    /// `MM`.
    Big,
}

impl ByteOrder {
    /// The unsigned integer in `bytes`, of which there are at most 8.
    pub fn integer(self, bytes: &[u8]) -> u64 {
        let append = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, append),
            Self::Big => bytes.iter().fold(0, append),
        }
    }
}

/// The values of one tag, as a slice of the file.
#[derive(Debug, Clone, Copy)]
pub struct TagValues<'a> {
    tag: u16,
    order: ByteOrder,
    kind: u64,
    data: &'a [u8],
}

impl<'a> TagValues<'a> {
    /// Bytes of a value of type `kind`; `None` for an unknown type.
    pub(super) const fn size(kind: u64) -> Option<usize> {
        match kind {
            // BYTE, ASCII, SBYTE, UNDEFINED
            1 | 2 | 6 | 7 => Some(1),
            // SHORT, SSHORT
            3 | 8 => Some(2),
            // LONG, SLONG, FLOAT, IFD
            4 | 9 | 11 | 13 => Some(4),
            // RATIONAL, SRATIONAL, DOUBLE, LONG8, SLONG8, IFD8
            5 | 10 | 12 | 16 | 17 | 18 => Some(8),
            _ => None,
        }
    }

    pub(super) const fn new(tag: u16, order: ByteOrder, kind: u64, data: &'a [u8]) -> Self {
        Self {
            tag,
            order,
            kind,
            data,
        }
    }

    /// The values as bytes.
    pub const fn bytes(&self) -> &'a [u8] {
        self.data
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        Self::size(self.kind).map_or(0, |size| self.data.len() / size)
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn item(&self, index: usize) -> Result<&'a [u8]> {
        let size = Self::size(self.kind).unwrap_or(1);
        let start = index.saturating_mul(size);
        self.data.get(start..start.saturating_add(size)).ok_or_else(|| {
            Error::undecodable(format!(
                "the TIFF's tag {} has {} values: expected at least {}",
                self.tag,
                self.len(),
                index.saturating_add(1)
            ))
        })
    }

    /// The integer at `index`, of any of the integer types.
    ///
    /// # Errors
    /// `Undecodable` if there is no such value, and for negative numbers and fractions.
    pub fn integer(&self, index: usize) -> Result<u64> {
        let item = self.item(index)?;
        let value = self.order.integer(item);
        let sign = 1_u64 << (item.len() * 8 - 1);
        match self.kind {
            1 | 3 | 4 | 7 | 13 | 16 | 18 => Ok(value),
            6 | 8 | 9 | 17 if value & sign == 0 => Ok(value),
            _ => Err(Error::undecodable(format!(
                "the TIFF's tag {} is {} of type {}: expected an integer that is not negative",
                self.tag,
                self.number(index)?,
                self.kind
            ))),
        }
    }

    /// The number at `index`, of any type. A fraction with the denominator 0 is infinite or NaN.
    #[expect(
        clippy::cast_precision_loss,
        reason = "coefficients, which libtiff stores in f32"
    )]
    #[expect(clippy::cast_possible_truncation, reason = "restores the bits that were read")]
    pub fn number(&self, index: usize) -> Result<f64> {
        let item = self.item(index)?;
        let value = self.order.integer(item);
        let half = |part: &[u8]| self.order.integer(part) as u32;
        Ok(match self.kind {
            5 => f64::from(half(&item[..4])) / f64::from(half(&item[4..])),
            6 => f64::from((value as u8).cast_signed()),
            8 => f64::from((value as u16).cast_signed()),
            9 => f64::from((value as u32).cast_signed()),
            10 => f64::from(half(&item[..4]).cast_signed()) / f64::from(half(&item[4..]).cast_signed()),
            11 => f64::from(f32::from_bits(value as u32)),
            12 => f64::from_bits(value),
            17 => value.cast_signed() as f64,
            _ => value as f64,
        })
    }
}
