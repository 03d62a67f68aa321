//! The job of the pushdown benchmarks by the libraries that a service would be built on, and nothing around them.

use anyhow::Result;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use turbojpeg::{Decompressor, PixelFormat};

/// Side of the crop.
const SIDE: u32 = 224;
/// What the short side is resized to.
const SHORT: u32 = 256;

/// libjpeg-turbo by the `turbojpeg` crate and the `fast_image_resize` crate, each made once for all photos.
#[derive(Debug)]
pub struct Libraries {
    decompressor: Decompressor,
    resizer: Resizer,
    /// The decoded photo; one buffer for all.
    pixels: Vec<u8>,
}

impl Libraries {
    /// Both libraries, ready.
    ///
    /// # Errors
    /// When libjpeg-turbo has no memory.
    pub fn new() -> Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            resizer: Resizer::new(),
            pixels: Vec::new(),
        })
    }

    /// Decodes a JPEG to RGB at full size, and gives width and height.
    ///
    /// # Errors
    /// When it is broken.
    pub fn decode(&mut self, file: &[u8]) -> Result<(usize, usize)> {
        let header = self.decompressor.read_header(file)?;
        let pitch = header.width * 3;
        self.pixels.resize(pitch * header.height, 0);
        let image = turbojpeg::Image {
            pixels: self.pixels.as_mut_slice(),
            width: header.width,
            pitch,
            height: header.height,
            format: PixelFormat::RGB,
        };
        self.decompressor.decompress(file, image)?;
        Ok((header.width, header.height))
    }

    /// Decodes, resizes the short side to 256 with antialiasing and keeps the central 224 x 224: only those are
    /// resized. The crop falls between pixels where `center_crop` rounds.
    ///
    /// # Errors
    /// When the JPEG is broken.
    #[expect(clippy::cast_precision_loss, reason = "sides of a photo are exact")]
    pub fn decode_resize_crop(&mut self, file: &[u8]) -> Result<Vec<u8>> {
        let (width, height) = self.decode(file)?;
        let source = ImageRef::new(
            u32::try_from(width)?,
            u32::try_from(height)?,
            &self.pixels,
            PixelType::U8x3,
        )?;
        let part = width.min(height) as f64 * f64::from(SIDE) / f64::from(SHORT);
        let (left, top) = ((width as f64 - part) / 2.0, (height as f64 - part) / 2.0);
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
            .crop(left, top, part, part);
        let mut target = Image::new(SIDE, SIDE, PixelType::U8x3);
        self.resizer.resize(&source, &mut target, &options)?;
        Ok(target.into_vec())
    }
}
