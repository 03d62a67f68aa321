//! Decodes a strip or tile to samples.

use super::{
    super::jpeg,
    compression::{ChunkReader, Compression},
    grid::ChunkArea,
    page::Page,
    samples::{self, SampleFormat},
    ycbcr,
};
use pushdown_core::{Cancellation, Error, ImageHeader, Result, media, media::tiff::ByteOrder};

/// Rows of uncompressed samples.
pub(super) struct Chunk {
    bytes: Vec<u8>,
    row_bytes: usize,
    /// Samples per pixel.
    samples: usize,
    format: SampleFormat,
    order: ByteOrder,
    is_indexed: bool,
}

/// Bytes that a chunk may have in addition to the size of the image: tiles can be larger than a small image.
const MAX_EXTRA_BYTES: u64 = 16 << 20;

/// Maximum ratio of compressed to uncompressed bytes, to which 64 KiB are added. Further bytes are not read: no encoder needs
/// them.
const MAX_COMPRESSED_RATIO: usize = 4;

/// Reads the part of a chunk that is within the image.
///
/// # Errors
/// `Undecodable` if it is broken, ends early, or is far larger than the image.
pub(super) fn read(
    page: &Page<'_>,
    plane: usize,
    area: ChunkArea,
    cancellation: Cancellation<'_>,
) -> Result<Chunk> {
    let number = page.grid.number(plane, area);
    let stored = page.grid.stored(page.file, number)?;
    let chunk = match page.compression {
        Compression::Jpeg(tables) => from_jpeg(page, tables, stored, area, cancellation),
        _ => from_rows(page, stored, area),
    };
    chunk.map_err(|error| {
        let text = format!("TIFF, {} {number}: {error}", page.grid.name());
        Error::new(error.kind(), text)
    })
}

fn from_rows(page: &Page<'_>, stored: &[u8], area: ChunkArea) -> Result<Chunk> {
    let (across, down) = page.subsampling;
    let is_subsampled = page.subsampling != (1, 1);
    let (row_bytes, rows) = if is_subsampled {
        let row_bytes = ycbcr::block_row_bytes(page.grid.chunk_width, (across, down));
        (row_bytes, area.height.div_ceil(down.into()))
    } else {
        (page.row_bytes(), area.height)
    };
    let (row_bytes, length) = checked_size(page, row_bytes, rows)?;
    let max_stored = length
        .saturating_mul(MAX_COMPRESSED_RATIO)
        .saturating_add(1 << 16);
    let reader = ChunkReader::new(&stored[..stored.len().min(max_stored)], page.is_bit_reversed);
    let mut bytes = vec![0; length];
    page.compression
        .decompress(reader, page.grid.chunk_width, row_bytes, &mut bytes)?;
    let samples = page.plane_samples();
    page.predictor
        .undo(&mut bytes, row_bytes, samples, page.format.bits(), page.order);
    let (bytes, row_bytes) = if is_subsampled {
        let width = page.grid.chunk_width;
        checked_size(page, u64::from(width) * 3, area.height)?;
        let pixels = ycbcr::expand(&bytes, width, area.height, page.subsampling);
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
        is_indexed: page.colour.is_indexed(),
    })
}

fn from_jpeg(
    page: &Page<'_>,
    tables: Option<&[u8]>,
    stored: &[u8],
    area: ChunkArea,
    cancellation: Cancellation<'_>,
) -> Result<Chunk> {
    let samples = page.plane_samples();
    // Tiles are decoded as a whole. The last strip may have as many rows as the others.
    let (row_bytes, length) = checked_size(page, page.row_bytes(), page.grid.chunk_height)?;
    let max_stored = length
        .saturating_mul(MAX_COMPRESSED_RATIO)
        .saturating_add(1 << 16);
    let stored = &stored[..stored.len().min(max_stored)];
    // The page determines the colours, not the markers of the JPEG.
    let file = media::standalone_jpeg(tables, stored, page.is_jpeg_ycbcr)
        .ok_or_else(|| Error::undecodable("expected a JPEG, found other bytes"))?;
    let header = ImageHeader::read(&file)
        .ok_or_else(|| Error::undecodable("the JPEG header is broken or incomplete"))?;
    let expected = (page.grid.chunk_width, area.height);
    let fits = if page.grid.is_tiled {
        header.height == page.grid.chunk_height
    } else {
        (area.height..=page.grid.chunk_height).contains(&header.height)
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
        drop_third_samples(&mut bytes);
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
        is_indexed: page.colour.is_indexed(),
    })
}

/// Removes the third of three samples per pixel.
fn drop_third_samples(bytes: &mut Vec<u8>) {
    let pixels = bytes.len() / 3;
    for pixel in 0..pixels {
        bytes.copy_within(pixel * 3..pixel * 3 + 2, pixel * 2);
    }
    bytes.truncate(pixels * 2);
}

/// Bytes of a row and of `rows` rows.
///
/// # Errors
/// `Undecodable` if that is more than a chunk of this image may have.
fn checked_size(page: &Page<'_>, row_bytes: u64, rows: u32) -> Result<(usize, usize)> {
    let image = u64::from(page.grid.width).saturating_mul(page.grid.height.into());
    let max = image.saturating_mul(page.row_bytes() / u64::from(page.grid.chunk_width) + 1);
    let max = max.saturating_add(MAX_EXTRA_BYTES);
    let length = row_bytes.saturating_mul(rows.into());
    match (usize::try_from(row_bytes), usize::try_from(length)) {
        (Ok(row_bytes), Ok(bytes)) if length <= max => Ok((row_bytes, bytes)),
        _ => Err(Error::undecodable(format!(
            "{rows} rows of {row_bytes} bytes, for an image of {} x {} pixels: expected at most {max} bytes",
            page.grid.width, page.grid.height
        ))),
    }
}

impl Chunk {
    /// Writes the levels of row `row` for plane `plane` into `levels`. A pixel has `stride` levels.
    pub(super) fn write_levels(&self, row: usize, levels: &mut [u8], plane: usize, stride: usize) {
        let start = row * self.row_bytes;
        let row = &self.bytes[start..start + self.row_bytes];
        if self.samples == stride {
            samples::write_levels(row, self.format, self.order, self.is_indexed, levels.iter_mut());
        } else {
            let levels = levels.iter_mut().skip(plane).step_by(stride);
            samples::write_levels(row, self.format, self.order, self.is_indexed, levels);
        }
    }
}
