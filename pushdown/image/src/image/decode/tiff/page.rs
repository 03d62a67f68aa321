//! The tags of the first page, checked against the supported features.

use std::ops::Range;

use super::{
    colour::{Colour, Photometric},
    compression::Compression,
    grid::Grid,
    predictor::Predictor,
    samples::SampleFormat,
    ycbcr,
};
use pushdown_core::{
    Error, ImageHeader, Result,
    media::tiff::{ByteOrder, TiffDirectory, tag},
};

/// A page with supported features. Its chunks are not checked yet.
pub(super) struct Page<'a> {
    pub(super) file: &'a [u8],
    pub(super) order: ByteOrder,
    pub(super) grid: Grid<'a>,
    pub(super) compression: Compression<'a>,
    pub(super) predictor: Predictor,
    /// `FillOrder` 2: the first pixel is in the lowest bit of a byte.
    pub(super) is_bit_reversed: bool,
    pub(super) format: SampleFormat,
    /// Pixels that share a chroma sample, horizontally and vertically. 1 and 1 except for YCbCr without JPEG.
    pub(super) subsampling: (u8, u8),
    pub(super) colour: Colour,
    /// JPEGs contain YCbCr. libjpeg converts it to RGB.
    pub(super) is_jpeg_ycbcr: bool,
    /// Decoded samples per pixel: all samples, or those of the planes that are used.
    samples: usize,
    is_planar: bool,
}

impl<'a> Page<'a> {
    pub(super) fn read(directory: &TiffDirectory<'a>, header: &ImageHeader) -> Result<Self> {
        let number = |tag, default| Ok::<_, Error>(directory.integer(tag)?.unwrap_or(default));
        let compression = Compression::read(directory)?;
        // The default of Pillow.
        let photometric = number(tag::PHOTOMETRIC, 0)?;
        let samples = number(tag::SAMPLES_PER_PIXEL, 1)?;
        let is_planar = match number(tag::PLANAR_CONFIGURATION, 1)? {
            // Some writers use 0 for the default.
            0 | 1 => false,
            2 => true,
            other => return Err(unsupported("planar configuration", other, "1 or 2")),
        };
        let photometric = Photometric::read(photometric, samples)?;
        let extra = ExtraSamples::read(directory, samples, photometric.samples())?;
        // Planes without a known meaning are not read.
        let used = if is_planar && !extra.has_associated_alpha {
            photometric.samples()
        } else {
            samples
        };
        if used > photometric.max_samples() {
            return Err(Error::undecodable(format!(
                "TIFF of {} with {samples} samples per pixel: expected {} to {}",
                photometric.name(),
                photometric.samples(),
                photometric.max_samples()
            )));
        }
        let format = SampleFormat::read(directory, samples)?;
        let subsampling = ycbcr::subsampling(directory, photometric, &compression, is_planar)?;
        let predictor = Predictor::read(directory, &compression, format)?;
        if subsampling != (1, 1) && predictor != Predictor::None {
            return Err(Error::undecodable(
                "TIFF of subsampled YCbCr with a predictor: expected none",
            ));
        }
        compression.check(format, used, is_planar)?;
        let colour = Colour::read(
            directory,
            photometric,
            &compression,
            format,
            extra.has_associated_alpha,
            is_planar,
            subsampling != (1, 1),
        )?;
        let planes = if is_planar { samples } else { 1 };
        let grid = Grid::read(
            directory,
            header.width,
            header.height,
            usize::try_from(planes).unwrap_or(usize::MAX),
        )?;
        Ok(Self {
            file: directory.bytes(),
            order: directory.order(),
            grid,
            compression,
            predictor,
            is_bit_reversed: number(tag::FILL_ORDER, 1)? == 2,
            format,
            subsampling,
            colour,
            is_jpeg_ycbcr: photometric == Photometric::YCbCr && !is_planar,
            samples: usize::try_from(used).unwrap_or(usize::MAX),
            is_planar,
        })
    }

    /// The planes that are decoded.
    pub(super) const fn planes(&self) -> Range<usize> {
        0..if self.is_planar { self.samples } else { 1 }
    }

    /// Samples per pixel in one plane.
    pub(super) const fn plane_samples(&self) -> usize {
        if self.is_planar { 1 } else { self.samples }
    }

    /// Bytes of an uncompressed row of a chunk. An upper bound if chroma is subsampled.
    pub(super) fn row_bytes(&self) -> u64 {
        let bits = u64::from(self.grid.chunk_width) * u64::from(self.format.bits());
        bits.saturating_mul(self.plane_samples() as u64).div_ceil(8)
    }
}

/// The samples after those of the colour.
struct ExtraSamples {
    /// Whether colours are multiplied by alpha, the first extra sample.
    has_associated_alpha: bool,
}

impl ExtraSamples {
    fn read(directory: &TiffDirectory<'_>, samples: u64, colour_samples: u64) -> Result<Self> {
        let Some(values) = directory.find(tag::EXTRA_SAMPLES)? else {
            return Ok(Self {
                has_associated_alpha: false,
            });
        };
        let first = if values.is_empty() { 0 } else { values.integer(0)? };
        Ok(Self {
            has_associated_alpha: samples > colour_samples && first == 1,
        })
    }
}

/// An error for a value that is not supported.
pub(super) fn unsupported(what: &str, value: u64, expected: &str) -> Error {
    Error::undecodable(format!("TIFF with {what} {value}: expected {expected}"))
}
