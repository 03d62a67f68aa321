//! Cropped JPEGs: how they are made of a file, and how they are decoded in its place.

use super::{
    File, Region, Window,
    grid::BlockGrid,
    libjpeg::{self, CropJob},
};
use pushdown_core::{
    Cancellation, CropPosition, CroppedJpeg, Error, ImageHeader, Result,
    media::{self, JpegHeader},
};

/// Bytes of the columns of a row or the headers of an answer that state the position of a cropped JPEG. One that is not smaller
/// by this much is not made.
const POSITION_BYTES: usize = 64;

/// A file of the blocks of `bytes` that the region `wanted` depends on, in pixels of the image at `1 / divisor` of each side.
/// `None` if the whole file has to be sent: for a coding that cannot be cropped, a faulty file, and a part that
/// is hardly smaller than the whole.
///
/// The file is read as far as [`decode`](super::decode) reads it for the same region.
///
/// # Errors
/// Those of [`Cancellation::check`].
pub(in super::super) fn crop(
    bytes: &[u8],
    header: &ImageHeader,
    divisor: u32,
    wanted: Region,
    cancellation: Cancellation<'_>,
) -> Result<Option<CroppedJpeg>> {
    let Some(grid) = grid(bytes, (header.width, header.height), divisor) else {
        return Ok(None);
    };
    let region = grid.crop(wanted);
    let Some(max_bytes) = bytes.len().checked_sub(POSITION_BYTES) else {
        return Ok(None);
    };
    if !grid.is_worthwhile(region) {
        return Ok(None);
    }
    // A fault of the file is reported by whoever decodes it.
    let Ok(file) = File::open(bytes, header, cancellation) else {
        return Ok(None);
    };
    if file.warned || file.header.is_arithmetic() {
        return Ok(None);
    }
    let job = CropJob {
        bytes,
        size: (header.width, header.height),
        region,
        stop_below: file.can_skip_rows_below(wanted, header.height.div_ceil(divisor)),
        max_scans: file.max_scans,
        max_bytes,
        cancellation,
    };
    let Some(cropped) = libjpeg::crop(&job)? else {
        return Ok(None);
    };
    let position = CropPosition {
        crop_x: region.x,
        crop_y: region.y,
        image_width: header.width,
        image_height: header.height,
    };
    CroppedJpeg::new(cropped.into(), position).map(Some)
}

/// Decodes at least `wanted`, a region of the whole image at `1 / divisor` of each side, from the file that [`crop`] makes for it.
///
/// # Errors
/// `Undecodable` for any other file than one that `crop` may make for this region; those of [`Cancellation::check`].
pub(in super::super) fn decode_crop(
    crop: &CroppedJpeg,
    divisor: u32,
    wanted: Region,
    cancellation: Cancellation<'_>,
) -> Result<Window> {
    let (bytes, position) = (crop.bytes(), crop.position());
    let grid = grid(bytes, (position.image_width, position.image_height), divisor);
    let Some(grid) = grid.filter(|_| media::one_scan_length(bytes) == Some(bytes.len())) else {
        return Err(fault("expected one image in one scan, grey or in colour"));
    };
    let header = ImageHeader::read(bytes).ok_or_else(|| fault("expected an image, found none"))?;
    let expected = grid.crop(wanted);
    let found = Region {
        x: position.crop_x,
        y: position.crop_y,
        width: header.width,
        height: header.height,
    };
    if found != expected {
        return Err(fault(format!(
            "expected {} for this region of {} x {} pixels, found {}",
            text(expected),
            position.image_width,
            position.image_height,
            text(found)
        )));
    }
    let in_crop = Region {
        x: wanted.x - found.x / divisor,
        y: wanted.y - found.y / divisor,
        ..wanted
    };
    let decoded = File::open(bytes, &header, cancellation)?.decode(divisor, Some(in_crop))?;
    if decoded.warned {
        return Err(fault("its data is broken"));
    }
    Ok(decoded.window.moved(found.x / divisor, found.y / divisor))
}

/// The blocks of a file; `None` if the file cannot be cropped.
fn grid(bytes: &[u8], (width, height): (u32, u32), divisor: u32) -> Option<BlockGrid> {
    let header = JpegHeader::read(bytes).filter(|header| matches!(header.components(), 1 | 3))?;
    Some(BlockGrid {
        width,
        height,
        subsampling: header.subsampling()?,
        divisor,
    })
}

fn text(region: Region) -> String {
    format!(
        "{} x {} pixels at {}, {}",
        region.width, region.height, region.x, region.y
    )
}

fn fault(fault: impl std::fmt::Display) -> Error {
    Error::undecodable(format!("cropped JPEG: {fault}"))
}

#[cfg(test)]
mod tests;
