//! `encode`: an image to JPEG, PNG or WebP.

use std::io::Cursor;

use bytes::Bytes;
use image::{ExtendedColorType, write_buffer_with_format};

use pushdown_core::{
    BytesKind, Error, Family, Image, ImageHeader, ImageKind, MediaType, Result, choice,
    language::{Args, Param, Value},
    step::{Operator, Scope},
};

choice! {
    /// A format to encode to.
    pub enum Encoding {
        /// Baseline JPEG with 4:2:0 subsampling, by libjpeg-turbo.
        Jpeg = "jpeg",
        /// PNG.
        Png = "png",
        /// Lossless WebP.
        Webp = "webp",
    }
}

/// `encode`. Only JPEG has a quality: PNG is lossless, and so is the WebP that this step writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Encode {
    encoding: Encoding,
    quality: u8,
}

const DEFAULT_QUALITY: u8 = 90;

impl Operator for Encode {
    type Input = Image;
    type Output = Bytes;

    const NAME: &'static str = "encode";
    const SUMMARY: &'static str = "to JPEG (4:2:0), PNG or lossless WebP";
    const FAMILIES: &'static [Family] = &[Family::Decode];
    const PARAMS: &'static [Param] = &[
        Param::positional("format", "jpeg | png | webp", "format"),
        Param::positional("quality", "1..100 = 90", "JPEG quality"),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let encoding = args.required("format")?;
        let quality = match (encoding, args.optional::<u64>("quality")?) {
            (_, None) => DEFAULT_QUALITY,
            (Encoding::Jpeg, Some(quality @ 1..=100)) => u8::try_from(quality).unwrap_or(DEFAULT_QUALITY),
            (Encoding::Jpeg, Some(quality)) => {
                return Err(args.fault(format!("`quality` is {quality}, expected 1 to 100")));
            }
            (_, Some(_)) => {
                return Err(args.fault("`quality` applies to jpeg only: png and webp are lossless"));
            }
        };
        Ok(Self { encoding, quality })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let quality = (self.quality != DEFAULT_QUALITY).then(|| ("quality", Value::Int(self.quality.into())));
        std::iter::once(("format", Value::Text(self.encoding.name().to_owned())))
            .chain(quality)
            .collect()
    }

    fn output(&self, input: &ImageKind) -> Result<BytesKind, String> {
        let media = self.media();
        let header = match (input.width, input.height) {
            (Some(width), Some(height)) => Some(ImageHeader {
                media,
                width,
                height,
                orientation: Some(1),
                scratch_bytes_per_pixel: 8,
                is_scalable: media == MediaType::Jpeg,
            }),
            _ => None,
        };
        Ok(BytesKind {
            length: None,
            media: Some(media),
            header,
        })
    }

    fn scratch_bytes(&self, input: &ImageKind) -> Option<u64> {
        // Upper bound of the encoders: a converted copy, and two copies of the growing output.
        Some(input.pixels()?.saturating_mul(6))
    }

    fn apply(&self, input: Image, _: &Scope<'_>) -> Result<Bytes> {
        match self.encoding {
            Encoding::Jpeg => self.jpeg(&input),
            Encoding::Png | Encoding::Webp => self.lossless(&input),
        }
    }
}

impl Encode {
    const fn media(&self) -> MediaType {
        match self.encoding {
            Encoding::Jpeg => MediaType::Jpeg,
            Encoding::Png => MediaType::Png,
            Encoding::Webp => MediaType::Webp,
        }
    }

    fn jpeg(&self, image: &Image) -> Result<Bytes> {
        let view = turbojpeg::Image {
            pixels: image.pixels(),
            width: image.width() as usize,
            pitch: image.stride(),
            height: image.height() as usize,
            format: turbojpeg::PixelFormat::RGB,
        };
        turbojpeg::compress(view, self.quality.into(), turbojpeg::Subsamp::Sub2x2)
            .map(|jpeg| Bytes::copy_from_slice(&jpeg))
            .map_err(|error| Error::unsuitable(format!("cannot encode as jpeg: {error}")))
    }

    fn lossless(&self, image: &Image) -> Result<Bytes> {
        let mut out = Cursor::new(Vec::new());
        let format = self.media().format();
        write_buffer_with_format(
            &mut out,
            image.pixels(),
            image.width(),
            image.height(),
            ExtendedColorType::Rgb8,
            format,
        )
        .map_err(|error| Error::unsuitable(format!("cannot encode as {}: {error}", self.encoding.name())))?;
        Ok(out.into_inner().into())
    }
}
