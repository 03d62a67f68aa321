//! JPEG's marker structure (ITU-T T.81 annex B), read without decoding anything.

use image::metadata::Orientation;

use super::{ImageHeader, MediaType};

/// What stands before the first scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JpegHeader {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) components: u8,
    pub(crate) progressive: bool,
    /// EXIF orientation, 1 to 8; 1 where there is none.
    pub(crate) orientation: u8,
}

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const APP1: u8 = 0xe1;

impl JpegHeader {
    /// Walks the markers up to the frame header; `None` where `bytes` end before it.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut orientation = 1;
        for segment in Segments::new(bytes)? {
            match segment.marker {
                APP1 => {
                    if let Some(exif) = segment.body.strip_prefix(b"Exif\0\0")
                        && let Some(found) = Orientation::from_exif_chunk(exif)
                    {
                        orientation = found.to_exif();
                    }
                }
                // Every SOFn; C4, C8 and CC in that range are other markers.
                0xc0..=0xcf if !matches!(segment.marker, 0xc4 | 0xc8 | 0xcc) => {
                    let [_, h1, h0, w1, w0, components, ..] = *segment.body else { return None };
                    return Some(Self {
                        width: u32::from(u16::from_be_bytes([w1, w0])),
                        height: u32::from(u16::from_be_bytes([h1, h0])),
                        components,
                        progressive: !matches!(segment.marker, 0xc0 | 0xc1 | 0xc9),
                        orientation,
                    });
                }
                SOS | EOI => return None,
                _ => {}
            }
        }
        None
    }

    pub(crate) fn summary(&self) -> ImageHeader {
        // libjpeg keeps every coefficient, 16 bits each, of an image that comes in several scans; a baseline
        // image may come so too, which only the scans tell, but then the components are few and the sum small.
        let coefficients = if self.progressive { 2 * self.components } else { 0 };
        let cmyk = if self.components == 4 { 4 } else { 0 };
        ImageHeader {
            media: MediaType::Jpeg,
            width: self.width,
            height: self.height,
            orientation: Some(self.orientation),
            scratch_per_pixel: coefficients + cmyk,
        }
    }
}

/// Whether the file reaches its end-of-image marker. Without it libjpeg invents the missing pixels.
pub(crate) fn is_complete(bytes: &[u8]) -> bool {
    let Some(mut segments) = Segments::new(bytes) else { return false };
    segments.any(|segment| segment.marker == EOI)
}

struct Segment<'a> {
    marker: u8,
    body: &'a [u8],
}

/// Markers in order. After a start of scan, entropy-coded data is skipped to the next marker in it.
struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Segments<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        bytes.strip_prefix(&[0xff, SOI]).map(|rest| Self { rest })
    }
}

impl<'a> Iterator for Segments<'a> {
    type Item = Segment<'a>;

    fn next(&mut self) -> Option<Segment<'a>> {
        loop {
            // A marker is FF and a byte that is neither stuffing (00) nor fill (FF).
            let start = memchr_ff(self.rest)?;
            let marker = *self.rest.get(start + 1)?;
            self.rest = &self.rest[start + 1..];
            match marker {
                // In entropy-coded data: stuffing, fill, restart. TEM stands alone too.
                0x00 | 0xff | 0x01 | 0xd0..=0xd7 => {}
                EOI | SOI => return Some(Segment { marker, body: &[] }),
                _ => {
                    let [_, high, low, ..] = *self.rest else { return None };
                    let length = usize::from(u16::from_be_bytes([high, low])).max(2);
                    let body = self.rest.get(3..)?;
                    let (body, rest) = body.split_at_checked(length - 2).unwrap_or((body, &[]));
                    self.rest = rest;
                    return Some(Segment { marker, body });
                }
            }
        }
    }
}

fn memchr_ff(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == 0xff)
}
