//! The bits of fax codes, and the marks between rows.

use std::convert::Infallible;

use fax::BitReader;

use super::super::compression::Source;

/// Zeros before the 1 of an end of line. No other code has as many.
const END_OF_LINE_ZEROS: u8 = 11;

/// Bits from the highest of each byte on, and zeros behind the last.
#[derive(Clone)]
pub(super) struct Bits<'a> {
    source: Source<'a>,
    window: u64,
    /// Bits in the window: 16 at least.
    held: usize,
    /// Bits taken since the start.
    taken: usize,
    /// Zeros made up behind the last byte.
    made_up: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        let mut bits = Self {
            source,
            window: 0,
            held: 0,
            taken: 0,
            made_up: 0,
        };
        bits.fill();
        bits
    }

    fn fill(&mut self) {
        while self.held < 32 {
            let byte = self.source.byte();
            if byte.is_none() {
                self.made_up += 8;
            }
            self.window = self.window << 8 | u64::from(byte.unwrap_or_default());
            self.held += 8;
        }
    }

    fn skip(&mut self, bits: usize) {
        self.held = self.held.saturating_sub(bits);
        self.taken += bits;
        self.fill();
    }

    pub(super) fn take(&mut self) -> u16 {
        let bit = self.peek(1).unwrap_or_default();
        self.skip(1);
        bit
    }

    /// Whether bits were taken that are not in the source.
    pub(super) const fn are_spent(&self) -> bool {
        self.made_up > self.held
    }

    /// Goes on to the next multiple of `bytes`.
    pub(super) fn align(&mut self, bytes: usize) {
        let unit = bytes * 8;
        self.skip((unit - self.taken % unit) % unit);
    }

    /// Whether as many zeros come as no code begins with: before them may be others, to fill a byte.
    pub(super) fn begin_a_mark(&self) -> bool {
        self.peek(END_OF_LINE_ZEROS) == Some(0)
    }

    /// Passes over the end of a line, if it stands here: zeros that end the source are none.
    pub(super) fn end_of_line(&mut self) -> bool {
        if !self.begin_a_mark() {
            return false;
        }
        let mut ahead = self.clone();
        while !ahead.are_spent() {
            if ahead.take() == 1 {
                *self = ahead;
                return true;
            }
        }
        false
    }
}

impl BitReader for Bits<'_> {
    type Error = Infallible;

    fn peek(&self, bits: u8) -> Option<u16> {
        let shift = self.held.checked_sub(bits.into())?;
        u16::try_from(self.window >> shift & ((1 << bits) - 1)).ok()
    }

    fn consume(&mut self, bits: u8) -> Result<(), Infallible> {
        self.skip(bits.into());
        Ok(())
    }

    fn bits_to_byte_boundary(&self) -> u8 {
        u8::try_from(self.taken.wrapping_neg() % 8).unwrap_or_default()
    }
}
