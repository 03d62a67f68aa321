//! One strip or tile, from the file to samples.

use super::{
    super::jpeg,
    compression::{Compression, Source},
    grid::Place,
    page::Page,
    samples::{self, Format},
    ycbcr,
};
use crate::{Cancellation, Error, ImageHeader, Result, media, media::tiff::Order};

/// Rows of samples as they are before any compression.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    row_bytes: usize,
    /// Samples of a pixel.
    samples: usize,
    format: Format,
    order: Order,
    indexed: bool,
}

/// A chunk may take so many bytes more than its part of the image: tiles reach beyond small ones.
const SLACK: u64 = 16 << 20;

/// Compressed data are read as far as this many times what is made of them, and 64 KiB: no encoder needs more.
const MOST_EXPANSION: usize = 4;

/// Reads the chunk at `place` in `plane`, as far as it lies within the image.
///
/// # Errors
/// `Undecodable` where it is broken, ends early, or would be far larger than the image.
pub(super) fn read(
    page: &Page<'_>,
    plane: usize,
    place: Place,
    cancellation: Cancellation<'_>,
) -> Result<Chunk> {
    let number = page.grid.number(plane, place);
    let stored = page.grid.stored(page.file, number)?;
    let read = match page.compression {
        Compression::Jpeg(tables) => from_jpeg(page, tables, stored, place, cancellation),
        _ => from_rows(page, stored, place),
    };
    read.map_err(|error| {
        let text = format!("TIFF, {} {number}: {error}", page.grid.name());
        Error::new(error.kind(), text)
    })
}

fn from_rows(page: &Page<'_>, stored: &[u8], place: Place) -> Result<Chunk> {
    let (across, down) = page.subsampling;
    let subsampled = page.subsampling != (1, 1);
    let (row_bytes, rows) = if subsampled {
        let row_bytes = ycbcr::block_row_bytes(page.grid.chunk_width, (across, down));
        (row_bytes, place.height.div_ceil(down.into()))
    } else {
        (page.row_bytes(), place.height)
    };
    let (row_bytes, length) = allowed(page, row_bytes, rows)?;
    let most = length.saturating_mul(MOST_EXPANSION).saturating_add(1 << 16);
    let source = Source::new(&stored[..stored.len().min(most)], page.reversed);
    let mut bytes = vec![0; length];
    page.compression
        .decompress(source, page.grid.chunk_width, row_bytes, &mut bytes)?;
    let samples = page.plane_samples();
    page.predictor
        .undo(&mut bytes, row_bytes, samples, page.format.bits(), page.order);
    let (bytes, row_bytes) = if subsampled {
        let width = page.grid.chunk_width;
        allowed(page, u64::from(width) * 3, place.height)?;
        let pixels = ycbcr::spread(&bytes, width, place.height, page.subsampling);
        (pixels, width as usize * 3)
    } else {
        (bytes, row_bytes)
    };
    Ok(Chunk {
        bytes,
        row_bytes,
        samples,
        format: page.format,
        order: page.order,
        indexed: page.colour.is_indexed(),
    })
}

fn from_jpeg(
    page: &Page<'_>,
    tables: Option<&[u8]>,
    stored: &[u8],
    place: Place,
    cancellation: Cancellation<'_>,
) -> Result<Chunk> {
    let samples = page.plane_samples();
    // Whole tiles are decoded; the last strip may have as many rows as the others.
    let (row_bytes, length) = allowed(page, page.row_bytes(), page.grid.chunk_height)?;
    let most = length.saturating_mul(MOST_EXPANSION).saturating_add(1 << 16);
    let stored = &stored[..stored.len().min(most)];
    // The page says what the colours are, whatever the JPEG has in its own markers.
    let file = media::complete(tables, stored, page.jpeg_is_ycbcr)
        .ok_or_else(|| Error::undecodable("expected a JPEG, found other bytes"))?;
    let header = ImageHeader::read(&file)
        .ok_or_else(|| Error::undecodable("the JPEG header is broken or incomplete"))?;
    let expected = (page.grid.chunk_width, place.height);
    let fits = if page.grid.tiled {
        header.height == page.grid.chunk_height
    } else {
        (place.height..=page.grid.chunk_height).contains(&header.height)
    };
    if header.width != expected.0 || !fits {
        return Err(Error::undecodable(format!(
            "the JPEG has {} x {} pixels: expected {} x {}",
            header.width, header.height, expected.0, expected.1
        )));
    }
    let whole = (page.grid.width, page.grid.height);
    let decode = |count| jpeg::samples(&file, &header, count, whole, cancellation);
    let bytes = if samples == 2 {
        let mut bytes = decode(3)?;
        drop_third(&mut bytes);
        bytes
    } else {
        decode(samples)?
    };
    Ok(Chunk {
        bytes,
        row_bytes,
        samples,
        format: page.format,
        order: page.order,
        indexed: page.colour.is_indexed(),
    })
}

/// Of three samples a pixel leaves two.
fn drop_third(bytes: &mut Vec<u8>) {
    let pixels = bytes.len() / 3;
    for pixel in 0..pixels {
        bytes.copy_within(pixel * 3..pixel * 3 + 2, pixel * 2);
    }
    bytes.truncate(pixels * 2);
}

/// Bytes of a row and of `rows` of them, if that is no more than a chunk of this image may take.
fn allowed(page: &Page<'_>, row_bytes: u64, rows: u32) -> Result<(usize, usize)> {
    let image = u64::from(page.grid.width).saturating_mul(page.grid.height.into());
    let most = image.saturating_mul(page.row_bytes() / u64::from(page.grid.chunk_width) + 1);
    let most = most.saturating_add(SLACK);
    let length = row_bytes.saturating_mul(rows.into());
    match (usize::try_from(row_bytes), usize::try_from(length)) {
        (Ok(row_bytes), Ok(bytes)) if length <= most => Ok((row_bytes, bytes)),
        _ => Err(Error::undecodable(format!(
            "{rows} rows of {row_bytes} bytes, for an image of {} x {} pixels: expected at most {most} bytes",
            page.grid.width, page.grid.height
        ))),
    }
}

impl Chunk {
    /// Levels of row `row`: its samples for plane `plane` of `stride` samples in a pixel, to their places in `levels`.
    pub(super) fn levels(&self, row: usize, levels: &mut [u8], plane: usize, stride: usize) {
        let start = row * self.row_bytes;
        let row = &self.bytes[start..start + self.row_bytes];
        if self.samples == stride {
            samples::levels(row, self.format, self.order, self.indexed, levels.iter_mut());
        } else {
            let levels = levels.iter_mut().skip(plane).step_by(stride);
            samples::levels(row, self.format, self.order, self.indexed, levels);
        }
    }
}
