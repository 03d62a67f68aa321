//! The meaning of samples (`PhotometricInterpretation`), to RGB as Pillow has it.

use super::{super::cmyk, compression::Compression, lab, page::unsupported, samples::Format, ycbcr::Tables};
use crate::{
    Error, Result,
    media::tiff::{Directory, tag},
};

/// What a file says its samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    WhiteIsZero,
    BlackIsZero,
    Rgb,
    Palette,
    Cmyk,
    YCbCr,
    CieLab,
}

/// How levels of samples become RGB.
pub(super) enum Colour {
    Grey {
        inverted: bool,
        /// Multiplied by the alpha that stands next.
        associated_alpha: bool,
    },
    Rgb {
        associated_alpha: bool,
    },
    Palette(Box<[[u8; 3]; 256]>),
    Cmyk,
    YCbCr(Box<Tables>),
    CieLab,
}

impl Named {
    /// The interpretation `photometric` of `samples` per pixel.
    pub(super) fn read(photometric: u64, samples: u64) -> Result<Self> {
        const EXPECTED: &str = "0 or 1 (grey), 2 (RGB), 3 (palette), 5 (CMYK), 6 (YCbCr) or 8 (CIE L*a*b*)";
        let named = match photometric {
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
        if samples < named.samples() {
            return Err(Error::undecodable(format!(
                "TIFF of {} with {samples} samples per pixel: expected {} or more",
                named.name(),
                named.samples()
            )));
        }
        Ok(named)
    }

    /// The samples that it has without extra ones.
    pub(super) const fn samples(self) -> u64 {
        match self {
            Self::WhiteIsZero | Self::BlackIsZero | Self::Palette => 1,
            Self::Rgb | Self::YCbCr | Self::CieLab => 3,
            Self::Cmyk => 4,
        }
    }

    /// The most samples that it is read with, as Pillow has it.
    pub(super) const fn most_samples(self) -> u64 {
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
    /// `associated_alpha` tells that colours are multiplied by the first extra sample.
    ///
    /// # Errors
    /// `Undecodable` where a palette is missing, or samples have a width that such colours are not read in.
    pub(super) fn read(
        directory: &Directory<'_>,
        named: Named,
        compression: &Compression<'_>,
        format: Format,
        associated_alpha: bool,
        planar: bool,
        subsampled: bool,
    ) -> Result<Self> {
        let bits_expected = match named {
            Named::Palette if !matches!(format, Format::Unsigned(..=8)) => "1 to 8 bits",
            Named::YCbCr | Named::CieLab if format != Format::Unsigned(8) => "8 bits",
            Named::Cmyk if !matches!(format, Format::Unsigned(_)) => "1 to 16 bits without a sign",
            _ => "",
        };
        if !bits_expected.is_empty() {
            return Err(Error::undecodable(format!(
                "TIFF of {} in {format}: expected {bits_expected}",
                named.name()
            )));
        }
        if associated_alpha && matches!(named, Named::Cmyk) {
            return Err(Error::undecodable(
                "TIFF of CMYK with associated alpha: expected no alpha, or unassociated",
            ));
        }
        Ok(match named {
            Named::WhiteIsZero => Self::Grey {
                inverted: format.has_white(),
                associated_alpha,
            },
            Named::BlackIsZero => Self::Grey {
                inverted: false,
                associated_alpha,
            },
            // libjpeg converts it, and gives chroma to all pixels, unless each component is a JPEG by itself.
            Named::YCbCr if compression.is_jpeg() && !planar => Self::Rgb {
                associated_alpha: false,
            },
            Named::Rgb => Self::Rgb { associated_alpha },
            Named::Palette => Self::Palette(palette(directory, format)?),
            Named::Cmyk => Self::Cmyk,
            Named::YCbCr => Self::YCbCr(Box::new(match compression {
                Compression::None if !subsampled => Tables::pillow(),
                _ => Tables::libtiff(directory)?,
            })),
            Named::CieLab => Self::CieLab,
        })
    }

    /// Whether levels are places in a palette.
    pub(super) const fn is_indexed(&self) -> bool {
        matches!(self, Self::Palette(_))
    }

    /// Converts a row: `samples` levels for each pixel, to 3 bytes each of `rgb`.
    pub(super) fn to_rgb(&self, levels: &[u8], samples: usize, rgb: &mut [u8]) {
        let pixels = levels.chunks_exact(samples).zip(rgb.as_chunks_mut::<3>().0);
        match self {
            Self::Grey {
                inverted,
                associated_alpha,
            } => {
                for (pixel, rgb) in pixels {
                    let level = if *inverted { 255 - pixel[0] } else { pixel[0] };
                    let level = if *associated_alpha {
                        divided(level, pixel[1])
                    } else {
                        level
                    };
                    *rgb = [level; 3];
                }
            }
            Self::Rgb { associated_alpha } => {
                for (pixel, rgb) in pixels {
                    *rgb = [pixel[0], pixel[1], pixel[2]];
                    if *associated_alpha {
                        *rgb = rgb.map(|level| divided(level, pixel[3]));
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

/// The level before it was multiplied by `alpha`, as Pillow has it: cut to whole levels, and 0 where nothing is seen.
fn divided(level: u8, alpha: u8) -> u8 {
    let level = (u32::from(level) * 255).checked_div(alpha.into());
    u8::try_from(level.unwrap_or_default()).unwrap_or(u8::MAX)
}

/// The colours of a palette, of which the file has 16 bits; as Pillow, the high byte counts.
fn palette(directory: &Directory<'_>, format: Format) -> Result<Box<[[u8; 3]; 256]>> {
    let colours = 1_usize << format.bits();
    let values = directory.find(tag::COLOR_MAP)?.ok_or_else(|| {
        Error::undecodable(format!(
            "TIFF of a palette without one: expected tag {} (ColorMap)",
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
