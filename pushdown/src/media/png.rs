//! The chunks of a PNG, read without decoding anything.

use flate2::Crc;

use super::exif;

/// Bytes that a PNG starts with.
const SIGNATURE_BYTES: usize = 8;

/// A chunk as it stands in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk<'a> {
    pub(crate) kind: [u8; 4],
    /// Shorter than the chunk says where the file ends before.
    pub(crate) body: &'a [u8],
    length: usize,
    crc: Option<u32>,
}

/// The chunks of a PNG in order, up to the end of the file or where it holds no chunk.
pub(crate) struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Chunks<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes.get(SIGNATURE_BYTES..).unwrap_or_default(),
        }
    }
}

/// The EXIF orientation of `bytes`, wherever its chunk stands; 1 where there is none.
pub(crate) fn orientation(bytes: &[u8]) -> u8 {
    let blocks = Chunks::new(bytes).filter(|chunk| chunk.kind == *b"eXIf");
    blocks.last().map_or(1, |chunk| exif::orientation(chunk.body))
}

impl Chunk<'_> {
    /// Whether the file ends within its body.
    pub(crate) const fn is_cut_short(&self) -> bool {
        self.body.len() < self.length
    }

    /// Whether its checksum is there and right.
    pub(crate) fn is_intact(&self) -> bool {
        let mut crc = Crc::new();
        crc.update(&self.kind);
        crc.update(self.body);
        self.crc == Some(crc.sum())
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Chunk<'a>;

    fn next(&mut self) -> Option<Chunk<'a>> {
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
        Some(Chunk {
            kind: *kind,
            body,
            length,
            crc,
        })
    }
}
