//! CCITT fax: rows of runs (ITU-T T.4), and rows as changes to the one before (T.6). The codes are `fax`'s.
//!
//! Its own decoder of rows has no two-dimensional Group 3, and none without ends of lines, which TIFF has both.

mod bits;

use std::io;

use fax::{
    BitReader,
    maps::{Mode, black, mode, white},
};

use super::compression::Source;
use bits::Bits;

/// How rows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// Compression 2 and 32771: runs alone, each row from a byte or a word of so many bytes on.
    Rows { word: usize },
    /// Compression 3: a code before each row, which may tell that it refers to the one before.
    Group3 { two_dimensional: bool },
    /// Compression 4: each row refers to the one before.
    Group4,
}

impl Coding {
    /// Fills `out` with rows of `row_bytes`, of `width` pixels, black being 1.
    ///
    /// # Errors
    /// `InvalidData` at a code that is none, `UnexpectedEof` where no more codes are there.
    pub(super) fn decode(
        self,
        source: Source<'_>,
        width: u32,
        row_bytes: usize,
        out: &mut [u8],
    ) -> io::Result<()> {
        let mut bits = Bits::new(source);
        let mut row = Row::new(width);
        let mut reference = Vec::new();
        let mut marked = matches!(self, Self::Group3 { .. }) && bits.end_of_line();
        let mut lines = out.chunks_exact_mut(row_bytes);
        while let Some(line) = lines.next() {
            row.start();
            let refers = match self {
                Self::Rows { word } => {
                    bits.align(word);
                    false
                }
                // A bit behind the mark tells which it is.
                Self::Group3 { two_dimensional } => two_dimensional && marked && bits.take() == 0,
                Self::Group4 => true,
            };
            if refers {
                row.changes(&mut bits, &reference)?;
            } else {
                row.runs(&mut bits)?;
            }
            row.paint(line);
            marked = matches!(self, Self::Group3 { .. }) && bits.end_of_line();
            let ended = self == Self::Group4 && row.place < width && bits.peek(12) == Some(1);
            if bits.are_spent() || (row.place < width && !marked && !ended) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // The end of the block: what is left is white.
            if ended {
                lines.by_ref().for_each(|line| line.fill(0));
            }
            std::mem::swap(&mut reference, &mut row.changes);
        }
        Ok(())
    }
}

/// A row in the making: where its colour changes, from white on, each place behind the one before it.
struct Row {
    width: u32,
    changes: Vec<u32>,
    /// The place reached, and the colour from there on.
    place: u32,
    is_black: bool,
}

impl Row {
    const fn new(width: u32) -> Self {
        Self {
            width,
            changes: Vec::new(),
            place: 0,
            is_black: false,
        }
    }

    fn start(&mut self) {
        self.changes.clear();
        self.place = 0;
        self.is_black = false;
    }

    /// Goes on to `place` in the same colour, and changes it there.
    fn change(&mut self, place: u32) {
        self.place = place.min(self.width);
        self.is_black = !self.is_black;
        // A run of no pixels is no change.
        if self.changes.last() == Some(&self.place) {
            self.changes.pop();
        } else if self.place < self.width {
            self.changes.push(self.place);
        }
    }

    fn run(&mut self, bits: &mut Bits<'_>) -> io::Result<()> {
        let mut length = 0_u32;
        loop {
            let part = if self.is_black {
                black::decode(bits)
            } else {
                white::decode(bits)
            };
            let part = part.ok_or_else(no_code)?;
            length = length.saturating_add(part.into());
            // Up to 63 pixels end a run; more are multiples of 64, with more to come.
            if part < 64 {
                break;
            }
        }
        self.change(self.place.saturating_add(length));
        Ok(())
    }

    /// One dimension: runs, white first. A row that ends early is white from there on.
    fn runs(&mut self, bits: &mut Bits<'_>) -> io::Result<()> {
        while self.place < self.width && !bits.begin_a_mark() {
            self.run(bits)?;
        }
        Ok(())
    }

    /// Two dimensions: what differs from the changes of the row before, `reference`. A row may end early likewise.
    fn changes(&mut self, bits: &mut Bits<'_>, reference: &[u32]) -> io::Result<()> {
        // The first change of a row may be at its first pixel.
        let mut begun = false;
        let mut next = 0;
        while self.place < self.width && !bits.begin_a_mark() {
            // b1: the first change behind this place, to the other colour than this one.
            next = next.min(reference.len());
            while next > 0 && reference[next - 1] > self.place {
                next -= 1;
            }
            while next < reference.len()
                && (reference[next] < self.place
                    || (begun && reference[next] == self.place)
                    || (next % 2 == 1) != self.is_black)
            {
                next += 1;
            }
            let at = |index: usize| reference.get(index).copied().unwrap_or(self.width);
            let (b1, b2) = (at(next), at(next + 1));
            match mode::decode(bits).ok_or_else(no_code)? {
                Mode::Pass => self.place = b2,
                Mode::Horizontal => {
                    self.run(bits)?;
                    self.run(bits)?;
                }
                Mode::Vertical(distance) => {
                    let place = b1.checked_add_signed(distance.into()).ok_or_else(no_code)?;
                    if place < self.place || place > self.width {
                        return Err(no_code());
                    }
                    self.change(place);
                }
                Mode::EOF => return Err(no_code()),
                Mode::Extension => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "uncompressed pixels within fax codes are not supported",
                    ));
                }
            }
            begun = true;
        }
        Ok(())
    }

    fn paint(&self, line: &mut [u8]) {
        line.fill(0);
        for run in self.changes.chunks(2) {
            let end = run.get(1).copied().unwrap_or(self.width);
            for place in run[0]..end {
                line[place as usize / 8] |= 0x80 >> (place % 8);
            }
        }
    }
}

fn no_code() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no code of ITU-T T.4 or T.6")
}
