//! The header of a Windows or OS/2 bitmap.

use std::ops::Range;

/// What stands before the pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BmpHeader {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Rows are stored from the top.
    pub(crate) is_top_down: bool,
    pub(crate) pixels: BmpPixels,
    /// Where the pixels begin in the file.
    pub(crate) offset: usize,
}

/// How pixels are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BmpPixels {
    /// Indices of 1, 2, 4 or 8 bits into the palette, which stands at `palette` in the file.
    Indexed { bits: u16, palette: BmpPalette },
    /// Indices in runs.
    RunLength { is_4_bit: bool, palette: BmpPalette },
    /// Words of `bytes` bytes, little-endian, with the bits of red, green and blue.
    Masked { bytes: u8, masks: [u32; 3] },
}

/// Where colours stand in the file: `entry` bytes each, of which the first three are blue, green and red.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BmpPalette {
    pub(crate) bytes: Range<usize>,
    pub(crate) entry: usize,
}

/// The file header, of 14 bytes, is followed by one of these sizes.
const CORE_BYTES: u32 = 12;
const INFO_BYTES: [u32; 6] = [40, 52, 56, 64, 108, 124];
const FILE_HEADER_BYTES: usize = 14;
/// Bytes for blue, green and red, in this order.
const RGB_MASKS: [u32; 3] = [0xff_0000, 0xff00, 0xff];
/// Bytes of the information header before its first mask.
const MASKS_AT: usize = FILE_HEADER_BYTES + 40;

impl BmpHeader {
    /// Reads the header from the start of a file, as Pillow does.
    ///
    /// # Errors
    /// What was expected and found, for a header that is cut short or of a kind that Pillow does not read.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let fields = Fields(bytes);
        let size = fields.u32(FILE_HEADER_BYTES)?;
        let at = |field: usize| FILE_HEADER_BYTES + field;
        if size == CORE_BYTES {
            let (width, height) = (fields.u16(at(4))?, fields.u16(at(6))?);
            let layout = Layout {
                bits: fields.u16(at(10))?,
                compression: 0,
                colours: 0,
                size,
            };
            return Self::of((width.into(), height.into()), false, &layout, &fields);
        }
        if !INFO_BYTES.contains(&size) {
            return Err(format!(
                "invalid header size: expected 12, 40, 52, 56, 64, 108 or 124, found {size}"
            ));
        }
        let (width, height) = (fields.u32(at(4))?, fields.u32(at(8))?);
        // A negative height is that of rows from the top.
        let is_top_down = height >> 24 == 0xff;
        let height = if is_top_down {
            height.wrapping_neg()
        } else {
            height
        };
        let layout = Layout {
            bits: fields.u16(at(14))?,
            compression: fields.u32(at(16))?,
            colours: fields.u32(at(32))?,
            size,
        };
        Self::of((width, height), is_top_down, &layout, &fields)
    }

    fn of(
        (width, height): (u32, u32),
        is_top_down: bool,
        layout: &Layout,
        fields: &Fields<'_>,
    ) -> Result<Self, String> {
        let stated = fields.u32(10)? as usize;
        let mut end = FILE_HEADER_BYTES + layout.size as usize;
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
                    fields.u32(MASKS_AT)?,
                    fields.u32(MASKS_AT + 4)?,
                    fields.u32(MASKS_AT + 8)?,
                ];
                if layout.size == 40 {
                    end += 12;
                }
                // As in Pillow, no masks at all are the usual ones.
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
                    "compression {compression} of {bits} bits a pixel is not supported"
                ));
            }
        };
        let header_end = FILE_HEADER_BYTES + layout.size as usize;
        // Some writers leave the offset out, or forget the palette in it.
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

/// What of the header decides where things stand.
struct Layout {
    size: u32,
    bits: u16,
    compression: u32,
    colours: u32,
}

impl Layout {
    /// The palette, which starts at `end` and moves it.
    fn palette(&self, end: &mut usize) -> Result<BmpPalette, String> {
        let entry = if self.size == CORE_BYTES { 3 } else { 4 };
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
        *end += colours as usize * entry;
        Ok(BmpPalette {
            bytes: start..*end,
            entry,
        })
    }
}

/// Little-endian fields at their places.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u16(&self, at: usize) -> Result<u16, String> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(&self, at: usize) -> Result<u32, String> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn array<const N: usize>(&self, at: usize) -> Result<[u8; N], String> {
        let found = self.0.get(at..).and_then(<[u8]>::first_chunk);
        found.copied().ok_or_else(|| {
            format!(
                "the header is cut short: expected {} bytes, found {}",
                at + N,
                self.0.len()
            )
        })
    }
}
