//! JPEG through TurboJPEG's C interface.
//!
//! The safe wrapper of the `turbojpeg` crate turns libjpeg's warnings into errors; Pillow decodes such files, and
//! real data sets hold many of them. [`decompressor`] is the crate's one use of the raw interface.

mod decompressor;

use super::{Region, Window, cmyk};
use crate::{Error, Image, ImageHeader, Result, media};
use decompressor::Decompressor;

/// Decodes `bytes` to RGB at `1 / divisor` of each side, `divisor` one of 1, 2, 4, 8; of that at least `seen`.
///
/// `header` is what the limits were held against; a file whose markers libjpeg reads otherwise is refused.
pub(super) fn decode(
    bytes: &[u8],
    header: &ImageHeader,
    divisor: u32,
    seen: Option<Region>,
) -> Result<Window> {
    let attempt = Attempt {
        bytes,
        header,
        divisor,
    };
    let decoded = attempt.run(seen)?;
    if !decoded.warned {
        return Ok(decoded.window);
    }
    if !media::is_complete(bytes) {
        drop(decoded);
        return attempt.run_without_end();
    }
    if decoded.is_part {
        // What libjpeg makes of a broken file depends on what it looks at.
        drop(decoded);
        return attempt.run(None).map(|decoded| decoded.window);
    }
    Ok(decoded.window)
}

/// How a file is decoded.
struct Attempt<'a> {
    bytes: &'a [u8],
    header: &'a ImageHeader,
    divisor: u32,
}

struct Decoded {
    window: Window,
    warned: bool,
    is_part: bool,
}

impl Attempt<'_> {
    fn run(&self, seen: Option<Region>) -> Result<Decoded> {
        let mut decompressor = Decompressor::new(self.bytes, self.header)?;
        let opened = decompressor.open(self.header, self.divisor)?;
        let all = Region::all(opened.width, opened.height);
        let part = match seen {
            Some(seen) => decompressor.narrow(&opened, seen)?,
            None => all,
        };
        let length = part.width as usize * part.height as usize * opened.channels();
        let pixels = decompressor.decode(length, opened.format(), None)?;
        let image = Image::from_parts(part.width, part.height, opened.rgb(pixels));
        Ok(Decoded {
            window: Window::new(image, part.x, part.y),
            warned: decompressor.has_warned(),
            is_part: part != all,
        })
    }

    /// Decodes a file without its end-of-image marker, if libjpeg makes all rows of it before it looks for more bytes: zeros may
    /// stand where the marker is missing. So does Pillow, which feeds libjpeg as it reads; of a file in several scans it wants
    /// the marker.
    fn run_without_end(&self) -> Result<Window> {
        // A row that is written differs from what one of the two left in its place.
        for fill in [0, u8::MAX] {
            let mut decompressor = Decompressor::new(self.bytes, self.header)?;
            if !decompressor.scans().is_one_pass() {
                break;
            }
            let opened = decompressor.open(self.header, self.divisor)?;
            decompressor.stop_at_warnings()?;
            let stride = opened.width as usize * opened.channels();
            let length = stride * opened.height as usize;
            let pixels = decompressor.decode(length, opened.format(), Some(fill))?;
            if pixels[pixels.len() - stride..].iter().any(|level| *level != fill) {
                let image = Image::from_parts(opened.width, opened.height, opened.rgb(pixels));
                return Ok(Window::whole(image));
            }
        }
        Err(truncated())
    }
}

/// Decodes a strip or a tile of a larger image to `count` levels a pixel, 1, 3 or 4, as its colour marker says; those of CMYK are
/// not converted. Its scans are held against the limit for the whole image, since every part may have as many.
///
/// # Errors
/// `Undecodable` where it is broken, has another number of components, or too many scans.
pub(super) fn samples(
    bytes: &[u8],
    header: &ImageHeader,
    count: usize,
    (image_width, image_height): (u32, u32),
) -> Result<Vec<u8>> {
    let mut decompressor = Decompressor::new(bytes, header)?;
    decompressor
        .scans()
        .limit(image_width, image_height)
        .map_err(Error::undecodable)?;
    let opened = decompressor.open(header, 1)?;
    let (format, components) = decompressor.stored_format()?;
    if components != count {
        return Err(Error::undecodable(format!(
            "the JPEG has {components} components: expected {count}"
        )));
    }
    let length = opened.width as usize * opened.height as usize * count;
    let pixels = decompressor.decode(length, format, None)?;
    if decompressor.has_warned() && !media::is_complete(bytes) {
        return Err(truncated());
    }
    Ok(pixels)
}

fn truncated() -> Error {
    Error::undecodable("the JPEG ends before its end-of-image marker: it is truncated")
}

/// Adobe's files hold inks inverted: 255 is no ink.
pub(super) fn cmyk_to_rgb(pixels: &[u8]) -> Vec<u8> {
    let inks = pixels.as_chunks().0.iter();
    inks.flat_map(|inks: &[u8; 4]| cmyk::to_rgb(inks.map(|ink| 255 - ink)))
        .collect()
}
