//! TIFF: strips and tiles of any layout, to the levels that Pillow's `convert("RGB")` gives.
//!
//! What the `tiff` crate decodes is too little (no bits from the right, no palettes, no raw YCbCr), and some of its
//! assertions can be made to fail by a file; codecs are libraries, what stands around them is here.

mod chunk;
mod colour;
mod compression;
mod fax;
mod grid;
mod lab;
mod page;
mod predictor;
mod samples;
mod ycbcr;

use image::metadata::Orientation;

use crate::{
    Cancellation, Error, Image, ImageHeader, Result,
    media::tiff::{Directory, tag},
};
use page::Page;

/// Why `bytes` have no TIFF header: for a file that [`ImageHeader::read`] refused.
pub(super) fn header_fault(bytes: &[u8]) -> Error {
    Directory::read(bytes)
        .and_then(|directory| directory.summary())
        .err()
        .unwrap_or_else(|| Error::internal("a TIFF header was refused and is good"))
}

/// Decodes the first page to RGB, and tells its orientation. The caller has held `header` against the limits.
///
/// # Errors
/// `Undecodable`, for what is broken, and by name for what is not supported.
pub(super) fn decode(
    bytes: &[u8],
    header: &ImageHeader,
    cancellation: Cancellation<'_>,
) -> Result<(Image, Orientation)> {
    let directory = Directory::read(bytes)?;
    let page = Page::read(&directory, header)?;
    let orientation = directory.integer(tag::ORIENTATION)?.unwrap_or(1);
    let orientation = u8::try_from(orientation).ok().and_then(Orientation::from_exif);
    Ok((
        pixels(&page, cancellation)?,
        orientation.unwrap_or(Orientation::NoTransforms),
    ))
}

fn pixels(page: &Page<'_>, cancellation: Cancellation<'_>) -> Result<Image> {
    let image_row = page.grid.width as usize * 3;
    let mut pixels = vec![0; image_row * page.grid.height as usize];
    let samples = page.planes().len() * page.plane_samples();
    let mut levels = Vec::new();
    for place in page.grid.places() {
        cancellation.check()?;
        let planes = page
            .planes()
            .map(|plane| chunk::read(page, plane, place, cancellation))
            .collect::<Result<Vec<_>>>()?;
        levels.resize(place.width as usize * samples, 0);
        for row in 0..place.height as usize {
            for (plane, chunk) in planes.iter().enumerate() {
                chunk.levels(row, &mut levels, plane, samples);
            }
            let start = (place.y as usize + row) * image_row + place.x as usize * 3;
            let out = &mut pixels[start..start + place.width as usize * 3];
            page.colour.to_rgb(&levels, samples, out);
        }
    }
    Ok(Image::from_parts(page.grid.width, page.grid.height, pixels))
}
