//! The bits of fax codes, and the end-of-line codes between rows.

use std::convert::Infallible;

use fax::BitReader;

use super::super::compression::ChunkReader;

/// Zeros before the 1 of an end-of-line code. No other code has as many.
const END_OF_LINE_ZEROS: u8 = 11;

/// Reads bits, starting with the highest of each byte. After the last byte it returns zeros.
#[derive(Clone)]
pub(super) struct FaxBits<'a> {
    reader: ChunkReader<'a>,
    window: u64,
    /// Bits in the window, at least 16.
    window_bits: usize,
    /// Bits consumed since the start.
    consumed_bits: usize,
    /// Padding zeros that were added after the last byte.
    padding_bits: usize,
}

impl<'a> FaxBits<'a> {
    pub(super) fn new(reader: ChunkReader<'a>) -> Self {
        let mut bits = Self {
            reader,
            window: 0,
            window_bits: 0,
            consumed_bits: 0,
            padding_bits: 0,
        };
        bits.fill();
        bits
    }

    fn fill(&mut self) {
        while self.window_bits < 32 {
            let byte = self.reader.byte();
            if byte.is_none() {
                self.padding_bits += 8;
            }
            self.window = self.window << 8 | u64::from(byte.unwrap_or_default());
            self.window_bits += 8;
        }
    }

    fn skip(&mut self, bits: usize) {
        self.window_bits = self.window_bits.saturating_sub(bits);
        self.consumed_bits += bits;
        self.fill();
    }

    /// Consumes one bit.
    pub(super) fn take(&mut self) -> u16 {
        let bit = self.peek(1).unwrap_or_default();
        self.skip(1);
        bit
    }

    /// Whether more bits were consumed than the chunk has.
    pub(super) const fn is_exhausted(&self) -> bool {
        self.padding_bits > self.window_bits
    }

    /// Skips bits up to the next multiple of `bytes`.
    pub(super) fn align(&mut self, bytes: usize) {
        let unit = bytes * 8;
        self.skip((unit - self.consumed_bits % unit) % unit);
    }

    /// Whether the next bits are the zeros of an end-of-line code. Fill zeros may precede them.
    pub(super) fn is_at_end_of_line(&self) -> bool {
        self.peek(END_OF_LINE_ZEROS) == Some(0)
    }

    /// Skips an end-of-line code and returns whether there was one. Zeros at the end of the chunk do not count.
    pub(super) fn skip_end_of_line(&mut self) -> bool {
        if !self.is_at_end_of_line() {
            return false;
        }
        let mut ahead = self.clone();
        while !ahead.is_exhausted() {
            if ahead.take() == 1 {
                *self = ahead;
                return true;
            }
        }
        false
    }
}

impl BitReader for FaxBits<'_> {
    type Error = Infallible;

    fn peek(&self, bits: u8) -> Option<u16> {
        let shift = self.window_bits.checked_sub(bits.into())?;
        u16::try_from(self.window >> shift & ((1 << bits) - 1)).ok()
    }

    fn consume(&mut self, bits: u8) -> Result<(), Infallible> {
        self.skip(bits.into());
        Ok(())
    }

    fn bits_to_byte_boundary(&self) -> u8 {
        u8::try_from(self.consumed_bits.wrapping_neg() % 8).unwrap_or_default()
    }
}
