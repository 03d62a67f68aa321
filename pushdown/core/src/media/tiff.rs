//! The structure of TIFF (TIFF 6.0, BigTIFF): the header and the directory of the first page, without pixels.
//!
//! Everything is read in place, so that no claim of a file makes the reader allocate memory.

mod values;

pub use values::{ByteOrder, TagValues};

use super::{ImageHeader, MediaType};
use crate::{Error, Result};

/// Tags (TIFF 6.0, appendix A; the last four are from supplements and libtiff).
pub mod tag {
    /// `ImageWidth`.
    pub const IMAGE_WIDTH: u16 = 256;
    /// `ImageLength`.
    pub const IMAGE_LENGTH: u16 = 257;
    /// `BitsPerSample`.
    pub const BITS_PER_SAMPLE: u16 = 258;
    /// `Compression`.
    pub const COMPRESSION: u16 = 259;
    /// `Photometric`.
    pub const PHOTOMETRIC: u16 = 262;
    /// `FillOrder`.
    pub const FILL_ORDER: u16 = 266;
    /// `StripOffsets`.
    pub const STRIP_OFFSETS: u16 = 273;
    /// `Orientation`.
    pub const ORIENTATION: u16 = 274;
    /// `SamplesPerPixel`.
    pub const SAMPLES_PER_PIXEL: u16 = 277;
    /// `RowsPerStrip`.
    pub const ROWS_PER_STRIP: u16 = 278;
    /// `StripByteCounts`.
    pub const STRIP_BYTE_COUNTS: u16 = 279;
    /// `PlanarConfiguration`.
    pub const PLANAR_CONFIGURATION: u16 = 284;
    /// `T4Options`.
    pub const T4_OPTIONS: u16 = 292;
    /// `Predictor`.
    pub const PREDICTOR: u16 = 317;
    /// `ColorMap`.
    pub const COLOR_MAP: u16 = 320;
    /// `TileWidth`.
    pub const TILE_WIDTH: u16 = 322;
    /// `TileLength`.
    pub const TILE_LENGTH: u16 = 323;
    /// `TileOffsets`.
    pub const TILE_OFFSETS: u16 = 324;
    /// `TileByteCounts`.
    pub const TILE_BYTE_COUNTS: u16 = 325;
    /// `ExtraSamples`.
    pub const EXTRA_SAMPLES: u16 = 338;
    /// `SampleFormat`.
    pub const SAMPLE_FORMAT: u16 = 339;
    /// `JPEGTables`.
    pub const JPEG_TABLES: u16 = 347;
    /// `YCbCrCoefficients`.
    pub const YCBCR_COEFFICIENTS: u16 = 529;
    /// `YCbCrSubSampling`.
    pub const YCBCR_SUBSAMPLING: u16 = 530;
    /// `ReferenceBlackWhite`.
    pub const REFERENCE_BLACK_WHITE: u16 = 532;
}

/// The signatures that Pillow accepts: TIFF, BigTIFF, and those of writers that mixed up the byte orders.
const MAGIC: [&[u8; 4]; 6] = [
    b"II\x2a\0",
    b"MM\0\x2a",
    b"II\x2b\0",
    b"MM\0\x2b",
    b"II\0\x2a",
    b"MM\x2a\0",
];

/// Maximum entries of a directory. Usual ones have a few dozen; every lookup of a tag scans them all.
const MAX_ENTRIES: u64 = u16::MAX as u64;

/// Whether `bytes` start with the signature of a TIFF.
pub(super) fn is_tiff(bytes: &[u8]) -> bool {
    MAGIC.iter().any(|magic| bytes.starts_with(*magic))
}

/// The directory of the first page. Links to later pages and to sub-directories are not followed, so cycles are harmless.
#[derive(Debug, Clone, Copy)]
pub struct TiffDirectory<'a> {
    bytes: &'a [u8],
    order: ByteOrder,
    is_big_tiff: bool,
    /// 12 bytes per entry, in BigTIFF 20.
    entries: &'a [u8],
}

impl<'a> TiffDirectory<'a> {
    /// # Errors
    /// `Undecodable` for a truncated header, and for a directory that is not within `bytes`.
    pub fn read(bytes: &'a [u8]) -> Result<Self> {
        let truncated = || Error::undecodable("the TIFF ends in its header: expected 8 bytes, in BigTIFF 16");
        let order = if bytes.starts_with(b"MM") {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        };
        let is_big_tiff = bytes.get(2..4).ok_or_else(truncated)?.contains(&43);
        let (offset_field, count_size, entry_size) = if is_big_tiff {
            (8..16, 8, 20)
        } else {
            (4..8, 2, 12)
        };
        let start = order.integer(bytes.get(offset_field).ok_or_else(truncated)?);
        let out_of_bounds = || {
            Error::undecodable(format!(
                "the TIFF's directory is at byte {start}: expected all of it within the {} bytes of the file",
                bytes.len()
            ))
        };
        let rest = usize::try_from(start)
            .ok()
            .and_then(|start| bytes.get(start..))
            .ok_or_else(out_of_bounds)?;
        let (count, rest) = rest.split_at_checked(count_size).ok_or_else(out_of_bounds)?;
        let count = order.integer(count);
        if count > MAX_ENTRIES {
            return Err(Error::undecodable(format!(
                "the TIFF's directory has {count} entries: expected at most {MAX_ENTRIES}"
            )));
        }
        let length = usize::try_from(count).map_err(|_| out_of_bounds())? * entry_size;
        let entries = rest.get(..length).ok_or_else(out_of_bounds)?;
        Ok(Self {
            bytes,
            order,
            is_big_tiff,
            entries,
        })
    }

    /// The whole file.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The byte order of numbers in the file.
    pub const fn order(&self) -> ByteOrder {
        self.order
    }

    /// The values of `tag`, of its first entry if there are several; `None` if there is none.
    ///
    /// # Errors
    /// `Undecodable` for values of an unknown type, and for values that are not within the file.
    pub fn find(&self, tag: u16) -> Result<Option<TagValues<'a>>> {
        let (size, count_end) = if self.is_big_tiff { (20, 12) } else { (12, 8) };
        let found = self
            .entries
            .chunks_exact(size)
            .find(|entry| self.order.integer(&entry[..2]) == u64::from(tag));
        let Some(entry) = found else {
            return Ok(None);
        };
        let kind = self.order.integer(&entry[2..4]);
        let count = self.order.integer(&entry[4..count_end]);
        let field = &entry[count_end..];
        let item = TagValues::size(kind).ok_or_else(|| {
            Error::undecodable(format!(
                "the TIFF's tag {tag} has values of type {kind}: expected 1 to 13 or 16 to 18"
            ))
        })?;
        let data = usize::try_from(count)
            .ok()
            .and_then(|count| count.checked_mul(item))
            .and_then(|length| {
                if length <= field.len() {
                    return field.get(..length);
                }
                let start = usize::try_from(self.order.integer(field)).ok()?;
                self.bytes.get(start..start.checked_add(length)?)
            });
        let data = data.ok_or_else(|| {
            Error::undecodable(format!(
                "the TIFF's tag {tag} has {count} values: expected all of them within the {} bytes of the file",
                self.bytes.len()
            ))
        })?;
        Ok(Some(TagValues::new(tag, self.order, kind, data)))
    }

    /// The first value of `tag`, an integer of at least 0; `None` if there is no such tag.
    pub fn integer(&self, tag: u16) -> Result<Option<u64>> {
        self.find(tag)?.map(|values| values.integer(0)).transpose()
    }

    /// The first value of a tag that is required.
    fn required(&self, tag: u16, name: &str) -> Result<u64> {
        self.integer(tag)?
            .ok_or_else(|| Error::undecodable(format!("the TIFF lacks tag {tag} ({name})")))
    }

    /// The image header, without reading any pixel.
    pub fn summary(&self) -> Result<ImageHeader> {
        let width = self.required(tag::IMAGE_WIDTH, "ImageWidth")?;
        let height = self.required(tag::IMAGE_LENGTH, "ImageLength")?;
        let side = |side: u64| u32::try_from(side).ok().filter(|side| *side > 0);
        let (Some(wide), Some(high)) = (side(width), side(height)) else {
            return Err(Error::undecodable(format!(
                "the TIFF states {width} x {height} pixels: expected 1 to {} a side",
                u32::MAX
            )));
        };
        let bits = self.integer(tag::BITS_PER_SAMPLE)?.unwrap_or(1);
        let samples = self.integer(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
        // The stored samples of a strip, and the samples that JPEG or subsampled chroma expand to.
        let stored = bits.saturating_mul(samples).div_ceil(8);
        let scratch = stored.saturating_add(samples.saturating_mul(3));
        Ok(ImageHeader {
            media: MediaType::Tiff,
            width: wide,
            height: high,
            // Read when the page is decoded.
            orientation: None,
            scratch_bytes_per_pixel: u8::try_from(scratch).unwrap_or(u8::MAX),
            is_scalable: false,
        })
    }
}

#[cfg(test)]
mod tests;
