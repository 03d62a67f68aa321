//! CCITT fax: rows of runs (ITU-T T.4), and rows as changes to the previous row (T.6). The `fax` crate provides the codes.
//!
//! The crate's decoder of rows supports neither two-dimensional Group 3 nor rows without end-of-line codes. TIFF uses both.

mod bits;

use std::io;

use fax::{
    BitReader,
    maps::{Mode, black, mode, white},
};

use super::compression::ChunkReader;
use bits::FaxBits;

/// How rows are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaxCoding {
    /// Compression 2 and 32771: runs only. Each row starts at a multiple of `alignment_bytes`.
    Rows { alignment_bytes: usize },
    /// Compression 3: an end-of-line code before each row. If two-dimensional, a bit after it says whether the row refers to
    /// the previous one.
    Group3 { is_two_dimensional: bool },
    /// Compression 4: each row refers to the previous one.
    Group4,
}

impl FaxCoding {
    /// Fills `out` with rows of `row_bytes` bytes and `width` pixels, 1 bit per pixel. Black is 1.
    ///
    /// # Errors
    /// `InvalidData` for an invalid code, `UnexpectedEof` if codes are missing.
    pub(super) fn decode(
        self,
        reader: ChunkReader<'_>,
        width: u32,
        row_bytes: usize,
        out: &mut [u8],
    ) -> io::Result<()> {
        let mut bits = FaxBits::new(reader);
        let mut row = FaxRow::new(width);
        let mut reference = Vec::new();
        let mut has_end_of_line = matches!(self, Self::Group3 { .. }) && bits.skip_end_of_line();
        let mut lines = out.chunks_exact_mut(row_bytes);
        while let Some(line) = lines.next() {
            row.start();
            let is_two_dimensional_row = match self {
                Self::Rows { alignment_bytes } => {
                    bits.align(alignment_bytes);
                    false
                }
                // The bit after the end of line is 0 for a two-dimensional row.
                Self::Group3 { is_two_dimensional } => {
                    is_two_dimensional && has_end_of_line && bits.take() == 0
                }
                Self::Group4 => true,
            };
            if is_two_dimensional_row {
                row.read_changes(&mut bits, &reference)?;
            } else {
                row.read_runs(&mut bits)?;
            }
            row.paint(line);
            has_end_of_line = matches!(self, Self::Group3 { .. }) && bits.skip_end_of_line();
            let is_end_of_block = self == Self::Group4 && row.position < width && bits.peek(12) == Some(1);
            if bits.is_exhausted() || (row.position < width && !has_end_of_line && !is_end_of_block) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // The remaining rows are white.
            if is_end_of_block {
                lines.by_ref().for_each(|line| line.fill(0));
            }
            std::mem::swap(&mut reference, &mut row.changes);
        }
        Ok(())
    }
}

/// A row that is being decoded: the positions at which its colour changes, in ascending order. It starts white.
struct FaxRow {
    width: u32,
    changes: Vec<u32>,
    /// The current position.
    position: u32,
    /// The colour from the current position on.
    is_black: bool,
}

impl FaxRow {
    const fn new(width: u32) -> Self {
        Self {
            width,
            changes: Vec::new(),
            position: 0,
            is_black: false,
        }
    }

    fn start(&mut self) {
        self.changes.clear();
        self.position = 0;
        self.is_black = false;
    }

    /// Continues the colour up to `position`, and changes it there.
    fn change_colour(&mut self, position: u32) {
        self.position = position.min(self.width);
        self.is_black = !self.is_black;
        // An empty run undoes the previous change.
        if self.changes.last() == Some(&self.position) {
            self.changes.pop();
        } else if self.position < self.width {
            self.changes.push(self.position);
        }
    }

    fn read_run(&mut self, bits: &mut FaxBits<'_>) -> io::Result<()> {
        let mut length = 0_u32;
        loop {
            let part = if self.is_black {
                black::decode(bits)
            } else {
                white::decode(bits)
            };
            let part = part.ok_or_else(invalid_code)?;
            length = length.saturating_add(part.into());
            // A code of up to 63 pixels ends a run. Larger ones are multiples of 64, and another code follows.
            if part < 64 {
                break;
            }
        }
        self.change_colour(self.position.saturating_add(length));
        Ok(())
    }

    /// Reads a one-dimensional row: runs, white first. The rest of a row that ends early is white.
    fn read_runs(&mut self, bits: &mut FaxBits<'_>) -> io::Result<()> {
        while self.position < self.width && !bits.is_at_end_of_line() {
            self.read_run(bits)?;
        }
        Ok(())
    }

    /// Reads a two-dimensional row: differences from the changes of the previous row, `reference`. It may end early, too.
    fn read_changes(&mut self, bits: &mut FaxBits<'_>, reference: &[u32]) -> io::Result<()> {
        // Only the first change of a row may be at its first pixel.
        let mut is_first = true;
        let mut next = 0;
        while self.position < self.width && !bits.is_at_end_of_line() {
            // b1: the first change of the previous row after this position, to the opposite of the current colour.
            next = next.min(reference.len());
            while next > 0 && reference[next - 1] > self.position {
                next -= 1;
            }
            while next < reference.len()
                && (reference[next] < self.position
                    || (!is_first && reference[next] == self.position)
                    || (next % 2 == 1) != self.is_black)
            {
                next += 1;
            }
            let at = |index: usize| reference.get(index).copied().unwrap_or(self.width);
            let (b1, b2) = (at(next), at(next + 1));
            match mode::decode(bits).ok_or_else(invalid_code)? {
                Mode::Pass => self.position = b2,
                Mode::Horizontal => {
                    self.read_run(bits)?;
                    self.read_run(bits)?;
                }
                Mode::Vertical(distance) => {
                    let position = b1.checked_add_signed(distance.into()).ok_or_else(invalid_code)?;
                    if position < self.position || position > self.width {
                        return Err(invalid_code());
                    }
                    self.change_colour(position);
                }
                Mode::EOF => return Err(invalid_code()),
                Mode::Extension => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "uncompressed pixels in fax data are not supported",
                    ));
                }
            }
            is_first = false;
        }
        Ok(())
    }

    fn paint(&self, line: &mut [u8]) {
        line.fill(0);
        for run in self.changes.chunks(2) {
            let end = run.get(1).copied().unwrap_or(self.width);
            for position in run[0]..end {
                line[position as usize / 8] |= 0x80 >> (position % 8);
            }
        }
    }
}

fn invalid_code() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "invalid code of ITU-T T.4 or T.6")
}
