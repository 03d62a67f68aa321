//! Every format but JPEG and TIFF, through the `image` crate.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder as _, ImageReader, metadata::Orientation};

use crate::{Error, Image, ImageHeader, Result};

/// What a decoder may take per pixel: 16 bytes of RGBA in f32, and as much again between its passes.
const BYTES_PER_PIXEL: u64 = 32;
/// What it may take beside that: metadata and palettes.
const SLACK: u64 = 16 << 20;

/// Decodes `bytes` to RGB, and tells the EXIF orientation. The caller has held `header` against the limits.
pub(super) fn decode(bytes: &[u8], header: &ImageHeader) -> Result<(Image, Orientation)> {
    let undecodable = |error: image::ImageError| Error::undecodable(format!("{}: {error}", header.media));
    let mut reader = ImageReader::with_format(Cursor::new(bytes), header.media.format());
    let mut limits = image::Limits::no_limits();
    limits.max_image_width = Some(header.width);
    limits.max_image_height = Some(header.height);
    limits.max_alloc = Some(
        header
            .pixels()
            .saturating_mul(BYTES_PER_PIXEL)
            .saturating_add(SLACK),
    );
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(undecodable)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let rgb = DynamicImage::from_decoder(decoder)
        .map_err(undecodable)?
        .into_rgb8();
    Ok((
        Image::new(rgb.width(), rgb.height(), rgb.into_raw())?,
        orientation,
    ))
}
