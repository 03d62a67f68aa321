//! JPEG through libjpeg-turbo, as Pillow decodes it.
//!
//! Pillow decodes files that libjpeg warns about, and real data sets hold many of them; a safe wrapper that turns warnings
//! into errors is of no use here. [`libjpeg`] is the one place that calls the C library for decoding.

mod crop;
mod grid;
mod libjpeg;

use super::{Region, Window, cmyk};
pub(super) use crop::{crop, decode_crop};
pub(super) use grid::BlockGrid;
use libjpeg::{Header, Job, Outcome};
use pushdown_core::{
    Cancellation, Error, Image, ImageHeader, Result,
    media::{self, JpegHeader, Scans},
};

/// Pixels outside of a window that its own pixels depend on, since chroma is upsampled from neighbours.
const MARGIN: u32 = 8;

/// Rows below a window that make it worth while to find out whether they can be skipped.
const MIN_SKIPPED_ROWS: u32 = 8;

/// Decodes `bytes` to RGB at `1 / divisor` of each side, `divisor` one of 1, 2, 4, 8: at least the region `wanted`, in pixels
/// of the scaled image.
///
/// `header` is the one whose size was checked against the limits.
///
/// # Errors
/// `Undecodable` for a broken or truncated file, for one whose markers libjpeg reads otherwise than `header`, and for one
/// with too many scans; those of [`Cancellation::check`].
pub(super) fn decode(
    bytes: &[u8],
    header: &ImageHeader,
    divisor: u32,
    wanted: Option<Region>,
    cancellation: Cancellation<'_>,
) -> Result<Window> {
    let file = File::open(bytes, header, cancellation)?;
    let decoded = file.decode(divisor, wanted)?;
    if !decoded.warned {
        return Ok(decoded.window);
    }
    if !media::is_complete(bytes) {
        drop(decoded);
        return file.decode_without_end(divisor);
    }
    if decoded.is_part {
        // What libjpeg makes of a broken file depends on the region.
        drop(decoded);
        return file.decode(divisor, None).map(|decoded| decoded.window);
    }
    Ok(decoded.window)
}

/// A file whose header and scans have been checked.
struct File<'a> {
    bytes: &'a [u8],
    header: Header,
    scans: Scans,
    max_scans: u32,
    warned: bool,
    cancellation: Cancellation<'a>,
}

struct Decoded {
    window: Window,
    warned: bool,
    is_part: bool,
}

impl<'a> File<'a> {
    /// Checks the scans of `bytes` against their limit for the size in `expected`, and that libjpeg finds that size, too.
    fn open(bytes: &'a [u8], expected: &ImageHeader, cancellation: Cancellation<'a>) -> Result<Self> {
        let scans = Scans::count(bytes)
            .ok_or_else(|| Error::undecodable("the jpeg header is broken or incomplete"))?;
        let max_scans = scans
            .limit(expected.width, expected.height)
            .map_err(Error::undecodable)?;
        let Outcome {
            value: header,
            warned,
        } = libjpeg::read_header(bytes)?;
        if (header.width, header.height) != (expected.width, expected.height) {
            return Err(Error::undecodable("the JPEG has more than one frame header"));
        }
        Ok(Self {
            bytes,
            header,
            scans,
            max_scans,
            warned,
            cancellation,
        })
    }

    fn job(&self, divisor: u32) -> Job<'a> {
        let (width, height) = (
            self.header.width.div_ceil(divisor),
            self.header.height.div_ceil(divisor),
        );
        Job {
            bytes: self.bytes,
            divisor,
            size: (width, height),
            region: Region::all(width, height),
            components: if self.header.components() == 4 { 4 } else { 3 },
            max_scans: self.max_scans,
            cancellation: self.cancellation,
            stop_with_fill: None,
        }
    }

    fn decode(&self, divisor: u32, wanted: Option<Region>) -> Result<Decoded> {
        let mut job = self.job(divisor);
        let whole = job.region;
        if let Some(wanted) = wanted {
            job.region = self.region(&job, wanted);
        }
        let Outcome {
            value: pixels,
            warned,
        } = libjpeg::decode(&job)?;
        Ok(Decoded {
            window: Window::new(image(&job, pixels), job.region.x, job.region.y),
            warned: self.warned || warned,
            is_part: job.region != whole,
        })
    }

    /// The smallest region around `wanted` whose pixels are those of the whole image.
    ///
    /// libjpeg reads the columns next to it and the rows above it, and does no more with them. It does not even read the rows
    /// below, unless they may fail: an error there is an error of the file.
    fn region(&self, job: &Job<'_>, wanted: Region) -> Region {
        let whole = job.region;
        // libjpeg may smooth the blocks of a progressive file by their neighbours. Warnings of an arithmetic-coded file may
        // appear after seconds, and cause a second decode.
        if self.header.is_progressive() || self.header.is_arithmetic() {
            return whole;
        }
        let Some(subsampling) = JpegHeader::read(self.bytes).and_then(|header| header.subsampling()) else {
            return whole;
        };
        let left = wanted.x.saturating_sub(MARGIN);
        let x = left - left % (subsampling.block_width() / job.divisor);
        let y = wanted.y.saturating_sub(MARGIN);
        let right = (wanted.x + wanted.width + MARGIN).min(whole.width);
        // Rows are decoded from the top: those below do not change those above.
        let bottom = if self.can_skip_rows_below(wanted, whole.height) {
            wanted.y + wanted.height
        } else {
            whole.height
        };
        Region {
            x,
            y,
            width: right - x,
            height: bottom - y,
        }
    }

    /// Whether the file is not read below `wanted`, a region of an image of `height` rows.
    fn can_skip_rows_below(&self, wanted: Region, height: u32) -> bool {
        height - (wanted.y + wanted.height) >= MIN_SKIPPED_ROWS && media::is_one_scan(self.bytes)
    }

    /// Decodes a file that has no end-of-image marker, if libjpeg decodes all of its rows before it asks for more bytes: zeros
    /// may stand in the marker's place. Pillow, which feeds libjpeg as it reads, decodes the same files; in one of several
    /// scans it requires the marker.
    fn decode_without_end(&self, divisor: u32) -> Result<Window> {
        if self.scans.is_one_pass() {
            // A row that is written differs from one of the two fills.
            for fill in [0, u8::MAX] {
                let mut job = self.job(divisor);
                job.stop_with_fill = Some(fill);
                let pixels = libjpeg::decode(&job)?.value;
                let stride = job.size.0 as usize * job.components;
                if pixels[pixels.len() - stride..].iter().any(|level| *level != fill) {
                    return Ok(Window::whole(image(&job, pixels)));
                }
            }
        }
        Err(truncated())
    }
}

fn image(job: &Job<'_>, pixels: Vec<u8>) -> Image {
    let pixels = if job.components == 4 {
        cmyk_to_rgb(&pixels)
    } else {
        pixels
    };
    Image::from_parts(job.region.width, job.region.height, pixels)
}

/// Decodes a strip or a tile of a larger image to `components` levels per pixel, 1, 3 or 4, as its colour marker says; CMYK is
/// not converted. Its scans are checked against the limit for the whole image, since every part may have as many.
///
/// # Errors
/// `Undecodable` for a broken part, one with another number of components, or one with too many scans; those of
/// [`Cancellation::check`].
pub(super) fn samples(
    bytes: &[u8],
    header: &ImageHeader,
    components: usize,
    (image_width, image_height): (u32, u32),
    cancellation: Cancellation<'_>,
) -> Result<Vec<u8>> {
    let file = File::open(bytes, header, cancellation)?;
    file.scans
        .limit(image_width, image_height)
        .map_err(Error::undecodable)?;
    let found = file.header.components();
    if found != components {
        return Err(Error::undecodable(format!(
            "the JPEG has {found} components: expected {components}"
        )));
    }
    let mut job = file.job(1);
    job.components = components;
    let Outcome {
        value: pixels,
        warned,
    } = libjpeg::decode(&job)?;
    if (file.warned || warned) && !media::is_complete(bytes) {
        return Err(truncated());
    }
    Ok(pixels)
}

fn truncated() -> Error {
    Error::undecodable("the JPEG ends before its end-of-image marker: it is truncated")
}

/// CMYK to RGB. Adobe's files store inks inverted: 255 is no ink.
pub(super) fn cmyk_to_rgb(pixels: &[u8]) -> Vec<u8> {
    let inks = pixels.as_chunks().0.iter();
    inks.flat_map(|inks: &[u8; 4]| cmyk::to_rgb(inks.map(|ink| 255 - ink)))
        .collect()
}
