//! The blocks of a JPEG that the pixels of a region depend on.

use super::super::Region;
use pushdown_core::media::Subsampling;

/// The blocks of all components (MCUs) of an image that is decoded at `1 / divisor` of each side.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct BlockGrid {
    /// Width of the stored image.
    pub(in super::super) width: u32,
    /// Height of the stored image.
    pub(in super::super) height: u32,
    pub(in super::super) subsampling: Subsampling,
    pub(in super::super) divisor: u32,
}

/// Maximum share of the blocks of an image for which a crop is made.
const MAX_SHARE: f64 = 0.9;

/// Maximum width in samples of a component that libjpeg upsamples by repetition instead of interpolation (`jdsample.c`).
const MAX_REPEATED_SAMPLES: u32 = 2;

impl BlockGrid {
    /// The smallest part of the stored image, in whole blocks, whose pixels within `wanted` are those of the whole image.
    /// `wanted` is in pixels of the scaled image.
    ///
    /// Chroma is interpolated from one sample on each side. Scaling may decode it at full size, which needs none.
    pub(in super::super) fn crop(&self, wanted: Region) -> Region {
        let sampling = self.subsampling;
        let columns = Axis {
            length: self.width,
            block: sampling.block_width(),
            divisor: self.divisor,
            pixels_per_sample: sampling.horizontal(),
        };
        let rows = Axis {
            length: self.height,
            block: sampling.block_height(),
            divisor: self.divisor,
            pixels_per_sample: sampling.vertical(),
        };
        let (x, right) = columns.interpolated_like_the_whole(columns.blocks(wanted.x, wanted.width));
        let (y, bottom) = rows.blocks(wanted.y, wanted.height);
        Region {
            x,
            y,
            width: right - x,
            height: bottom - y,
        }
    }

    /// The share of the blocks of the image that `crop`, a result of [`crop`](Self::crop), has.
    pub(in super::super) fn share(&self, crop: Region) -> f64 {
        let blocks = |width: u32, height: u32| {
            let columns = width.div_ceil(self.subsampling.block_width());
            let rows = height.div_ceil(self.subsampling.block_height());
            f64::from(columns) * f64::from(rows)
        };
        blocks(crop.width, crop.height) / blocks(self.width, self.height)
    }

    /// Whether `crop` leaves out enough blocks to be worth making.
    pub(in super::super) fn is_worthwhile(&self, crop: Region) -> bool {
        self.share(crop) <= MAX_SHARE
    }
}

/// The columns or the rows of an image.
struct Axis {
    /// Length of the stored image.
    length: u32,
    /// Length of a block of all components, in pixels of the stored image.
    block: u32,
    divisor: u32,
    /// Pixels of the scaled image per sample of the coarsest component, unless it is decoded at full size.
    pixels_per_sample: u32,
}

impl Axis {
    /// Start and end of the blocks that `length` pixels of the scaled image from `start` on depend on.
    fn blocks(&self, start: u32, length: u32) -> (u32, u32) {
        let margin = if self.pixels_per_sample == 1 {
            0
        } else {
            self.pixels_per_sample
        };
        let first = start.saturating_sub(margin).saturating_mul(self.divisor);
        let end = start
            .saturating_add(length)
            .saturating_add(margin)
            .saturating_mul(self.divisor)
            .min(self.length);
        let end = end
            .div_ceil(self.block)
            .saturating_mul(self.block)
            .min(self.length);
        (first - first % self.block, end)
    }

    /// The same blocks, and more if libjpeg repeated their samples and interpolates those of the whole image.
    fn interpolated_like_the_whole(&self, (mut start, mut end): (u32, u32)) -> (u32, u32) {
        let is_repeated =
            |pixels: u32| pixels.div_ceil(self.divisor * self.pixels_per_sample) <= MAX_REPEATED_SAMPLES;
        while is_repeated(end - start) && !is_repeated(self.length) {
            if start > 0 {
                start -= self.block;
            } else {
                end = end.saturating_add(self.block).min(self.length);
            }
        }
        (start, end)
    }
}

#[cfg(test)]
mod tests;
