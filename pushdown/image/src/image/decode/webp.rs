//! WebP: a still image, or the first frame of an animation.
//!
//! The `image` crate blends the first frame with a background. Pillow does not blend it, and drops alpha.

use std::io::Cursor;

use image::{DynamicImage, ImageReader};

use super::max_decoder_bytes;
use pushdown_core::{
    Error, Image, ImageHeader, Result,
    media::webp::{FirstFrame, coded_size, is_animated},
};

/// Decodes `bytes` to RGB. The caller has checked `header` against the limits.
pub(super) fn decode(bytes: &[u8], header: &ImageHeader) -> Result<Image> {
    if !is_animated(bytes) {
        return decode_still(bytes, header);
    }
    let frame = FirstFrame::read(bytes)
        .ok_or_else(|| Error::undecodable("webp: expected a complete first frame, found none"))?;
    on_canvas(&frame, header)
}

/// Decodes a file of one image. Refuses a coded image of another size than `header`: it could need more memory.
fn decode_still(bytes: &[u8], header: &ImageHeader) -> Result<Image> {
    let expected = (header.width, header.height);
    let found = coded_size(bytes);
    if found != Some(expected) {
        return Err(Error::undecodable(format!(
            "webp: the coded image has another size: expected {expected:?}, found {found:?}"
        )));
    }
    decode_limited(bytes, header)
}

/// Decodes a file with the `image` crate, limited to the size of `header` and in memory.
fn decode_limited(bytes: &[u8], header: &ImageHeader) -> Result<Image> {
    let undecodable = |error: image::ImageError| Error::undecodable(format!("{}: {error}", header.media));
    let mut reader = ImageReader::with_format(Cursor::new(bytes), header.media.format());
    let mut limits = image::Limits::no_limits();
    limits.max_image_width = Some(header.width);
    limits.max_image_height = Some(header.height);
    limits.max_alloc = Some(max_decoder_bytes(header));
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(undecodable)?;
    let rgb = DynamicImage::from_decoder(decoder)
        .map_err(undecodable)?
        .into_rgb8();
    Image::new(rgb.width(), rgb.height(), rgb.into_raw())
}

/// The frame at its position on the canvas, which is black elsewhere.
fn on_canvas(frame: &FirstFrame, header: &ImageHeader) -> Result<Image> {
    let (x, y) = (frame.x as usize, frame.y as usize);
    let (width, height) = (header.width as usize, header.height as usize);
    if x + frame.width as usize > width || y + frame.height as usize > height {
        return Err(Error::undecodable(format!(
            "webp: the first frame does not fit: expected at most {width} x {height} pixels, found {} x {} at {x}, {y}",
            frame.width, frame.height
        )));
    }
    let frame_header = ImageHeader {
        width: frame.width,
        height: frame.height,
        ..*header
    };
    let frame = decode_still(&frame.file, &frame_header)?;
    let mut pixels = vec![0; width * height * 3];
    for (target, row) in pixels
        .chunks_exact_mut(width * 3)
        .skip(y)
        .zip(frame.pixels().chunks_exact(frame.stride()))
    {
        target[x * 3..][..row.len()].copy_from_slice(row);
    }
    Image::new(header.width, header.height, pixels)
}
