//! TIFF's structure (TIFF 6.0, BigTIFF): the header and the directory of the first page, without its pixels.
//!
//! Everything is read in place: whatever a file claims, no more is looked at than it has.

mod values;

pub(crate) use values::{Order, Values};

use super::{ImageHeader, MediaType};
use crate::{Error, Result};

/// Tags (TIFF 6.0, appendix A; the last four are of supplements and of libtiff).
pub(crate) mod tag {
    pub(crate) const IMAGE_WIDTH: u16 = 256;
    pub(crate) const IMAGE_LENGTH: u16 = 257;
    pub(crate) const BITS_PER_SAMPLE: u16 = 258;
    pub(crate) const COMPRESSION: u16 = 259;
    pub(crate) const PHOTOMETRIC: u16 = 262;
    pub(crate) const FILL_ORDER: u16 = 266;
    pub(crate) const STRIP_OFFSETS: u16 = 273;
    pub(crate) const ORIENTATION: u16 = 274;
    pub(crate) const SAMPLES_PER_PIXEL: u16 = 277;
    pub(crate) const ROWS_PER_STRIP: u16 = 278;
    pub(crate) const STRIP_BYTE_COUNTS: u16 = 279;
    pub(crate) const PLANAR_CONFIGURATION: u16 = 284;
    pub(crate) const T4_OPTIONS: u16 = 292;
    pub(crate) const PREDICTOR: u16 = 317;
    pub(crate) const COLOR_MAP: u16 = 320;
    pub(crate) const TILE_WIDTH: u16 = 322;
    pub(crate) const TILE_LENGTH: u16 = 323;
    pub(crate) const TILE_OFFSETS: u16 = 324;
    pub(crate) const TILE_BYTE_COUNTS: u16 = 325;
    pub(crate) const EXTRA_SAMPLES: u16 = 338;
    pub(crate) const SAMPLE_FORMAT: u16 = 339;
    pub(crate) const JPEG_TABLES: u16 = 347;
    pub(crate) const YCBCR_COEFFICIENTS: u16 = 529;
    pub(crate) const YCBCR_SUBSAMPLING: u16 = 530;
    pub(crate) const REFERENCE_BLACK_WHITE: u16 = 532;
}

/// Pillow takes these for TIFF: two of BigTIFF, and two of writers that mixed the byte orders up.
const MAGIC: [&[u8; 4]; 6] = [
    b"II\x2a\0",
    b"MM\0\x2a",
    b"II\x2b\0",
    b"MM\0\x2b",
    b"II\0\x2a",
    b"MM\x2a\0",
];

/// A directory has a few dozen entries; each is looked at for every tag.
const MOST_ENTRIES: u64 = u16::MAX as u64;

/// Whether `bytes` start as a TIFF does.
pub(super) fn is_tiff(bytes: &[u8]) -> bool {
    MAGIC.iter().any(|magic| bytes.starts_with(*magic))
}

/// The first page's directory. Later pages and sub-directories are not followed, so that loops of them do no harm.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Directory<'a> {
    bytes: &'a [u8],
    order: Order,
    big: bool,
    /// Of 12 bytes each, in BigTIFF 20.
    entries: &'a [u8],
}

impl<'a> Directory<'a> {
    /// # Errors
    /// `Undecodable` where the header is none, or the directory is not within `bytes`.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let short = || Error::undecodable("the TIFF ends in its header: expected 8 bytes, in BigTIFF 16");
        let order = if bytes.starts_with(b"MM") {
            Order::Big
        } else {
            Order::Little
        };
        let big = bytes.get(2..4).ok_or_else(short)?.contains(&43);
        let (place, count_size, entry_size) = if big { (8..16, 8, 20) } else { (4..8, 2, 12) };
        let start = order.integer(bytes.get(place).ok_or_else(short)?);
        let lost = || {
            Error::undecodable(format!(
                "the TIFF's directory is at byte {start}: expected all of it within the {} bytes of the file",
                bytes.len()
            ))
        };
        let rest = usize::try_from(start)
            .ok()
            .and_then(|start| bytes.get(start..))
            .ok_or_else(lost)?;
        let (count, rest) = rest.split_at_checked(count_size).ok_or_else(lost)?;
        let count = order.integer(count);
        if count > MOST_ENTRIES {
            return Err(Error::undecodable(format!(
                "the TIFF's directory has {count} entries: expected at most {MOST_ENTRIES}"
            )));
        }
        let length = usize::try_from(count).map_err(|_| lost())? * entry_size;
        let entries = rest.get(..length).ok_or_else(lost)?;
        Ok(Self {
            bytes,
            order,
            big,
            entries,
        })
    }

    /// The whole file.
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) const fn order(&self) -> Order {
        self.order
    }

    /// The values of `tag`, the first where it stands there twice; `None` where it does not stand there.
    ///
    /// # Errors
    /// `Undecodable` where the values have a type that is none, or are not within the file.
    pub(crate) fn find(&self, tag: u16) -> Result<Option<Values<'a>>> {
        let (size, count_end) = if self.big { (20, 12) } else { (12, 8) };
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
        let item = Values::size(kind).ok_or_else(|| {
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
        Ok(Some(Values::new(tag, self.order, kind, data)))
    }

    /// The first value of `tag`, which is no integer below 0; `None` where it does not stand there.
    pub(crate) fn integer(&self, tag: u16) -> Result<Option<u64>> {
        self.find(tag)?.map(|values| values.integer(0)).transpose()
    }

    /// The same for a tag that may not be missing.
    fn required(&self, tag: u16, name: &str) -> Result<u64> {
        self.integer(tag)?
            .ok_or_else(|| Error::undecodable(format!("the TIFF lacks tag {tag} ({name})")))
    }

    /// What the header tells: as for other formats, before any pixel.
    pub(crate) fn summary(&self) -> Result<ImageHeader> {
        let width = self.required(tag::IMAGE_WIDTH, "ImageWidth")?;
        let height = self.required(tag::IMAGE_LENGTH, "ImageLength")?;
        let side = |side: u64| u32::try_from(side).ok().filter(|side| *side > 0);
        let (Some(wide), Some(high)) = (side(width), side(height)) else {
            return Err(Error::undecodable(format!(
                "the TIFF says {width} x {height} pixels: expected 1 to {} a side",
                u32::MAX
            )));
        };
        let bits = self.integer(tag::BITS_PER_SAMPLE)?.unwrap_or(1);
        let samples = self.integer(tag::SAMPLES_PER_PIXEL)?.unwrap_or(1);
        // The samples of a strip as they are stored, and what JPEG or subsampled chroma make of them.
        let stored = bits.saturating_mul(samples).div_ceil(8);
        let scratch = stored.saturating_add(samples.saturating_mul(3));
        Ok(ImageHeader {
            media: MediaType::Tiff,
            width: wide,
            height: high,
            // Only decoding turns it.
            orientation: None,
            scratch_per_pixel: u8::try_from(scratch).unwrap_or(u8::MAX),
            scalable: false,
        })
    }
}

#[cfg(test)]
mod tests;
