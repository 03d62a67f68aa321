//! Every format but JPEG, through the `image` crate.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageReader, metadata::Orientation};

use crate::{Error, Image, MediaType, Result};

/// Decodes `bytes` to RGB, and tells the EXIF orientation. The caller has checked the dimensions.
pub(super) fn decode(bytes: &[u8], media: MediaType) -> Result<(Image, Orientation)> {
    let undecodable = |error: image::ImageError| Error::undecodable(format!("{media}: {error}"));
    let mut decoder =
        ImageReader::with_format(Cursor::new(bytes), media.format()).into_decoder().map_err(undecodable)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let rgb = DynamicImage::from_decoder(decoder).map_err(undecodable)?.into_rgb8();
    Ok((Image::new(rgb.width(), rgb.height(), rgb.into_raw())?, orientation))
}
