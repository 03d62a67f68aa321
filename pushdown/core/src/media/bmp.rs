//! The header of a Windows or OS/2 bitmap.

use std::ops::Range;

/// The header and the location of the pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmpHeader {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Whether rows are stored from top to bottom.
    pub is_top_down: bool,
    /// How the pixels are stored.
    pub pixels: BmpPixels,
    /// Offset of the pixels in the file.
    pub offset: usize,
}

/// How pixels are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BmpPixels {
    /// Palette indices of 1, 2, 4 or 8 bits.
    Indexed {
        /// Bits of an index.
        bits: u16,
        /// The colours.
        palette: BmpPalette,
    },
    /// Run-length encoded palette indices of 4 or 8 bits.
    RunLength {
        /// Whether an index has 4 bits.
        is_4_bit: bool,
        /// The colours.
        palette: BmpPalette,
    },
    /// Little-endian words with bit masks.
    Masked {
        /// Bytes of a word.
        bytes: u8,
        /// The bits of red, green and blue.
        masks: [u32; 3],
    },
}

/// The location of the palette in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BmpPalette {
    /// Offsets in the file.
    pub bytes: Range<usize>,
    /// Bytes of an entry: blue, green, red, and possibly one that is unused.
    pub entry_bytes: usize,
}

/// Size of the OS/2 core header. The four bytes after the file header state it.
const CORE_BYTES: u32 = 12;
/// Sizes of the other headers.
const INFO_BYTES: [u32; 6] = [40, 52, 56, 64, 108, 124];
const FILE_HEADER_BYTES: usize = 14;
/// The masks of red, green and blue for bytes in the order blue, green, red.
const RGB_MASKS: [u32; 3] = [0xff_0000, 0xff00, 0xff];
/// Offset of the first mask in the file.
const MASKS_OFFSET: usize = FILE_HEADER_BYTES + 40;

impl BmpHeader {
    /// Reads the header from the start of a file, as Pillow does.
    ///
    /// # Errors
    /// Expected and found values, for a truncated header and for a kind that Pillow does not read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let fields = HeaderFields(bytes);
        let size = fields.u32(FILE_HEADER_BYTES)?;
        let at = |offset: usize| FILE_HEADER_BYTES + offset;
        if size == CORE_BYTES {
            let (width, height) = (fields.u16(at(4))?, fields.u16(at(6))?);
            let layout = PixelLayout {
                bits: fields.u16(at(10))?,
                compression: 0,
                colours: 0,
                header_bytes: size,
            };
            return Self::new((width.into(), height.into()), false, &layout, &fields);
        }
        if !INFO_BYTES.contains(&size) {
            return Err(format!(
                "invalid header size: expected 12, 40, 52, 56, 64, 108 or 124, found {size}"
            ));
        }
        let (width, height) = (fields.u32(at(4))?, fields.u32(at(8))?);
        // A negative height means rows from top to bottom.
        let is_top_down = height >> 24 == 0xff;
        let height = if is_top_down {
            height.wrapping_neg()
        } else {
            height
        };
        let layout = PixelLayout {
            bits: fields.u16(at(14))?,
            compression: fields.u32(at(16))?,
            colours: fields.u32(at(32))?,
            header_bytes: size,
        };
        Self::new((width, height), is_top_down, &layout, &fields)
    }

    fn new(
        (width, height): (u32, u32),
        is_top_down: bool,
        layout: &PixelLayout,
        fields: &HeaderFields<'_>,
    ) -> Result<Self, String> {
        let stated = fields.u32(10)? as usize;
        let mut end = FILE_HEADER_BYTES + layout.header_bytes as usize;
        let pixels = match (layout.compression, layout.bits) {
            (0, bits @ (1 | 2 | 4 | 8)) => BmpPixels::Indexed {
                bits,
                palette: layout.palette(&mut end)?,
            },
            (1, 8) => BmpPixels::RunLength {
                is_4_bit: false,
                palette: layout.palette(&mut end)?,
            },
            (2, 4) => BmpPixels::RunLength {
                is_4_bit: true,
                palette: layout.palette(&mut end)?,
            },
            (0, 16) => BmpPixels::Masked {
                bytes: 2,
                masks: [0x7c00, 0x3e0, 0x1f],
            },
            (0, bits @ (24 | 32)) => BmpPixels::Masked {
                bytes: if bits == 24 { 3 } else { 4 },
                masks: RGB_MASKS,
            },
            (3, bits @ (16 | 24 | 32)) => {
                let masks = [
                    fields.u32(MASKS_OFFSET)?,
                    fields.u32(MASKS_OFFSET + 4)?,
                    fields.u32(MASKS_OFFSET + 8)?,
                ];
                if layout.header_bytes == 40 {
                    end += 12;
                }
                // As in Pillow, three masks of 0 stand for the usual ones.
                let masks = if masks == [0; 3] && bits == 32 {
                    RGB_MASKS
                } else {
                    masks
                };
                if masks.contains(&0) {
                    return Err(format!(
                        "invalid masks: expected bits of red, green and blue, found {masks:x?}"
                    ));
                }
                BmpPixels::Masked {
                    bytes: u8::try_from(bits / 8).unwrap_or(4),
                    masks,
                }
            }
            (compression, bits) => {
                return Err(format!(
                    "compression {compression} with {bits} bits per pixel is not supported"
                ));
            }
        };
        let header_end = FILE_HEADER_BYTES + layout.header_bytes as usize;
        // Some writers leave the offset at 0, or do not count the palette.
        let offset = match stated {
            0 => end,
            stated if stated == header_end && layout.bits <= 8 => end,
            stated => stated,
        };
        Ok(Self {
            width,
            height,
            is_top_down,
            pixels,
            offset,
        })
    }
}

/// The header fields that determine the layout of the file.
struct PixelLayout {
    header_bytes: u32,
    bits: u16,
    compression: u32,
    colours: u32,
}

impl PixelLayout {
    /// The palette at `end`. Advances `end` past it.
    fn palette(&self, end: &mut usize) -> Result<BmpPalette, String> {
        let entry_bytes = if self.header_bytes == CORE_BYTES { 3 } else { 4 };
        let colours = if self.colours == 0 {
            1 << self.bits
        } else {
            self.colours
        };
        if colours > 256 {
            return Err(format!(
                "invalid palette: expected at most 256 colours, found {colours}"
            ));
        }
        let start = *end;
        *end += colours as usize * entry_bytes;
        Ok(BmpPalette {
            bytes: start..*end,
            entry_bytes,
        })
    }
}

/// Reads little-endian fields at byte offsets.
struct HeaderFields<'a>(&'a [u8]);

impl HeaderFields<'_> {
    fn u16(&self, offset: usize) -> Result<u16, String> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn u32(&self, offset: usize) -> Result<u32, String> {
        self.array(offset).map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&self, offset: usize) -> Result<[u8; N], String> {
        let found = self.0.get(offset..).and_then(<[u8]>::first_chunk);
        found.copied().ok_or_else(|| {
            format!(
                "truncated header: expected {} bytes, found {}",
                offset + N,
                self.0.len()
            )
        })
    }
}
