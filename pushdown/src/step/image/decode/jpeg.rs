//! JPEG through TurboJPEG's C interface.
//!
//! The safe wrapper of the `turbojpeg` crate turns libjpeg's warnings into errors; Pillow decodes such files, and
//! real data sets hold many of them. This is the crate's one use of the raw interface.

use std::ffi::{CStr, c_int};

use turbojpeg::raw;

<<<<<<< HEAD
use super::{Region, Window};
use crate::{
    Error, Image, ImageHeader, Result,
    media::{self, Scans},
};
=======
use super::{Region, Window, cmyk};
use crate::{Error, Image, ImageHeader, Result, media};

/// Progressive files with more scans than this cost far more time than their size suggests.
const MAX_SCANS: c_int = 500;
>>>>>>> d723bfe (Decode TIFFs of any layout as Pillow does)

/// How the texts of all of libjpeg's warnings start (jerror.h, `JWRN_*`); no fatal error's text starts so.
///
/// TurboJPEG's code alone does not tell: it says "warning" for a fatal error, too, that came after a warning.
const WARNINGS: [&str; 7] = [
    "Application transferred too many scanlines",
    "Corrupt JPEG data",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Premature end of JPEG file",
    "Unknown Adobe color transform code",
    "Warning: unknown JFIF revision",
];

/// How far beyond its edges a window's pixels may look, by the upsampling of chroma.
const MARGIN: u32 = 8;

/// So many rows to be left out pay for finding out whether they can be.
const WORTH_A_LOOK: u32 = 8;

/// Decodes `bytes` to RGB at `1 / divisor` of each side, `divisor` one of 1, 2, 4, 8; of that at least `seen`.
///
/// `header` is what the limits were held against; a file whose markers libjpeg reads otherwise is refused.
pub(super) fn decode(
    bytes: &[u8],
    header: &ImageHeader,
    divisor: u32,
    seen: Option<Region>,
) -> Result<Window> {
    let scans =
        Scans::count(bytes).ok_or_else(|| Error::undecodable("the jpeg header is broken or incomplete"))?;
    let most_scans = scans
        .limit(header.width, header.height)
        .map_err(Error::undecodable)?;
    let mut decompressor = Decompressor::new(most_scans)?;
    let opened = decompressor.open(bytes, header, divisor)?;
    let all = Region::all(opened.width, opened.height);
    let part = match seen {
        Some(seen) => decompressor.narrow(bytes, &opened, seen)?,
        None => all,
    };
    let (format, channels) = if opened.cmyk {
        (raw::TJPF_TJPF_CMYK, 4)
    } else {
        (raw::TJPF_TJPF_RGB, 3)
    };
    let pixels = decompressor.decode(
        bytes,
        part.width as usize * part.height as usize * channels,
        format,
    )?;
    if decompressor.warned && !media::is_complete(bytes) {
        return Err(truncated());
    }
    if decompressor.warned && part != all {
        // What libjpeg makes of a broken file depends on what it looks at.
        return decode(bytes, header, divisor, None);
    }
    let pixels = if opened.cmyk { cmyk_to_rgb(&pixels) } else { pixels };
    let image = Image::from_parts(part.width, part.height, pixels);
    Ok(Window::new(image, part.x, part.y))
}

/// Decodes `bytes` to `count` levels a pixel, 1, 3 or 4, as its colour marker says; those of CMYK are not converted.
///
/// # Errors
/// `Undecodable` where it is broken, or has another number of components.
pub(super) fn samples(bytes: &[u8], header: &ImageHeader, count: usize) -> Result<Vec<u8>> {
    let mut decompressor = Decompressor::new()?;
    let opened = decompressor.open(bytes, header, 1)?;
    let (format, components) = match decompressor.parameter(raw::TJPARAM_TJPARAM_COLORSPACE)? {
        raw::TJCS_TJCS_GRAY => (raw::TJPF_TJPF_GRAY, 1),
        raw::TJCS_TJCS_CMYK | raw::TJCS_TJCS_YCCK => (raw::TJPF_TJPF_CMYK, 4),
        _ => (raw::TJPF_TJPF_RGB, 3),
    };
    if components != count {
        return Err(Error::undecodable(format!(
            "the JPEG has {components} components: expected {count}"
        )));
    }
    let length = opened.width as usize * opened.height as usize * count;
    let pixels = decompressor.decode(bytes, length, format)?;
    if decompressor.warned && !media::is_complete(bytes) {
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

/// What a header says of the image that decoding makes.
struct Opened {
    width: u32,
    height: u32,
    cmyk: bool,
    divisor: u32,
}

struct Decompressor {
    handle: raw::tjhandle,
    warned: bool,
}

#[expect(
    unsafe_code,
    reason = "TurboJPEG is a C library; each call is bounded by the sizes checked beside it"
)]
impl Decompressor {
    /// `most_scans` is what the file's markers were held against.
    fn new(most_scans: u32) -> Result<Self> {
        // SAFETY: no preconditions; null is checked below.
        let handle = unsafe { raw::tj3Init(raw::TJINIT_TJINIT_DECOMPRESS.cast_signed()) };
        if handle.is_null() {
            return Err(Error::internal("libjpeg-turbo could not start: out of memory"));
        }
        let mut decompressor = Self {
            handle,
            warned: false,
        };
        decompressor.set(raw::TJPARAM_TJPARAM_SCANLIMIT, most_scans)?;
        // Colour profiles would be copied: each marker, however short, takes an allocation.
        decompressor.set(raw::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
        Ok(decompressor)
    }

    fn set(&mut self, parameter: raw::TJPARAM, value: u32) -> Result<()> {
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the handle is live.
        let status = unsafe { raw::tj3Set(self.handle, parameter.cast_signed(), value) };
        self.check(status)
    }

    /// Reads the header.
    fn open(&mut self, bytes: &[u8], header: &ImageHeader, divisor: u32) -> Result<Opened> {
        // SAFETY: the handle is live, and pointer and length are those of one slice.
        let status = unsafe { raw::tj3DecompressHeader(self.handle, bytes.as_ptr(), bytes.len() as _) };
        self.check(status)?;
        let width = self.parameter(raw::TJPARAM_TJPARAM_JPEGWIDTH)?;
        let height = self.parameter(raw::TJPARAM_TJPARAM_JPEGHEIGHT)?;
        // TurboJPEG ignores the factor for lossless JPEG, and would write the whole image.
        let whole = divisor == 1 || self.parameter(raw::TJPARAM_TJPARAM_LOSSLESS)? == 0;
        if (width, height) != (header.width, header.height) || !whole {
            return Err(Error::undecodable("the JPEG has more than one frame header"));
        }
        let denom = c_int::try_from(divisor).unwrap_or(1);
        let factor = raw::tjscalingfactor { num: 1, denom };
        // SAFETY: the handle is live; TurboJPEG refuses factors that it does not have.
        let status = unsafe { raw::tj3SetScalingFactor(self.handle, factor) };
        self.check(status)?;
        let colours = self.parameter(raw::TJPARAM_TJPARAM_COLORSPACE)?;
        let cmyk = colours == raw::TJCS_TJCS_CMYK || colours == raw::TJCS_TJCS_YCCK;
        Ok(Opened {
            width: width.div_ceil(divisor),
            height: height.div_ceil(divisor),
            cmyk,
            divisor,
        })
    }

    /// Lets `decode` make only a part that has `seen`, pixel for pixel as in the whole; gives that part.
    ///
    /// The columns beside it and the rows above it are read, and no more done with them. The rows below are not even
    /// read where they cannot fail: whether they do is part of what decoding has to tell.
    fn narrow(&mut self, bytes: &[u8], opened: &Opened, seen: Region) -> Result<Region> {
        let all = Region::all(opened.width, opened.height);
        // Of a progressive file libjpeg may smooth blocks by their neighbours. Warnings of an arithmetic-coded one may come
        // after seconds, and with them a second decoding.
        if self.parameter(raw::TJPARAM_TJPARAM_PROGRESSIVE)? != 0
            || self.parameter(raw::TJPARAM_TJPARAM_ARITHMETIC)? != 0
        {
            return Ok(all);
        }
        // Columns start where blocks of all components do.
        // SAFETY: the handle is live. Odd subsampling is -1.
        let subsampling = unsafe { raw::tj3Get(self.handle, raw::TJPARAM_TJPARAM_SUBSAMP.cast_signed()) };
        let block = match subsampling {
            raw::TJSAMP_TJSAMP_444
            | raw::TJSAMP_TJSAMP_GRAY
            | raw::TJSAMP_TJSAMP_440
            | raw::TJSAMP_TJSAMP_441 => 8,
            raw::TJSAMP_TJSAMP_422 | raw::TJSAMP_TJSAMP_420 => 16,
            raw::TJSAMP_TJSAMP_411 => 32,
            _ => return Ok(all),
        };
        let left = seen.x.saturating_sub(MARGIN);
        let x = left - left % (block / opened.divisor);
        let y = seen.y.saturating_sub(MARGIN);
        let right = (seen.x + seen.width + MARGIN).min(opened.width);
        // Rows are made from the top: those below take no part in those above.
        let bottom = seen.y + seen.height;
        let worth_a_look = opened.height - bottom >= WORTH_A_LOOK;
        let bottom = if worth_a_look && media::is_one_scan(bytes) {
            bottom
        } else {
            opened.height
        };
        let part = Region {
            x,
            y,
            width: right - x,
            height: bottom - y,
        };
        if part == all {
            return Ok(all);
        }
        let [x, y, w, h] = [part.x, part.y, part.width, part.height].map(c_int::try_from);
        let (Ok(x), Ok(y), Ok(w), Ok(h)) = (x, y, w, h) else {
            return Ok(all);
        };
        // SAFETY: the handle is live; TurboJPEG refuses regions that are not within the image.
        let status = unsafe { raw::tj3SetCroppingRegion(self.handle, raw::tjregion { x, y, w, h }) };
        self.check(status)?;
        Ok(part)
    }

    /// Decodes what `open` opened; `length` is width * height * channels of the scaled image, or of the part that
    /// `narrow` gave.
    fn decode(&mut self, bytes: &[u8], length: usize, format: raw::TJPF) -> Result<Vec<u8>> {
        let mut pixels = Vec::with_capacity(length);
        // SAFETY: the handle is live; `pixels` has room for `length` bytes, computed from the sizes that `open`
        // read from the same bytes, or the region within them that was set; a pitch of 0 means rows without padding.
        let status = unsafe {
            raw::tj3Decompress8(
                self.handle,
                bytes.as_ptr(),
                bytes.len() as _,
                pixels.as_mut_ptr(),
                0,
                format,
            )
        };
        self.check(status)?;
        // SAFETY: without a fatal error, TurboJPEG has written every row, warnings or not.
        unsafe { pixels.set_len(length) };
        Ok(pixels)
    }

    fn parameter(&self, parameter: raw::TJPARAM) -> Result<u32> {
        // SAFETY: the handle is live.
        let value = unsafe { raw::tj3Get(self.handle, parameter.cast_signed()) };
        u32::try_from(value).map_err(|_| Error::undecodable("the JPEG header is incomplete"))
    }

    /// Warnings are remembered, anything else ends the decoding.
    fn check(&mut self, status: c_int) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the handle is live.
        let code = unsafe { raw::tj3GetErrorCode(self.handle) };
        // SAFETY: TurboJPEG gives a NUL-terminated text that lives until the next call on the handle.
        let text = unsafe { CStr::from_ptr(raw::tj3GetErrorStr(self.handle)) }.to_string_lossy();
        if code == raw::TJERR_TJERR_WARNING.cast_signed()
            && WARNINGS.iter().any(|warning| text.starts_with(warning))
        {
            self.warned = true;
            return Ok(());
        }
        Err(Error::undecodable(format!("libjpeg-turbo: {text}")))
    }
}

#[expect(unsafe_code, reason = "ends the C library's handle")]
impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again.
        unsafe { raw::tj3Destroy(self.handle) };
    }
}
