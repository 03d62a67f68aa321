//! YCbCr without JPEG: subsampled chroma, and the conversions of Pillow and libtiff.

use super::{colour::Photometric, compression::Compression, page::unsupported};
use pushdown_core::{
    Error, Result,
    media::tiff::{TiffDirectory, tag},
};

/// Contributions of each sample level to red, green and blue.
pub(super) struct YCbCrTables {
    luma: [i32; 256],
    cr_red: [i32; 256],
    cb_green: [i32; 256],
    cr_green: [i32; 256],
    cb_blue: [i32; 256],
    /// Fraction bits of the contributions to green.
    fraction_bits: u32,
}

/// Pixels that share a chroma sample, horizontally and vertically. In JPEG data, the JPEG header states them.
pub(super) fn subsampling(
    directory: &TiffDirectory<'_>,
    photometric: Photometric,
    compression: &Compression<'_>,
    is_planar: bool,
) -> Result<(u8, u8)> {
    if photometric != Photometric::YCbCr || compression.is_jpeg() {
        return Ok((1, 1));
    }
    let (across, down) = match directory.find(tag::YCBCR_SUBSAMPLING)? {
        Some(values) => (values.integer(0)?, values.integer(1)?),
        None => (2, 2),
    };
    let fits = |factor: u64| {
        u8::try_from(factor)
            .ok()
            .filter(|factor| matches!(factor, 1 | 2 | 4))
    };
    match (fits(across), fits(down)) {
        (Some(across), Some(down)) if !is_planar || (across, down) == (1, 1) => Ok((across, down)),
        (Some(_), Some(_)) => Err(Error::undecodable(format!(
            "TIFF with planar YCbCr and chroma subsampled {across} x {down}: expected 1 x 1"
        ))),
        (None, _) => Err(unsupported(
            "chroma subsampled horizontally by",
            across,
            "1, 2 or 4",
        )),
        (_, None) => Err(unsupported("chroma subsampled vertically by", down, "1, 2 or 4")),
    }
}

/// Bytes of a row of blocks. A block has the luma of its pixels, row by row, then Cb and Cr (TIFF 6.0, section 21).
pub(super) const fn block_row_bytes(width: u32, (across, down): (u8, u8)) -> u64 {
    let block = across as u64 * down as u64 + 2;
    (width.div_ceil(across as u32) as u64).saturating_mul(block)
}

/// Expands rows of blocks to rows of three samples per pixel. Chroma is repeated, as in libtiff.
pub(super) fn expand(blocks: &[u8], width: u32, height: u32, (across, down): (u8, u8)) -> Vec<u8> {
    let (across, down, width) = (usize::from(across), usize::from(down), width as usize);
    let block = across * down + 2;
    let block_row = width.div_ceil(across) * block;
    let mut pixels = Vec::with_capacity(width * height as usize * 3);
    for y in 0..height as usize {
        let row = &blocks[y / down * block_row..][..block_row];
        for x in 0..width {
            let samples = &row[x / across * block..][..block];
            let luma = samples[y % down * across + x % across];
            pixels.extend_from_slice(&[luma, samples[block - 2], samples[block - 1]]);
        }
    }
    pixels
}

impl YCbCrTables {
    /// The conversion of Pillow. It reads uncompressed samples without libtiff.
    #[expect(clippy::cast_possible_truncation, reason = "products of less than 15,000")]
    pub(super) fn pillow() -> Self {
        const FRACTION_BITS: u32 = 6;
        let table = |factor: f64| {
            std::array::from_fn(|level| {
                let level = i32::try_from(level).unwrap_or_default() - 128;
                (factor * f64::from(1 << FRACTION_BITS) * f64::from(level) + 0.5) as i32
            })
        };
        Self {
            luma: std::array::from_fn(|level| i32::try_from(level).unwrap_or_default()),
            cr_red: table(1.402).map(|value: i32| value >> FRACTION_BITS),
            cb_green: table(-0.344_14),
            cr_green: table(-0.714_14),
            cb_blue: table(1.772).map(|value: i32| value >> FRACTION_BITS),
            fraction_bits: FRACTION_BITS,
        }
    }

    /// The conversion of libtiff (`TIFFYCbCrToRGBInit`), with the coefficients and the range of the page.
    ///
    /// # Errors
    /// `Undecodable` if the coefficient of green is 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "levels are clamped first, as in libtiff"
    )]
    pub(super) fn libtiff(directory: &TiffDirectory<'_>) -> Result<Self> {
        const FRACTION_BITS: u32 = 16;
        const HALF: i32 = 1 << (FRACTION_BITS - 1);
        let [red, green, blue] = numbers(directory, tag::YCBCR_COEFFICIENTS, [0.299, 0.587, 0.114])?;
        if green == 0.0 {
            return Err(Error::undecodable(
                "TIFF with a coefficient of 0 for green: expected a larger one",
            ));
        }
        let range = [0.0, 255.0, 128.0, 255.0, 128.0, 255.0];
        let [black, white, cb_black, cb_white, cr_black, cr_white] =
            numbers(directory, tag::REFERENCE_BLACK_WHITE, range)?;
        let fixed =
            |factor: f32| (f64::from(factor.clamp(0.0, 2.0)) * f64::from(1 << FRACTION_BITS) + 0.5) as i32;
        let (from_red, from_blue) = (2.0 - 2.0 * red, 2.0 - 2.0 * blue);
        let (cr_red, cr_green) = (fixed(from_red), -fixed(red * from_red / green));
        let (cb_blue, cb_green) = (fixed(from_blue), -fixed(blue * from_blue / green));
        // The relative position of a level between black and white, clamped so that the tables fit in 32 bits.
        let position = |level: i32, black: f32, white: f32, max: f32| {
            let range = if white - black == 0.0 { 1.0 } else { white - black };
            let position = (level as f32 - black.trunc()) * max / range;
            position.clamp(-128.0 * 32.0, 128.0 * 32.0) as i32
        };
        let level = |index: usize| i32::try_from(index).unwrap_or_default();
        let cr = |index: usize| position(level(index) - 128, cr_black - 128.0, cr_white - 128.0, 127.0);
        let cb = |index: usize| position(level(index) - 128, cb_black - 128.0, cb_white - 128.0, 127.0);
        Ok(Self {
            luma: std::array::from_fn(|index| position(level(index), black, white, 255.0)),
            cr_red: std::array::from_fn(|index| (cr_red * cr(index) + HALF) >> FRACTION_BITS),
            cb_green: std::array::from_fn(|index| cb_green * cb(index) + HALF),
            cr_green: std::array::from_fn(|index| cr_green * cr(index)),
            cb_blue: std::array::from_fn(|index| (cb_blue * cb(index) + HALF) >> FRACTION_BITS),
            fraction_bits: FRACTION_BITS,
        })
    }

    pub(super) fn to_rgb(&self, [y, cb, cr]: [u8; 3]) -> [u8; 3] {
        let [y, cb, cr] = [y, cb, cr].map(usize::from);
        let luma = self.luma[y];
        let green = (self.cb_green[cb] + self.cr_green[cr]) >> self.fraction_bits;
        [luma + self.cr_red[cr], luma + green, luma + self.cb_blue[cb]]
            .map(|level| u8::try_from(level.clamp(0, 255)).unwrap_or_default())
    }
}

/// The numbers of `tag` in f32, as libtiff stores them.
fn numbers<const N: usize>(directory: &TiffDirectory<'_>, tag: u16, default: [f32; N]) -> Result<[f32; N]> {
    let Some(values) = directory.find(tag)? else {
        return Ok(default);
    };
    let mut numbers = default;
    for (index, number) in numbers.iter_mut().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "as libtiff stores them")]
        let value = values.number(index)? as f32;
        if !value.is_finite() {
            return Err(Error::undecodable(format!(
                "the TIFF's tag {tag} has the value {value}: expected a finite number"
            )));
        }
        *number = value;
    }
    Ok(numbers)
}
