//! Undoes predictors: differences between neighbouring samples (TIFF 6.0 section 14; Adobe's technical note 3 for floating
//! point).

use super::{compression::Compression, page::unsupported, samples::SampleFormat};
use pushdown_core::{
    Error, Result,
    media::tiff::{ByteOrder, TiffDirectory, tag},
};

/// The content of a row instead of plain samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    None,
    /// Differences from the previous pixel's sample.
    Horizontal,
    /// Differences of bytes, where the highest bytes of all samples come first, then the next lower ones, and so on.
    Float,
}

impl Predictor {
    pub(super) fn read(
        directory: &TiffDirectory<'_>,
        compression: &Compression<'_>,
        format: SampleFormat,
    ) -> Result<Self> {
        let predictor = directory.integer(tag::PREDICTOR)?.unwrap_or(1);
        // As in libtiff, other compressions ignore the tag.
        if !compression.has_predictor() {
            return Ok(Self::None);
        }
        let unsuitable = |expected: &str| {
            Error::undecodable(format!(
                "TIFF with predictor {predictor} and {} bits per sample: expected {expected}",
                format.bits()
            ))
        };
        match predictor {
            0 | 1 => Ok(Self::None),
            2 if matches!(format.bits(), 8 | 16 | 32 | 64) => Ok(Self::Horizontal),
            2 => Err(unsuitable("8, 16, 32 or 64 bits")),
            3 if matches!(format, SampleFormat::Float(_)) => Ok(Self::Float),
            3 => Err(unsuitable("floating-point samples")),
            other => Err(unsupported(
                "predictor",
                other,
                "1 (none), 2 (horizontal) or 3 (floating point)",
            )),
        }
    }

    /// Restores the samples of `chunk`, whose rows have `row_bytes` bytes. `stride` is the number of samples per pixel.
    pub(super) fn undo(self, chunk: &mut [u8], row_bytes: usize, stride: usize, bits: u8, order: ByteOrder) {
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

/// Adds to each sample of `SIZE` bytes the sample `stride` samples before it.
fn accumulate<const SIZE: usize>(row: &mut [u8], stride: usize, order: ByteOrder) {
    let distance = stride * SIZE;
    for start in (distance..(row.len() + 1).saturating_sub(SIZE)).step_by(SIZE) {
        let before = order.integer(&row[start - distance..start - distance + SIZE]);
        let sum = before.wrapping_add(order.integer(&row[start..start + SIZE]));
        let bytes = sum.to_le_bytes();
        let sample = &mut row[start..start + SIZE];
        sample.copy_from_slice(&bytes[..SIZE]);
        if order == ByteOrder::Big {
            sample.reverse();
        }
    }
}

/// Assembles samples of `size` bytes. `from` has the highest bytes of all samples first.
fn unshuffle(row: &mut [u8], from: &[u8], size: usize, order: ByteOrder) {
    let samples = row.len() / size;
    for (index, sample) in row.chunks_exact_mut(size).enumerate() {
        for (byte, value) in sample.iter_mut().enumerate() {
            *value = from[byte * samples + index];
        }
        if order == ByteOrder::Little {
            sample.reverse();
        }
    }
}
