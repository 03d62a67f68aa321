//! The chunks of a PNG, read without decoding pixels.

use flate2::Crc;

use super::exif;

/// Length of the signature at the start of a PNG.
const SIGNATURE_BYTES: usize = 8;

/// A chunk of the file.
#[derive(Debug, Clone, Copy)]
pub struct PngChunk<'a> {
    /// The four letters of its type.
    pub kind: [u8; 4],
    /// Shorter than the stated length if the file ends early.
    pub body: &'a [u8],
    length: usize,
    crc: Option<u32>,
}

/// Iterates over the chunks of a PNG, up to the end of the file or to bytes that are not a chunk.
#[derive(Debug)]
pub struct PngChunks<'a> {
    rest: &'a [u8],
}

impl<'a> PngChunks<'a> {
    /// The chunks of `bytes`, a PNG.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes.get(SIGNATURE_BYTES..).unwrap_or_default(),
        }
    }
}

/// The EXIF orientation of `bytes`, from a chunk at any position; 1 if there is none.
pub fn orientation(bytes: &[u8]) -> u8 {
    let blocks = PngChunks::new(bytes).filter(|chunk| chunk.kind == *b"eXIf");
    blocks.last().map_or(1, |chunk| exif::orientation(chunk.body))
}

impl PngChunk<'_> {
    /// Whether the file ends within the body.
    pub const fn is_truncated(&self) -> bool {
        self.body.len() < self.length
    }

    /// Whether the checksum is present and correct.
    pub fn is_intact(&self) -> bool {
        let mut crc = Crc::new();
        crc.update(&self.kind);
        crc.update(self.body);
        self.crc == Some(crc.sum())
    }
}

impl<'a> Iterator for PngChunks<'a> {
    type Item = PngChunk<'a>;

    fn next(&mut self) -> Option<PngChunk<'a>> {
        let (length, rest) = self.rest.split_first_chunk()?;
        let (kind, rest) = rest.split_first_chunk()?;
        if !kind
            .iter()
            .all(|letter| letter.is_ascii_alphanumeric() || *letter == b'_')
        {
            return None;
        }
        let length = u32::from_be_bytes(*length) as usize;
        let (body, rest) = rest.split_at(length.min(rest.len()));
        let (crc, rest) = rest.split_first_chunk().map_or((None, &[][..]), |(crc, rest)| {
            (Some(u32::from_be_bytes(*crc)), rest)
        });
        self.rest = rest;
        Some(PngChunk {
            kind: *kind,
            body,
            length,
            crc,
        })
    }
}
