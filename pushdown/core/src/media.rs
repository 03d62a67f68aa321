//! Headers of encoded images: format and dimensions from the first bytes.

pub mod bmp;
pub mod exif;
pub mod gif;
mod jpeg;
pub mod png;
pub mod tiff;
pub mod webp;

use std::{fmt, io::Cursor};

use image::{ImageDecoder as _, ImageFormat, ImageReader};
use serde::{Deserialize, Serialize};

pub use jpeg::{JpegHeader, Scans, Subsampling, is_complete, is_one_scan, one_scan_length, standalone_jpeg};

/// An image format that `decode` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaType {
    /// JPEG.
    Jpeg,
    /// PNG.
    Png,
    /// WebP, lossy or lossless.
    Webp,
    /// GIF. Only the first frame is read.
    Gif,
    /// Windows bitmap.
    Bmp,
    /// TIFF. Only the first page is read.
    Tiff,
}

/// Bytes per pixel of palette indices.
const INDEX_BYTES: u8 = 1;

/// The header of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageHeader {
    /// Format.
    pub media: MediaType,
    /// Width in pixels as stored, before any orientation.
    pub width: u32,
    /// Height in pixels as stored, before any orientation.
    pub height: u32,
    /// EXIF orientation, 1 to 8; `None` if the header does not determine it.
    pub orientation: Option<u8>,
    /// Bytes per pixel that decoding needs in addition to the RGB result.
    pub scratch_bytes_per_pixel: u8,
    /// Whether the decoder can produce a reduced image: true for JPEG, except lossless JPEG.
    pub is_scalable: bool,
}

impl MediaType {
    /// The format of `bytes`, from their signature.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        if tiff::is_tiff(bytes) {
            return Some(Self::Tiff);
        }
        match image::guess_format(bytes).ok()? {
            ImageFormat::Jpeg => Some(Self::Jpeg),
            ImageFormat::Png => Some(Self::Png),
            ImageFormat::WebP => Some(Self::Webp),
            ImageFormat::Gif => Some(Self::Gif),
            ImageFormat::Bmp => Some(Self::Bmp),
            _ => None,
        }
    }

    /// The `Content-Type` of bytes in this format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Jpeg => "image/jpeg",
            Self::Png => "image/png",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Bmp => "image/bmp",
            Self::Tiff => "image/tiff",
        }
    }

    /// The format as the `image` crate names it.
    pub const fn format(self) -> ImageFormat {
        match self {
            Self::Jpeg => ImageFormat::Jpeg,
            Self::Png => ImageFormat::Png,
            Self::Webp => ImageFormat::WebP,
            Self::Gif => ImageFormat::Gif,
            Self::Bmp => ImageFormat::Bmp,
            Self::Tiff => ImageFormat::Tiff,
        }
    }
}

/// The short name: `jpeg`.
impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.content_type().trim_start_matches("image/"))
    }
}

impl ImageHeader {
    /// The header of a JPEG of this width and height in pixels, which EXIF does not turn.
    pub const fn upright_jpeg(width: u32, height: u32) -> Self {
        Self {
            media: MediaType::Jpeg,
            width,
            height,
            orientation: Some(1),
            scratch_bytes_per_pixel: 0,
            is_scalable: true,
        }
    }

    /// Reads the header from the start of an object; `None` if `head` is not an image, is too short, or states a side of 0.
    pub fn read(head: &[u8]) -> Option<Self> {
        let header = match MediaType::sniff(head)? {
            MediaType::Jpeg => JpegHeader::read(head)?.summary(),
            MediaType::Tiff => tiff::TiffDirectory::read(head)
                .and_then(|page| page.summary())
                .ok()?,
            MediaType::Bmp => {
                let header = bmp::BmpHeader::read(head).ok()?;
                Self::unscalable(MediaType::Bmp, (header.width, header.height), INDEX_BYTES)
            }
            MediaType::Gif => {
                let header = gif::GifHeader::read(head).ok()?;
                Self::unscalable(MediaType::Gif, (header.width, header.height), INDEX_BYTES)
            }
            media => {
                let decoder = ImageReader::with_format(Cursor::new(head), media.format())
                    .into_decoder()
                    .ok()?;
                // The decoder's own buffer, and another one for animations and palettes.
                let scratch = decoder.color_type().bytes_per_pixel() + 4;
                Self::unscalable(media, decoder.dimensions(), scratch)
            }
        };
        (header.width > 0 && header.height > 0).then_some(header)
    }

    /// A header of a format that cannot be scaled. Such formats have no orientation, or store it anywhere in the file.
    const fn unscalable(media: MediaType, (width, height): (u32, u32), scratch_bytes_per_pixel: u8) -> Self {
        Self {
            media,
            width,
            height,
            orientation: if matches!(media, MediaType::Bmp | MediaType::Gif) {
                Some(1)
            } else {
                None
            },
            scratch_bytes_per_pixel,
            is_scalable: false,
        }
    }

    /// Width times height.
    pub const fn pixels(&self) -> u64 {
        // `u64::from` is not available in a const function.
        self.width as u64 * self.height as u64
    }
}

#[cfg(test)]
mod tests;
