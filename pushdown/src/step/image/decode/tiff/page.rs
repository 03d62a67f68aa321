//! What the first page's tags say of its samples, held against what can be decoded.

use std::ops::Range;

use super::{
    colour::{Colour, Named},
    compression::Compression,
    grid::Grid,
    predictor::Predictor,
    samples::Format,
    ycbcr,
};
use crate::{
    Error, ImageHeader, Result,
    media::tiff::{Directory, Order, tag},
};

/// A page that can be decoded, if its chunks can.
pub(super) struct Page<'a> {
    pub(super) file: &'a [u8],
    pub(super) order: Order,
    pub(super) grid: Grid<'a>,
    pub(super) compression: Compression<'a>,
    pub(super) predictor: Predictor,
    /// `FillOrder` 2: the first pixel is in the lowest bit of a byte.
    pub(super) reversed: bool,
    pub(super) format: Format,
    /// Pixels that share a sample of chroma, across and down; 1 and 1 but for YCbCr that is not JPEG.
    pub(super) subsampling: (u8, u8),
    pub(super) colour: Colour,
    /// JPEGs hold YCbCr, which is converted as they are decoded.
    pub(super) jpeg_is_ycbcr: bool,
    /// Samples of a pixel that are decoded: all of them, or the planes that count.
    samples: usize,
    planar: bool,
}

impl<'a> Page<'a> {
    pub(super) fn read(directory: &Directory<'a>, header: &ImageHeader) -> Result<Self> {
        let number = |tag, default| Ok::<_, Error>(directory.integer(tag)?.unwrap_or(default));
        let compression = Compression::read(directory)?;
        // As Pillow has it where the tag is missing.
        let photometric = number(tag::PHOTOMETRIC, 0)?;
        let samples = number(tag::SAMPLES_PER_PIXEL, 1)?;
        let planar = match number(tag::PLANAR_CONFIGURATION, 1)? {
            // 0 is what some writers have for the default.
            0 | 1 => false,
            2 => true,
            other => return Err(unsupported("planar configuration", other, "1 or 2")),
        };
        let named = Named::read(photometric, samples)?;
        let extra = ExtraSamples::read(directory, samples, named.samples())?;
        // Planes that mean nothing need not be read.
        let used = if planar && !extra.associated_alpha {
            named.samples()
        } else {
            samples
        };
        if used > named.most_samples() {
            return Err(Error::undecodable(format!(
                "TIFF of {} with {samples} samples per pixel: expected {} to {}",
                named.name(),
                named.samples(),
                named.most_samples()
            )));
        }
        let format = Format::read(directory, samples)?;
        let subsampling = ycbcr::subsampling(directory, named, &compression, planar)?;
        let predictor = Predictor::read(directory, &compression, format)?;
        if subsampling != (1, 1) && predictor != Predictor::None {
            return Err(Error::undecodable(
                "TIFF of subsampled YCbCr with a predictor: expected none",
            ));
        }
        compression.check(format, used, planar)?;
        let colour = Colour::read(
            directory,
            named,
            &compression,
            format,
            extra.associated_alpha,
            planar,
            subsampling != (1, 1),
        )?;
        let planes = if planar { samples } else { 1 };
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
            reversed: number(tag::FILL_ORDER, 1)? == 2,
            format,
            subsampling,
            colour,
            jpeg_is_ycbcr: named == Named::YCbCr && !planar,
            samples: usize::try_from(used).unwrap_or(usize::MAX),
            planar,
        })
    }

    /// The planes that are decoded.
    pub(super) const fn planes(&self) -> Range<usize> {
        0..if self.planar { self.samples } else { 1 }
    }

    /// Samples of a pixel in one plane.
    pub(super) const fn plane_samples(&self) -> usize {
        if self.planar { 1 } else { self.samples }
    }

    /// Bytes in one row of a chunk before any compression; chroma subsampled as it may be, no more than that.
    pub(super) fn row_bytes(&self) -> u64 {
        let bits = u64::from(self.grid.chunk_width) * u64::from(self.format.bits());
        bits.saturating_mul(self.plane_samples() as u64).div_ceil(8)
    }
}

/// What stands behind the samples of the colour.
struct ExtraSamples {
    /// Colours are multiplied by the alpha that stands right behind them.
    associated_alpha: bool,
}

impl ExtraSamples {
    fn read(directory: &Directory<'_>, samples: u64, of_colour: u64) -> Result<Self> {
        let Some(values) = directory.find(tag::EXTRA_SAMPLES)? else {
            return Ok(Self {
                associated_alpha: false,
            });
        };
        let first = if values.len() > 0 { values.integer(0)? } else { 0 };
        Ok(Self {
            associated_alpha: samples > of_colour && first == 1,
        })
    }
}

/// An error for a value that is not supported.
pub(super) fn unsupported(what: &str, value: u64, expected: &str) -> Error {
    Error::undecodable(format!("TIFF with {what} {value}: expected {expected}"))
}
