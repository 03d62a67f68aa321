//! The chunks of a WebP: its orientation, and the first frame of an animation as a separate file.

use super::exif;

/// Bytes of a file before its first chunk: `RIFF`, a length, `WEBP`.
const FILE_HEADER_BYTES: usize = 12;
/// The animation bit in the flags of the first chunk of an extended file (`VP8X`).
const ANIMATED: u8 = 0b10;
/// Bytes of a frame's position, size, duration and flags.
const FRAME_HEADER_BYTES: usize = 16;

/// Whether `bytes`, a WebP, are an animation.
pub fn is_animated(bytes: &[u8]) -> bool {
    let first = bytes
        .get(FILE_HEADER_BYTES..)
        .and_then(|bytes| WebpChunks(bytes).next());
    first.is_some_and(|(kind, body)| {
        kind == b"VP8X" && body.first().is_some_and(|flags| flags & ANIMATED != 0)
    })
}

/// Width and height of the first coded image of `bytes`, a WebP. The size of the canvas may differ.
pub fn coded_size(bytes: &[u8]) -> Option<(u32, u32)> {
    WebpChunks(bytes.get(FILE_HEADER_BYTES..)?).coded_size()
}

/// The EXIF orientation of `bytes`, a WebP; 1 if there is none.
pub fn orientation(bytes: &[u8]) -> u8 {
    let mut chunks = WebpChunks(bytes.get(FILE_HEADER_BYTES..).unwrap_or_default());
    let block = chunks.find(|(kind, _)| *kind == b"EXIF");
    block.map_or(1, |(_, body)| exif::orientation(body))
}

/// The first frame of an animation, as a still image on a canvas.
#[derive(Debug)]
pub struct FirstFrame {
    /// First column on the canvas.
    pub x: u32,
    /// First row on the canvas.
    pub y: u32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// A WebP file with this frame only.
    pub file: Vec<u8>,
}

impl FirstFrame {
    /// The first frame of `bytes`; `None` if there is no complete frame.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut chunks = WebpChunks(bytes.get(FILE_HEADER_BYTES..)?);
        let (_, frame) = chunks.find(|(kind, _)| *kind == b"ANMF")?;
        let (header, data) = frame.split_at_checked(FRAME_HEADER_BYTES)?;
        let number =
            |offset: usize| u32::from_le_bytes([header[offset], header[offset + 1], header[offset + 2], 0]);
        let has_alpha = WebpChunks(data).any(|(kind, _)| kind == b"ALPH");
        let flags = if has_alpha { 0x10 } else { 0 };
        let mut file = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0".to_vec();
        file.extend_from_slice(&[flags, 0, 0, 0]);
        // As in libwebp, the size of the coded image counts, not that of the frame header.
        let (width, height) = WebpChunks(data).coded_size()?;
        for side in [width, height] {
            file.extend_from_slice(&side.checked_sub(1)?.to_le_bytes()[..3]);
        }
        file.extend_from_slice(data);
        let length = u32::try_from(file.len() - 8).ok()?;
        file[4..8].copy_from_slice(&length.to_le_bytes());
        Some(Self {
            x: number(0) * 2,
            y: number(3) * 2,
            width,
            height,
            file,
        })
    }
}

/// Iterates over the kinds and bodies of chunks. Bodies are padded to an even length.
struct WebpChunks<'a>(&'a [u8]);

impl WebpChunks<'_> {
    /// Width and height in the header of the first coded image.
    fn coded_size(&mut self) -> Option<(u32, u32)> {
        self.find_map(|(kind, body)| match kind {
            // RFC 6386, 9.1: a tag of three bytes and a start code, then both sides in 14 bits each, with two bits of scaling.
            b"VP8 " => match *body {
                [_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] => {
                    let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
                    Some((side(w0, w1), side(h0, h1)))
                }
                _ => None,
            },
            // RFC 9649, 3.4: a signature, then both sides less 1 in 14 bits each.
            b"VP8L" => match *body {
                [0x2f, a, b, c, d, ..] => {
                    let bits = u32::from_le_bytes([a, b, c, d]);
                    Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
                }
                _ => None,
            },
            _ => None,
        })
    }
}

impl<'a> Iterator for WebpChunks<'a> {
    type Item = (&'a [u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.0.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let length = u32::from_le_bytes(*length) as usize;
        let body = rest.get(..length)?;
        self.0 = rest.get(length.checked_add(length % 2)?..).unwrap_or_default();
        Some((kind, body))
    }
}
