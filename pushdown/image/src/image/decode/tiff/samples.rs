//! Conversion of samples of any width to 256 levels.

use std::fmt;

use half::f16;

use super::page::unsupported;
use pushdown_core::{
    Error, Result,
    media::tiff::{ByteOrder, TiffDirectory, tag},
};

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SampleFormat {
    /// Unsigned integers of 1 to 16 bits. 0 to the maximum is the range from black to white, or from white to black.
    Unsigned(u8),
    /// Signed integers of 8 bits, read as unsigned ones, as Pillow does.
    Integer8,
    /// Integers of 16, 32 or 64 bits, clamped to 0 to 255, as Pillow does.
    Integer(u8),
    /// Floating-point numbers of 16, 32 or 64 bits, clamped in the same way.
    Float(u8),
}

impl SampleFormat {
    pub(super) fn read(directory: &TiffDirectory<'_>, samples: u64) -> Result<Self> {
        let bits = common_value(directory, tag::BITS_PER_SAMPLE, "bits per sample", samples, 1)?;
        let format = common_value(directory, tag::SAMPLE_FORMAT, "sample format", samples, 1)?;
        let width = u8::try_from(bits).unwrap_or(u8::MAX);
        match (format, width) {
            (1 | 4, 1..=16) => Ok(Self::Unsigned(width)),
            (2, 8) => Ok(Self::Integer8),
            // Pillow has no unsigned samples of 32 bits, and reads them as signed.
            (2, 16) | (1 | 2 | 4, 32 | 64) => Ok(Self::Integer(width)),
            (3, 16 | 32 | 64) => Ok(Self::Float(width)),
            (1 | 4, _) => Err(unsupported("bits per sample", bits, "1 to 16, 32 or 64")),
            (2, _) => Err(unsupported("bits per signed sample", bits, "8, 16, 32 or 64")),
            (3, _) => Err(unsupported(
                "bits per floating-point sample",
                bits,
                "16, 32 or 64",
            )),
            _ => Err(unsupported(
                "sample format",
                format,
                "1 (unsigned), 2 (signed), 3 (floating-point) or 4 (undefined)",
            )),
        }
    }

    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::Integer8 => 8,
            Self::Unsigned(bits) | Self::Integer(bits) | Self::Float(bits) => bits,
        }
    }

    /// Whether white is the maximum value, so that levels can be inverted.
    pub(super) const fn has_white(self) -> bool {
        matches!(self, Self::Unsigned(_) | Self::Integer8)
    }
}

impl fmt::Display for SampleFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Unsigned(_) => "unsigned",
            Self::Integer8 | Self::Integer(_) => "signed",
            Self::Float(_) => "floating-point",
        };
        write!(f, "{name} samples of {} bits", self.bits())
    }
}

/// The value of `tag`. It has to be the same for all samples.
fn common_value(
    directory: &TiffDirectory<'_>,
    tag: u16,
    what: &str,
    samples: u64,
    default: u64,
) -> Result<u64> {
    let Some(values) = directory.find(tag)? else {
        return Ok(default);
    };
    let first = values.integer(0)?;
    // A single value applies to all samples. Values beyond the number of samples are ignored.
    for index in 1..values.len().min(usize::try_from(samples).unwrap_or(usize::MAX)) {
        let other = values.integer(index)?;
        if other != first {
            return Err(Error::undecodable(format!(
                "TIFF with {what} {first} and {other}: expected the same for all samples"
            )));
        }
    }
    Ok(first)
}

/// Converts the samples of `row` to `levels`, as many as there are. Palette indices are not scaled.
pub(super) fn write_levels<'l>(
    row: &[u8],
    format: SampleFormat,
    order: ByteOrder,
    is_indexed: bool,
    levels: impl Iterator<Item = &'l mut u8>,
) {
    match format {
        SampleFormat::Unsigned(8) | SampleFormat::Integer8 => {
            for (level, byte) in levels.zip(row) {
                *level = *byte;
            }
        }
        SampleFormat::Unsigned(16) => {
            for (level, sample) in levels.zip(row.chunks_exact(2)) {
                *level = scaled(order.integer(sample), 0xffff);
            }
        }
        SampleFormat::Unsigned(bits) => {
            let max = (1_u64 << bits) - 1;
            for (index, level) in levels.enumerate() {
                let value = packed_sample(row, index, bits);
                *level = if is_indexed {
                    u8::try_from(value).unwrap_or(u8::MAX)
                } else {
                    scaled(value, max)
                };
            }
        }
        SampleFormat::Integer(bits) => {
            let unused = 64 - u32::from(bits);
            for (level, sample) in levels.zip(row.chunks_exact(usize::from(bits / 8))) {
                let value = (order.integer(sample) << unused).cast_signed() >> unused;
                *level = u8::try_from(value.clamp(0, 255)).unwrap_or(u8::MAX);
            }
        }
        SampleFormat::Float(bits) => {
            for (level, sample) in levels.zip(row.chunks_exact(usize::from(bits / 8))) {
                *level = clamped_float(order.integer(sample), bits);
            }
        }
    }
}

/// Scales `0..=max` to the nearest of 256 levels.
fn scaled(value: u64, max: u64) -> u8 {
    u8::try_from((value * 255 + max / 2) / max).unwrap_or(u8::MAX)
}

/// The integer part of a floating-point number, clamped to 0 to 255. NaN becomes 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "restores the stored bits; casts to u8 saturate"
)]
fn clamped_float(value: u64, bits: u8) -> u8 {
    match bits {
        16 => f16::from_bits(value as u16).to_f32() as u8,
        32 => f32::from_bits(value as u32) as u8,
        _ => f64::from_bits(value) as u8,
    }
}

/// Sample `index` of a row of samples of 1 to 16 bits, the first in the highest bits; 0 after the end of the row.
fn packed_sample(row: &[u8], index: usize, bits: u8) -> u64 {
    let start = index * usize::from(bits);
    let bytes = (0..3).map(|byte| row.get(start / 8 + byte).copied().unwrap_or_default());
    let window = bytes.fold(0, |window, byte| window << 8 | u64::from(byte));
    let unused = 24 - start % 8 - usize::from(bits);
    window >> unused & ((1 << bits) - 1)
}
