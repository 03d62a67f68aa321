//! A part of a JPEG in place of the whole.

use bytes::Bytes;

use crate::{Error, ImageHeader, Result};

/// A JPEG without the blocks that no later step reads, with its position in the whole. Its pixels are those of the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CroppedJpeg {
    bytes: Bytes,
    position: CropPosition,
}

/// Where a cropped JPEG lies in the whole, in pixels of the stored image, before any scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CropPosition {
    /// The first column.
    pub crop_x: u32,
    /// The first row.
    pub crop_y: u32,
    /// Width of the whole.
    pub image_width: u32,
    /// Height of the whole.
    pub image_height: u32,
}

impl CroppedJpeg {
    /// Maximum side of a JPEG in pixels: its header has 16 bits for it.
    const MAX_SIDE: u32 = 0xffff;

    /// A cropped JPEG, whose `bytes` are not checked before they are decoded.
    ///
    /// # Errors
    /// [`ErrorKind::Undecodable`](crate::ErrorKind) for a whole that is no JPEG by its size, and for a position outside of it.
    pub fn new(bytes: Bytes, position: CropPosition) -> Result<Self> {
        let CropPosition {
            crop_x,
            crop_y,
            image_width,
            image_height,
        } = position;
        let is_side = |side: u32| (1..=Self::MAX_SIDE).contains(&side);
        if !is_side(image_width) || !is_side(image_height) {
            return Err(Error::undecodable(format!(
                "cropped JPEG: expected a whole of up to {max} x {max} pixels, found {image_width} x {image_height}",
                max = Self::MAX_SIDE
            )));
        }
        if crop_x >= image_width || crop_y >= image_height {
            return Err(Error::undecodable(format!(
                "cropped JPEG: expected a position within {image_width} x {image_height} pixels, found {crop_x}, {crop_y}"
            )));
        }
        Ok(Self { bytes, position })
    }

    /// The file.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The file, without its position.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Where it lies in the whole.
    pub const fn position(&self) -> CropPosition {
        self.position
    }

    /// The header of the whole, as far as its pixels depend on it: a whole that EXIF turns is never cropped.
    pub const fn header(&self) -> ImageHeader {
        ImageHeader::upright_jpeg(self.position.image_width, self.position.image_height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_within_a_jpeg() {
        let new = |crop_x, crop_y, image_width, image_height| {
            let position = CropPosition {
                crop_x,
                crop_y,
                image_width,
                image_height,
            };
            CroppedJpeg::new(Bytes::new(), position).map(|crop| crop.header().pixels())
        };
        assert_eq!(new(0, 0, 1, 1).unwrap(), 1);
        assert_eq!(new(65_534, 0, 65_535, 65_535).unwrap(), 65_535 * 65_535);
        for (crop_x, crop_y, image_width, image_height, fault) in [
            (
                0,
                0,
                0,
                9,
                "expected a whole of up to 65535 x 65535 pixels, found 0 x 9",
            ),
            (
                0,
                0,
                9,
                65_536,
                "expected a whole of up to 65535 x 65535 pixels, found 9 x 65536",
            ),
            (9, 0, 9, 9, "expected a position within 9 x 9 pixels, found 9, 0"),
            (
                0,
                u32::MAX,
                9,
                9,
                "expected a position within 9 x 9 pixels, found 0, 4294967295",
            ),
        ] {
            let error = new(crop_x, crop_y, image_width, image_height).unwrap_err();
            assert_eq!(error.to_string(), format!("cropped JPEG: {fault}"));
        }
    }
}
