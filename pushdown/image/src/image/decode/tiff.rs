//! TIFF: strips and tiles of any layout, with the results of Pillow's `convert("RGB")`.
//!
//! The `tiff` crate supports too little (no reversed bits, no palettes, no raw YCbCr), and a file can make some of its assertions
//! fail. Libraries provide the codecs; this module does the rest.

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

use page::Page;
use pushdown_core::{
    Cancellation, Error, Image, ImageHeader, Result,
    media::tiff::{TiffDirectory, tag},
};

/// Why `bytes` have no valid TIFF header. For a file that [`ImageHeader::read`] refused.
pub(super) fn header_fault(bytes: &[u8]) -> Error {
    TiffDirectory::read(bytes)
        .and_then(|directory| directory.summary())
        .err()
        .unwrap_or_else(|| Error::internal("a valid TIFF header was refused"))
}

/// Decodes the first page to RGB, and returns its orientation. The caller has checked `header` against the limits.
///
/// # Errors
/// `Undecodable` for broken files, and with its name for an unsupported feature.
pub(super) fn decode(
    bytes: &[u8],
    header: &ImageHeader,
    cancellation: Cancellation<'_>,
) -> Result<(Image, Orientation)> {
    let directory = TiffDirectory::read(bytes)?;
    let page = Page::read(&directory, header)?;
    let orientation = directory.integer(tag::ORIENTATION)?.unwrap_or(1);
    let orientation = u8::try_from(orientation).ok().and_then(Orientation::from_exif);
    Ok((
        decode_page(&page, cancellation)?,
        orientation.unwrap_or(Orientation::NoTransforms),
    ))
}

fn decode_page(page: &Page<'_>, cancellation: Cancellation<'_>) -> Result<Image> {
    let row_bytes = page.grid.width as usize * 3;
    let mut pixels = vec![0; row_bytes * page.grid.height as usize];
    let samples = page.planes().len() * page.plane_samples();
    let mut levels = Vec::new();
    for area in page.grid.areas() {
        cancellation.check()?;
        let planes = page
            .planes()
            .map(|plane| chunk::read(page, plane, area, cancellation))
            .collect::<Result<Vec<_>>>()?;
        levels.resize(area.width as usize * samples, 0);
        for row in 0..area.height as usize {
            for (plane, chunk) in planes.iter().enumerate() {
                chunk.write_levels(row, &mut levels, plane, samples);
            }
            let start = (area.y as usize + row) * row_bytes + area.x as usize * 3;
            let out = &mut pixels[start..start + area.width as usize * 3];
            page.colour.to_rgb(&levels, samples, out);
        }
    }
    Ok(Image::from_parts(page.grid.width, page.grid.height, pixels))
}
