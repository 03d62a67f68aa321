//! The benchmarked pipeline on bare libraries, without a service around them.

use anyhow::Result;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use turbojpeg::{Decompressor, PixelFormat};

/// Side of the crop, in pixels.
const CROP_SIDE: u32 = 224;
/// Length of the resized short side, in pixels.
const SHORT_SIDE: u32 = 256;

/// libjpeg-turbo (crate `turbojpeg`) and the crate `fast_image_resize`, each created once for all photos.
#[derive(Debug)]
pub struct Libraries {
    decompressor: Decompressor,
    resizer: Resizer,
    /// The decoded photo; the buffer is reused.
    pixels: Vec<u8>,
}

impl Libraries {
    /// Creates both libraries' contexts.
    ///
    /// # Errors
    /// If libjpeg-turbo runs out of memory.
    pub fn new() -> Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            resizer: Resizer::new(),
            pixels: Vec::new(),
        })
    }

    /// Decodes a JPEG to RGB at full size; returns width and height.
    ///
    /// # Errors
    /// If the JPEG is malformed.
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

    /// Decodes, resizes the short side to 256 with antialiasing, and crops the central 224 x 224. Only the cropped pixels are
    /// resized. The crop can start between pixels; `center_crop` rounds.
    ///
    /// # Errors
    /// If the JPEG is malformed.
    #[expect(clippy::cast_precision_loss, reason = "sides of a photo are exact")]
    pub fn decode_resize_crop(&mut self, file: &[u8]) -> Result<Vec<u8>> {
        let (width, height) = self.decode(file)?;
        let source = ImageRef::new(
            u32::try_from(width)?,
            u32::try_from(height)?,
            &self.pixels,
            PixelType::U8x3,
        )?;
        let crop_size = width.min(height) as f64 * f64::from(CROP_SIDE) / f64::from(SHORT_SIDE);
        let (left, top) = (
            (width as f64 - crop_size) / 2.0,
            (height as f64 - crop_size) / 2.0,
        );
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
            .crop(left, top, crop_size, crop_size);
        let mut target = Image::new(CROP_SIDE, CROP_SIDE, PixelType::U8x3);
        self.resizer.resize(&source, &mut target, &options)?;
        Ok(target.into_vec())
    }
}
