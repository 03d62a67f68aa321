//! Differences between neighbours, undone (TIFF 6.0 section 14; Adobe's technical note 3 for floating point).

use super::{compression::Compression, page::unsupported, samples::Format};
use crate::{
    Error, Result,
    media::tiff::{Directory, Order, tag},
};

/// What a row holds in place of its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    None,
    /// Differences to the sample before it.
    Horizontal,
    /// The highest bytes of all samples, then the next, as differences.
    Float,
}

impl Predictor {
    pub(super) fn read(
        directory: &Directory<'_>,
        compression: &Compression<'_>,
        format: Format,
    ) -> Result<Self> {
        let predictor = directory.integer(tag::PREDICTOR)?.unwrap_or(1);
        // As libtiff: the tag has no meaning for the others.
        if !compression.has_predictor() {
            return Ok(Self::None);
        }
        let unfit = |expected: &str| {
            Error::undecodable(format!(
                "TIFF with predictor {predictor} and {} bits per sample: expected {expected}",
                format.bits()
            ))
        };
        match predictor {
            0 | 1 => Ok(Self::None),
            2 if matches!(format.bits(), 8 | 16 | 32 | 64) => Ok(Self::Horizontal),
            2 => Err(unfit("8, 16, 32 or 64 bits")),
            3 if matches!(format, Format::Float(_)) => Ok(Self::Float),
            3 => Err(unfit("floating-point samples")),
            other => Err(unsupported(
                "predictor",
                other,
                "1 (none), 2 (horizontal) or 3 (floating point)",
            )),
        }
    }

    /// Makes samples of each `row_bytes` of `chunk`; `stride` is the number of samples in a pixel.
    pub(super) fn undo(self, chunk: &mut [u8], row_bytes: usize, stride: usize, bits: u8, order: Order) {
        let mut shuffled = Vec::new();
        for row in chunk.chunks_exact_mut(row_bytes) {
            match (self, bits) {
                (Self::None, _) => {}
                (Self::Horizontal, 8) => accumulate::<1>(row, stride, order),
                (Self::Horizontal, 16) => accumulate::<2>(row, stride, order),
                (Self::Horizontal, 32) => accumulate::<4>(row, stride, order),
                (Self::Horizontal, _) => accumulate::<8>(row, stride, order),
                (Self::Float, _) => {
                    accumulate::<1>(row, stride, order);
                    shuffled.clear();
                    shuffled.extend_from_slice(row);
                    unshuffle(row, &shuffled, usize::from(bits / 8), order);
                }
            }
        }
    }
}

/// Adds to each sample of `SIZE` bytes the one `stride` samples before it.
fn accumulate<const SIZE: usize>(row: &mut [u8], stride: usize, order: Order) {
    let distance = stride * SIZE;
    for start in (distance..(row.len() + 1).saturating_sub(SIZE)).step_by(SIZE) {
        let before = order.integer(&row[start - distance..start - distance + SIZE]);
        let sum = before.wrapping_add(order.integer(&row[start..start + SIZE]));
        let bytes = sum.to_le_bytes();
        let sample = &mut row[start..start + SIZE];
        sample.copy_from_slice(&bytes[..SIZE]);
        if order == Order::Big {
            sample.reverse();
        }
    }
}

/// Puts samples of `size` bytes together whose bytes stand apart in `from`, all highest ones first.
fn unshuffle(row: &mut [u8], from: &[u8], size: usize, order: Order) {
    let samples = row.len() / size;
    for (index, sample) in row.chunks_exact_mut(size).enumerate() {
        for (byte, value) in sample.iter_mut().enumerate() {
            *value = from[byte * samples + index];
        }
        if order == Order::Little {
            sample.reverse();
        }
    }
}
