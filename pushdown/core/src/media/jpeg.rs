//! The marker structure of JPEG (ITU-T T.81 annex B), read without decoding pixels.

mod scans;

use super::{ImageHeader, MediaType, exif};
pub use scans::Scans;

/// The header: the segments before the first scan, or those of them that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JpegHeader {
    width: u32,
    height: u32,
    components: u8,
    /// Horizontal and vertical sampling factors of each component, up to the number that libjpeg supports.
    sampling: [Sampling; MAX_COMPONENTS],
    /// Whether there are several scans. Also set if the first scan was not read.
    has_several_scans: bool,
    is_progressive: bool,
    is_lossless: bool,
    /// EXIF orientation, 1 to 8; `None` if the first scan was not read: an EXIF block may still come before it.
    orientation: Option<u8>,
}

/// The sampling factors of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Sampling {
    horizontal: u8,
    vertical: u8,
}

/// The pixels per sample of the coarsest component: 1 x 1 for 4:4:4 and grey, 2 x 2 for 4:2:0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subsampling {
    horizontal: u8,
    vertical: u8,
}

/// Maximum number of components that libjpeg converts to colours.
const MAX_COMPONENTS: usize = 4;

const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP15: u8 = 0xef;
const COM: u8 = 0xfe;
const DAC: u8 = 0xcc;
const DHT: u8 = 0xc4;
const DQT: u8 = 0xdb;
const DRI: u8 = 0xdd;
const JPG: u8 = 0xc8;
const EXIF: &[u8] = b"Exif\0\0";

impl JpegHeader {
    /// Reads the markers up to the first scan; `None` if `bytes` end before the frame header.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut frame: Option<Self> = None;
        let mut exif = None;
        for segment in Segments::new(bytes)? {
            match segment.marker {
                // As in Pillow, the first one counts.
                APP1 if exif.is_none() && segment.body.starts_with(EXIF) => {
                    exif = Some(exif::orientation(segment.body));
                }
                marker if is_frame(marker) && frame.is_none() => {
                    let [_, h1, h0, w1, w0, components, ..] = *segment.body else {
                        return None;
                    };
                    let mut sampling = [Sampling::default(); MAX_COMPONENTS];
                    // A component has an identifier, a byte with both factors, and a table.
                    for (stored, factors) in segment.body[6..].chunks_exact(3).zip(&mut sampling) {
                        *factors = Sampling {
                            horizontal: stored[1] >> 4,
                            vertical: stored[1] & 0xf,
                        };
                    }
                    frame = Some(Self {
                        sampling,
                        width: u32::from(u16::from_be_bytes([w1, w0])),
                        height: u32::from(u16::from_be_bytes([h1, h0])),
                        components,
                        has_several_scans: true,
                        is_progressive: segment.marker & 0b11 == 0b10,
                        is_lossless: segment.marker & 0b11 == 0b11,
                        orientation: None,
                    });
                }
                SOS => {
                    let frame = frame.as_mut()?;
                    let in_scan = segment.body.first().copied().unwrap_or_default();
                    frame.has_several_scans = frame.is_progressive || in_scan < frame.components;
                    frame.orientation = Some(1);
                    break;
                }
                EOI => break,
                _ => {}
            }
        }
        let mut frame = frame?;
        frame.orientation = exif.or(frame.orientation);
        Some(frame)
    }

    /// Pixels per sample of the coarsest component; `None` for samplings of which parts cannot be decoded: those that TurboJPEG
    /// does not name, or confuses with another one.
    pub fn subsampling(&self) -> Option<Subsampling> {
        let sampling = self.sampling.get(..usize::from(self.components))?;
        let (first, rest) = sampling.split_first()?;
        let unit = Sampling {
            horizontal: 1,
            vertical: 1,
        };
        let is_named = match rest {
            // The only component is the finest one, whatever its factors are.
            [] => return Subsampling::new(1, 1),
            [blue, red] => *blue == unit && *red == unit,
            [a, b, black] => *a == unit && *b == unit && black == first,
            _ => false,
        };
        Subsampling::new(first.horizontal, first.vertical).filter(|_| is_named)
    }

    /// Number of components: 1 for grey, 3 for colour, 4 for CMYK.
    pub const fn components(&self) -> u8 {
        self.components
    }

    /// What the header says about the decoded image.
    pub fn summary(&self) -> ImageHeader {
        // libjpeg stores all coefficients, 16 bits each, of an image with several scans.
        let coefficients = if self.has_several_scans {
            self.components.saturating_mul(2)
        } else {
            0
        };
        let cmyk = if self.components == 4 { 4 } else { 0 };
        ImageHeader {
            media: MediaType::Jpeg,
            width: self.width,
            height: self.height,
            orientation: self.orientation,
            scratch_bytes_per_pixel: coefficients.saturating_add(cmyk),
            is_scalable: !self.is_lossless,
        }
    }
}

impl Subsampling {
    /// 4:2:0, the sampling of cameras and most programs.
    pub const YUV_420: Self = Self {
        horizontal: 2,
        vertical: 2,
    };

    /// `None` if TurboJPEG does not name such a sampling.
    pub const fn new(horizontal: u8, vertical: u8) -> Option<Self> {
        match (horizontal, vertical) {
            (1 | 2, 1 | 2) | (4, 1) | (1, 4) => Some(Self { horizontal, vertical }),
            _ => None,
        }
    }

    /// Columns of pixels per sample.
    pub fn horizontal(self) -> u32 {
        self.horizontal.into()
    }

    /// Rows of pixels per sample.
    pub fn vertical(self) -> u32 {
        self.vertical.into()
    }

    /// Columns of pixels of a block of all components (MCU).
    pub fn block_width(self) -> u32 {
        8 * self.horizontal()
    }

    /// Rows of pixels of a block of all components (MCU).
    pub fn block_height(self) -> u32 {
        8 * self.vertical()
    }
}

/// Whether the file contains its end-of-image marker. Without it libjpeg invents the missing pixels.
pub fn is_complete(bytes: &[u8]) -> bool {
    let Some(mut segments) = Segments::new(bytes) else {
        return false;
    };
    segments.any(|segment| segment.marker == EOI)
}

/// Whether only Huffman codes are between the start of the only scan and the end of the image.
///
/// libjpeg decodes those row by row, even if they are broken. Codes of lower rows do not change upper rows, and cannot cause an
/// error.
pub fn is_one_scan(bytes: &[u8]) -> bool {
    one_scan_length(bytes).is_some()
}

/// Number of bytes up to the end of the image, marker included, if [`is_one_scan`]. More may follow.
pub fn one_scan_length(bytes: &[u8]) -> Option<usize> {
    let mut segments = Segments::new(bytes)?;
    let mut components = None;
    while let Some(segment) = segments.next() {
        match segment.marker {
            // Baseline and extended sequential with Huffman codes.
            0xc0 | 0xc1 if components.is_none() => components = segment.body.get(5),
            marker if is_frame(marker) => return None,
            SOS => {
                let has_all_components = components.is_some() && segment.body.first() == components;
                let end = has_all_components.then(|| segments.next())??;
                // The marker itself is the last byte that was read.
                return (end.marker == EOI).then_some(bytes.len() - segments.rest.len() + 1);
            }
            _ => {}
        }
    }
    None
}

/// Whether the marker is an `SOFn`, a start of frame. C4, C8 and CC in that range are other markers.
const fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// A standalone JPEG file from a strip or tile of a TIFF, whose `tables` are stored separately; `None` if `image` has no scan.
///
/// Adobe's marker replaces all application markers. libjpeg lets it decide whether three components are YCbCr; four components
/// are never converted. TurboJPEG does not accept two components, so they get a third one without data in any scan.
pub fn standalone_jpeg(tables: Option<&[u8]>, image: &[u8], is_ycbcr: bool) -> Option<Vec<u8>> {
    const ADOBE: &[u8] = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0";
    let mut out = Vec::with_capacity(image.len() + tables.map_or(0, <[u8]>::len) + 18);
    out.extend_from_slice(&[0xff, SOI]);
    out.extend_from_slice(ADOBE);
    out.push(u8::from(is_ycbcr));
    let mut append = |segment: &Segment<'_>| {
        let length = u16::try_from(segment.body.len() + 2).unwrap_or(u16::MAX);
        out.extend_from_slice(&[0xff, segment.marker]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(segment.body);
    };
    if let Some(tables) = tables {
        Segments::new(tables)?
            .filter(|segment| matches!(segment.marker, DQT | DHT | DAC | DRI))
            .for_each(|segment| append(&segment));
    }
    let mut segments = Segments::new(image)?;
    loop {
        let segment = segments.next()?;
        match segment.marker {
            APP0..=APP15 | COM | SOI => {}
            EOI => return None,
            SOS => {
                append(&segment);
                out.extend_from_slice(segments.rest);
                return Some(out);
            }
            0xc0..=0xcf if !matches!(segment.marker, DHT | JPG | DAC) && segment.body.get(5) == Some(&2) => {
                let mut body = segment.body.to_vec();
                body[5] = 3;
                // An unused identifier, and the table of the first component.
                let identifier = (0..=2).find(|id| [6, 9].iter().all(|offset| body.get(*offset) != Some(id)));
                body.extend_from_slice(&[identifier?, 0x11, *body.get(8)?]);
                append(&Segment {
                    marker: segment.marker,
                    body: &body,
                });
            }
            _ => append(&segment),
        }
    }
}

struct Segment<'a> {
    marker: u8,
    body: &'a [u8],
}

/// Iterates over the segments. After a start of scan, entropy-coded data is skipped up to the next marker.
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
            // A marker is FF and a byte other than stuffing (00) and fill (FF).
            let start = memchr::memchr(0xff, self.rest)?;
            let marker = *self.rest.get(start + 1)?;
            self.rest = &self.rest[start + 1..];
            match marker {
                // Stuffing, fill and restart in entropy-coded data. TEM has no body either.
                0x00 | 0xff | 0x01 | 0xd0..=0xd7 => {}
                EOI | SOI => return Some(Segment { marker, body: &[] }),
                _ => {
                    let [_, high, low, ..] = *self.rest else {
                        return None;
                    };
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
