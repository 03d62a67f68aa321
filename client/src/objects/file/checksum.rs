//! The checksum of a file: CRC-32 as 8 hex digits.

use std::io::{self, Write};

use crc32fast::Hasher;

/// The checksum of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> String {
    text(crc32fast::hash(bytes))
}

/// Computes the checksum of what is written.
#[derive(Debug)]
pub(super) struct ChecksumWriter<W> {
    writer: W,
    hasher: Hasher,
}

impl<W: Write> ChecksumWriter<W> {
    pub(super) fn new(writer: W) -> Self {
        Self {
            writer,
            hasher: Hasher::new(),
        }
    }

    /// The checksum of all bytes so far.
    pub(super) fn checksum(&self) -> String {
        text(self.hasher.clone().finalize())
    }

    pub(super) fn into_inner(self) -> W {
        self.writer
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn text(checksum: u32) -> String {
    format!("{checksum:08x}")
}
