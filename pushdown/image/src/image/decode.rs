//! `decode`: an encoded image to RGB, with the results of Pillow's `convert("RGB")`.

mod bmp;
mod cmyk;
mod cropped;
mod gif;
mod jpeg;
mod png;
mod tiff;
mod webp;

use bytes::Bytes;
use image::{RgbImage, metadata::Orientation};

use super::{Region, Window};
use pushdown_core::{
    BytesKind, Error, Family, Image, ImageHeader, ImageKind, Limits, MediaType, Result, choice,
    language::{Args, Param, Side, Value},
    media::{self, bmp::BmpHeader, gif::GifHeader},
    step::{Operator, Scope},
};

choice! {
    /// What to do with an EXIF orientation.
    enum Orient {
        /// Leave the pixels as stored, as Pillow and torchvision do.
        None = "none",
        /// Rotate and mirror the image upright, as `ImageOps.exif_transpose`.
        Exif = "exif",
    }
}

/// `decode`. JPEG uses libjpeg-turbo with the accurate DCT and fancy upsampling, as Pillow does. PNG, GIF (first frame) and WebP
/// (first frame) use a crate each. BMP, and TIFF (first page) except for the codecs of its strips and tiles, are decoded by
/// this module.
#[derive(Debug, Clone, PartialEq)]
pub struct Decode {
    orient: Orient,
    scaling: Scaling,
}

/// How much a JPEG may be reduced while it is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scaling {
    Full,
    /// The short side has at least this many pixels.
    MinShort(u32),
    /// The long side has at least this many pixels.
    MinLong(u32),
}

impl Operator for Decode {
    type Input = Bytes;
    type Output = Image;

    const NAME: &'static str = "decode";
    const SUMMARY: &'static str = "JPEG, PNG, WebP, GIF (first frame), BMP or TIFF to RGB";
    const FAMILIES: &'static [Family] = &[Family::Decode];
    const PARAMS: &'static [Param] = &[
        Param::named(
            "orient",
            "none | exif = none",
            "turn the image upright by its EXIF orientation",
        ),
        Param::named(
            "min_short",
            "pixels",
            "decode JPEG at the coarsest of 1, 1/2, 1/4, 1/8 whose short side is at least this",
        ),
        Param::named("min_long", "pixels", "the same for the long side"),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let min_short = args.optional::<Side>("min_short")?;
        let min_long = args.optional::<Side>("min_long")?;
        let scaling = match (min_short, min_long) {
            (None, None) => Scaling::Full,
            (Some(Side(side)), None) => Scaling::MinShort(side),
            (None, Some(Side(side))) => Scaling::MinLong(side),
            (Some(_), Some(_)) => {
                return Err(args.fault("found both `min_short` and `min_long`, expected one"));
            }
        };
        Ok(Self {
            orient: args.optional("orient")?.unwrap_or(Orient::None),
            scaling,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let orient =
            (self.orient != Orient::None).then(|| ("orient", Value::Text(self.orient.name().to_owned())));
        let scaling = match self.scaling {
            Scaling::Full => None,
            Scaling::MinShort(side) => Some(("min_short", Value::Int(side.into()))),
            Scaling::MinLong(side) => Some(("min_long", Value::Int(side.into()))),
        };
        orient.into_iter().chain(scaling).collect()
    }

    fn output(&self, input: &BytesKind) -> Result<ImageKind, String> {
        let Some(header) = input.header else {
            return Ok(ImageKind::default());
        };
        let divisor = self.scaling.divisor(&header);
        let (width, height) = (header.width.div_ceil(divisor), header.height.div_ceil(divisor));
        Ok(match (self.orient, header.orientation) {
            (Orient::None, _) | (Orient::Exif, Some(1..=4)) => ImageKind {
                width: Some(width),
                height: Some(height),
            },
            (Orient::Exif, Some(_)) => ImageKind {
                width: Some(height),
                height: Some(width),
            },
            (Orient::Exif, None) => ImageKind::default(),
        })
    }

    fn scratch_bytes(&self, input: &BytesKind) -> Option<u64> {
        let header = input.header?;
        let per_pixel = u64::from(header.scratch_bytes_per_pixel);
        // Rotating an image needs a second one.
        let upright = if self.orient == Orient::Exif && header.orientation != Some(1) {
            3
        } else {
            0
        };
        Some(header.pixels().saturating_mul(per_pixel + upright))
    }

    fn apply(&self, input: Bytes, scope: &Scope<'_>) -> Result<Image> {
        self.decode(&input, scope, None).map(Window::into_image)
    }
}

impl Decode {
    /// Width and height of the decoded image, if a region of it can be decoded separately.
    pub fn size_for_regions(&self, header: &ImageHeader) -> Option<(u32, u32)> {
        if !header.is_scalable || (self.orient == Orient::Exif && header.orientation != Some(1)) {
            return None;
        }
        let divisor = self.scaling.divisor(header);
        Some((header.width.div_ceil(divisor), header.height.div_ceil(divisor)))
    }

    /// Decodes at least `region`. Pixels and errors are those of decoding the whole image.
    pub fn decode_region(&self, input: &[u8], scope: &Scope<'_>, region: Region) -> Result<Window> {
        self.decode(input, scope, Some(region))
    }

    /// `region` requires an image for which [`size_for_regions`](Self::size_for_regions) returns a size.
    fn decode(&self, input: &[u8], scope: &Scope<'_>, region: Option<Region>) -> Result<Window> {
        let (limits, cancellation) = (scope.limits, scope.cancellation);
        // The caller checks sizes that `output` knows. A size that only the whole file shows is checked here, before decoding.
        let header = ImageHeader::read(input).ok_or_else(|| match MediaType::sniff(input) {
            Some(media) => header_fault(media, input),
            None => Error::undecodable(unknown_format(input)),
        })?;
        check_pixels(&header, limits)?;
        let as_stored = Orientation::NoTransforms;
        let from_exif = |number| Orientation::from_exif(number).unwrap_or(as_stored);
        let (window, orientation) = match header.media {
            MediaType::Jpeg => (
                jpeg::decode(
                    input,
                    &header,
                    self.scaling.divisor(&header),
                    region,
                    cancellation,
                )?,
                header.orientation.map_or(as_stored, from_exif),
            ),
            MediaType::Png => (
                Window::whole(png::decode(input, &header)?),
                from_exif(media::png::orientation(input)),
            ),
            MediaType::Webp => (
                Window::whole(webp::decode(input, &header)?),
                from_exif(media::webp::orientation(input)),
            ),
            MediaType::Gif => (Window::whole(gif::decode(input)?), as_stored),
            MediaType::Bmp => (Window::whole(bmp::decode(input)?), as_stored),
            MediaType::Tiff => {
                let (image, orientation) = tiff::decode(input, &header, cancellation)?;
                (Window::whole(image), orientation)
            }
        };
        match self.orient {
            Orient::Exif if orientation != Orientation::NoTransforms => {
                rotate_upright(window.into_image(), orientation).map(Window::whole)
            }
            Orient::None | Orient::Exif => Ok(window),
        }
    }
}

impl Scaling {
    /// 1, 2, 4 or 8. libjpeg-turbo has no SIMD for other fractions such as 5/8, so they save no time.
    fn divisor(self, header: &ImageHeader) -> u32 {
        let (side, floor) = match self {
            _ if !header.is_scalable => return 1,
            Self::Full => return 1,
            Self::MinShort(floor) => (header.width.min(header.height), floor),
            Self::MinLong(floor) => (header.width.max(header.height), floor),
        };
        [8, 4, 2]
            .into_iter()
            .find(|divisor| side.div_ceil(*divisor) >= floor)
            .unwrap_or(1)
    }
}

/// Checks the size of the stored image.
fn check_pixels(header: &ImageHeader, limits: &Limits) -> Result<()> {
    if header.pixels() > limits.max_pixels {
        return Err(Error::undecodable(format!(
            "the {} states {} x {} pixels, more than the limit of {} pixels",
            header.media, header.width, header.height, limits.max_pixels
        )));
    }
    Ok(())
}

/// Maximum memory of a decoder from another crate, without its result: per pixel 16 bytes of RGBA in f32, as much again
/// between its passes, and 16 MiB for metadata and palettes.
const fn max_decoder_bytes(header: &ImageHeader) -> u64 {
    header.pixels().saturating_mul(32).saturating_add(16 << 20)
}

/// Why the header of `input` cannot be read. `input` has the signature of `media`.
fn header_fault(media: MediaType, input: &[u8]) -> Error {
    let fault = match media {
        MediaType::Bmp => BmpHeader::read(input).err(),
        MediaType::Gif => GifHeader::read(input).err().map(|error| error.to_string()),
        MediaType::Tiff => return tiff::header_fault(input),
        MediaType::Jpeg | MediaType::Png | MediaType::Webp => None,
    };
    Error::undecodable(fault.map_or_else(
        || format!("the {media} header is broken or incomplete"),
        |fault| format!("{media}: {fault}"),
    ))
}

fn rotate_upright(image: Image, orientation: Orientation) -> Result<Image> {
    let (width, height) = (image.width(), image.height());
    let pixels = RgbImage::from_raw(width, height, image.into_pixels())
        .ok_or_else(|| Error::internal("an image lost its shape"))?;
    let mut dynamic = image::DynamicImage::ImageRgb8(pixels);
    dynamic.apply_orientation(orientation);
    let upright = dynamic.into_rgb8();
    Image::new(upright.width(), upright.height(), upright.into_raw())
}

fn unknown_format(bytes: &[u8]) -> String {
    let start: String = bytes
        .iter()
        .take(8)
        .flat_map(|byte| std::ascii::escape_default(*byte))
        .map(char::from)
        .collect();
    match bytes.len() {
        0 => "the object is empty, expected an image".to_owned(),
        _ => format!("the object starts with `{start}`, expected JPEG, PNG, WebP, GIF, BMP or TIFF"),
    }
}

#[cfg(test)]
mod tests;
