//! The meaning of samples (`PhotometricInterpretation`), and their conversion to RGB as in Pillow.

use super::{
    super::cmyk, compression::Compression, lab, page::unsupported, samples::SampleFormat, ycbcr::YCbCrTables,
};
use pushdown_core::{
    Error, Result,
    media::tiff::{TiffDirectory, tag},
};

/// The stated meaning of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Photometric {
    WhiteIsZero,
    BlackIsZero,
    Rgb,
    Palette,
    Cmyk,
    YCbCr,
    CieLab,
}

/// The conversion of levels to RGB.
pub(super) enum Colour {
    Grey {
        is_inverted: bool,
        /// Whether levels are multiplied by alpha, the next sample.
        has_associated_alpha: bool,
    },
    Rgb {
        has_associated_alpha: bool,
    },
    Palette(Box<[[u8; 3]; 256]>),
    Cmyk,
    YCbCr(Box<YCbCrTables>),
    CieLab,
}

impl Photometric {
    /// The interpretation `photometric` of `samples` per pixel.
    pub(super) fn read(photometric: u64, samples: u64) -> Result<Self> {
        const EXPECTED: &str = "0 or 1 (grey), 2 (RGB), 3 (palette), 5 (CMYK), 6 (YCbCr) or 8 (CIE L*a*b*)";
        let interpretation = match photometric {
            0 => Self::WhiteIsZero,
            1 => Self::BlackIsZero,
            2 => Self::Rgb,
            3 => Self::Palette,
            5 => Self::Cmyk,
            // Luma alone.
            6 if samples == 1 => Self::BlackIsZero,
            6 => Self::YCbCr,
            8 => Self::CieLab,
            other => {
                let name = match other {
                    4 => "transparency mask",
                    9 => "ICC L*a*b*",
                    10 => "ITU L*a*b*",
                    32803 => "colour filter array",
                    32844 => "log luminance",
                    32845 => "log luminance and chroma",
                    34892 => "linear raw",
                    51177 => "depth",
                    _ => return Err(unsupported("photometric interpretation", other, EXPECTED)),
                };
                return Err(Error::undecodable(format!(
                    "TIFF with photometric interpretation {other} ({name}): expected {EXPECTED}"
                )));
            }
        };
        if samples < interpretation.samples() {
            return Err(Error::undecodable(format!(
                "TIFF of {} with {samples} samples per pixel: expected {} or more",
                interpretation.name(),
                interpretation.samples()
            )));
        }
        Ok(interpretation)
    }

    /// The number of samples without extra ones.
    pub(super) const fn samples(self) -> u64 {
        match self {
            Self::WhiteIsZero | Self::BlackIsZero | Self::Palette => 1,
            Self::Rgb | Self::YCbCr | Self::CieLab => 3,
            Self::Cmyk => 4,
        }
    }

    /// The maximum number of samples, as in Pillow.
    pub(super) const fn max_samples(self) -> u64 {
        match self {
            Self::WhiteIsZero | Self::BlackIsZero | Self::Palette => 2,
            Self::Rgb | Self::Cmyk => 6,
            Self::YCbCr | Self::CieLab => 3,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::WhiteIsZero | Self::BlackIsZero => "grey",
            Self::Rgb => "RGB",
            Self::Palette => "a palette",
            Self::Cmyk => "CMYK",
            Self::YCbCr => "YCbCr",
            Self::CieLab => "CIE L*a*b*",
        }
    }
}

impl Colour {
    /// With `has_associated_alpha`, colours are multiplied by the first extra sample.
    ///
    /// # Errors
    /// `Undecodable` for a missing palette, and for sample widths that are not supported for these colours.
    pub(super) fn read(
        directory: &TiffDirectory<'_>,
        photometric: Photometric,
        compression: &Compression<'_>,
        format: SampleFormat,
        has_associated_alpha: bool,
        is_planar: bool,
        is_subsampled: bool,
    ) -> Result<Self> {
        let bits_expected = match photometric {
            Photometric::Palette if !matches!(format, SampleFormat::Unsigned(..=8)) => "1 to 8 bits",
            Photometric::YCbCr | Photometric::CieLab if format != SampleFormat::Unsigned(8) => "8 bits",
            Photometric::Cmyk if !matches!(format, SampleFormat::Unsigned(_)) => {
                "1 to 16 bits without a sign"
            }
            _ => "",
        };
        if !bits_expected.is_empty() {
            return Err(Error::undecodable(format!(
                "TIFF of {} in {format}: expected {bits_expected}",
                photometric.name()
            )));
        }
        if has_associated_alpha && matches!(photometric, Photometric::Cmyk) {
            return Err(Error::undecodable(
                "TIFF of CMYK with associated alpha: expected no alpha, or unassociated",
            ));
        }
        Ok(match photometric {
            Photometric::WhiteIsZero => Self::Grey {
                is_inverted: format.has_white(),
                has_associated_alpha,
            },
            Photometric::BlackIsZero => Self::Grey {
                is_inverted: false,
                has_associated_alpha,
            },
            // libjpeg converts to RGB with chroma for each pixel, unless each component is a separate JPEG.
            Photometric::YCbCr if compression.is_jpeg() && !is_planar => Self::Rgb {
                has_associated_alpha: false,
            },
            Photometric::Rgb => Self::Rgb { has_associated_alpha },
            Photometric::Palette => Self::Palette(palette(directory, format)?),
            Photometric::Cmyk => Self::Cmyk,
            Photometric::YCbCr => Self::YCbCr(Box::new(match compression {
                Compression::None if !is_subsampled => YCbCrTables::pillow(),
                _ => YCbCrTables::libtiff(directory)?,
            })),
            Photometric::CieLab => Self::CieLab,
        })
    }

    /// Whether levels are indices into a palette.
    pub(super) const fn is_indexed(&self) -> bool {
        matches!(self, Self::Palette(_))
    }

    /// Converts a row: `samples` levels per pixel, to 3 bytes per pixel of `rgb`.
    pub(super) fn to_rgb(&self, levels: &[u8], samples: usize, rgb: &mut [u8]) {
        let pixels = levels.chunks_exact(samples).zip(rgb.as_chunks_mut::<3>().0);
        match self {
            Self::Grey {
                is_inverted,
                has_associated_alpha,
            } => {
                for (pixel, rgb) in pixels {
                    let level = if *is_inverted { 255 - pixel[0] } else { pixel[0] };
                    let level = if *has_associated_alpha {
                        without_alpha(level, pixel[1])
                    } else {
                        level
                    };
                    *rgb = [level; 3];
                }
            }
            Self::Rgb { has_associated_alpha } => {
                for (pixel, rgb) in pixels {
                    *rgb = [pixel[0], pixel[1], pixel[2]];
                    if *has_associated_alpha {
                        *rgb = rgb.map(|level| without_alpha(level, pixel[3]));
                    }
                }
            }
            Self::Palette(palette) => {
                for (pixel, rgb) in pixels {
                    *rgb = palette[usize::from(pixel[0])];
                }
            }
            Self::Cmyk => {
                for (pixel, rgb) in pixels {
                    *rgb = cmyk::to_rgb([pixel[0], pixel[1], pixel[2], pixel[3]]);
                }
            }
            Self::YCbCr(tables) => {
                for (pixel, rgb) in pixels {
                    *rgb = tables.to_rgb([pixel[0], pixel[1], pixel[2]]);
                }
            }
            Self::CieLab => {
                for (pixel, rgb) in pixels {
                    *rgb = lab::to_rgb([pixel[0], pixel[1], pixel[2]]);
                }
            }
        }
    }
}

/// The level before it was multiplied by `alpha`, as in Pillow: rounded down, and 0 for an alpha of 0.
fn without_alpha(level: u8, alpha: u8) -> u8 {
    let level = (u32::from(level) * 255).checked_div(alpha.into());
    u8::try_from(level.unwrap_or_default()).unwrap_or(u8::MAX)
}

/// The colours of a palette. The file has 16 bits per channel; as in Pillow, the high byte is used.
fn palette(directory: &TiffDirectory<'_>, format: SampleFormat) -> Result<Box<[[u8; 3]; 256]>> {
    let colours = 1_usize << format.bits();
    let values = directory.find(tag::COLOR_MAP)?.ok_or_else(|| {
        Error::undecodable(format!(
            "TIFF without its palette: expected tag {} (ColorMap)",
            tag::COLOR_MAP
        ))
    })?;
    let mut palette = Box::new([[0; 3]; 256]);
    for (index, colour) in palette.iter_mut().take(colours).enumerate() {
        for (channel, level) in colour.iter_mut().enumerate() {
            let value = values.integer(channel * colours + index)?;
            *level = u8::try_from(value / 256).unwrap_or(u8::MAX);
        }
    }
    Ok(palette)
}
