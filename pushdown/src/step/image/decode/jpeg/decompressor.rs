//! TurboJPEG's calls on one file.

use std::ffi::{CStr, c_int};

use turbojpeg::raw;

use super::{super::Region, cmyk_to_rgb};
use crate::{
    Error, ImageHeader, Result,
    media::{self, JpegHeader, Scans},
};

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

/// What a header says of the image that decoding makes.
pub(super) struct Opened {
    pub(super) width: u32,
    pub(super) height: u32,
    cmyk: bool,
    divisor: u32,
}

impl Opened {
    /// What libjpeg makes of it: four inks are converted here.
    pub(super) const fn format(&self) -> raw::TJPF {
        if self.cmyk {
            raw::TJPF_TJPF_CMYK
        } else {
            raw::TJPF_TJPF_RGB
        }
    }

    /// Bytes of a pixel in that format.
    pub(super) const fn channels(&self) -> usize {
        if self.cmyk { 4 } else { 3 }
    }

    /// What was decoded as RGB.
    pub(super) fn rgb(&self, pixels: Vec<u8>) -> Vec<u8> {
        if self.cmyk { cmyk_to_rgb(&pixels) } else { pixels }
    }
}

/// A handle of TurboJPEG, for one file.
pub(super) struct Decompressor<'a> {
    handle: raw::tjhandle,
    bytes: &'a [u8],
    scans: Scans,
    warned: bool,
}

#[expect(
    unsafe_code,
    reason = "TurboJPEG is a C library; each call is bounded by the sizes checked beside it"
)]
impl<'a> Decompressor<'a> {
    /// Holds the scans of `bytes` against their limit for the size that `header` says.
    pub(super) fn new(bytes: &'a [u8], header: &ImageHeader) -> Result<Self> {
        let scans = Scans::count(bytes)
            .ok_or_else(|| Error::undecodable("the jpeg header is broken or incomplete"))?;
        let most_scans = scans
            .limit(header.width, header.height)
            .map_err(Error::undecodable)?;
        // SAFETY: no preconditions; null is checked below.
        let handle = unsafe { raw::tj3Init(raw::TJINIT_TJINIT_DECOMPRESS.cast_signed()) };
        if handle.is_null() {
            return Err(Error::internal("libjpeg-turbo could not start: out of memory"));
        }
        let mut decompressor = Self {
            handle,
            bytes,
            scans,
            warned: false,
        };
        decompressor.set(raw::TJPARAM_TJPARAM_SCANLIMIT, most_scans)?;
        // Colour profiles would be copied: each marker, however short, takes an allocation.
        decompressor.set(raw::TJPARAM_TJPARAM_SAVEMARKERS, 0)?;
        Ok(decompressor)
    }

    pub(super) const fn scans(&self) -> Scans {
        self.scans
    }

    /// Whether libjpeg has passed over something since.
    pub(super) const fn has_warned(&self) -> bool {
        self.warned
    }

    /// Lets `decode` end at what libjpeg would pass over.
    pub(super) fn stop_at_warnings(&mut self) -> Result<()> {
        self.set(raw::TJPARAM_TJPARAM_STOPONWARNING, 1)
    }

    fn set(&mut self, parameter: raw::TJPARAM, value: u32) -> Result<()> {
        let value = c_int::try_from(value).unwrap_or(c_int::MAX);
        // SAFETY: the handle is live.
        let status = unsafe { raw::tj3Set(self.handle, parameter.cast_signed(), value) };
        self.check(status)
    }

    /// Reads the header.
    pub(super) fn open(&mut self, header: &ImageHeader, divisor: u32) -> Result<Opened> {
        // SAFETY: the handle is live, and pointer and length are those of one slice.
        let status =
            unsafe { raw::tj3DecompressHeader(self.handle, self.bytes.as_ptr(), self.bytes.len() as _) };
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
    pub(super) fn narrow(&mut self, opened: &Opened, seen: Region) -> Result<Region> {
        let all = Region::all(opened.width, opened.height);
        // Of a progressive file libjpeg may smooth blocks by their neighbours. Warnings of an arithmetic-coded one may come
        // after seconds, and with them a second decoding.
        if self.parameter(raw::TJPARAM_TJPARAM_PROGRESSIVE)? != 0
            || self.parameter(raw::TJPARAM_TJPARAM_ARITHMETIC)? != 0
        {
            return Ok(all);
        }
        let Some(block) = JpegHeader::read(self.bytes).and_then(|header| header.block_columns()) else {
            return Ok(all);
        };
        let left = seen.x.saturating_sub(MARGIN);
        let x = left - left % (block / opened.divisor);
        let y = seen.y.saturating_sub(MARGIN);
        let right = (seen.x + seen.width + MARGIN).min(opened.width);
        // Rows are made from the top: those below take no part in those above.
        let bottom = seen.y + seen.height;
        let worth_a_look = opened.height - bottom >= WORTH_A_LOOK;
        let bottom = if worth_a_look && media::is_one_scan(self.bytes) {
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
    /// `narrow` gave. Where a warning stops it, the rows that are missing are of `fill`.
    pub(super) fn decode(&mut self, length: usize, format: raw::TJPF, fill: Option<u8>) -> Result<Vec<u8>> {
        let mut pixels = fill.map_or_else(|| Vec::with_capacity(length), |fill| vec![fill; length]);
        // SAFETY: the handle is live; `pixels` has room for `length` bytes, computed from the sizes that `open`
        // read from the same bytes, or the region within them that was set; a pitch of 0 means rows without padding.
        let status = unsafe {
            raw::tj3Decompress8(
                self.handle,
                self.bytes.as_ptr(),
                self.bytes.len() as _,
                pixels.as_mut_ptr(),
                0,
                format,
            )
        };
        self.check(status)?;
        // SAFETY: without a fatal error, TurboJPEG has written every row, warnings or not; where they stop it, `pixels` was
        // filled before.
        unsafe { pixels.set_len(length) };
        Ok(pixels)
    }

    /// The format without a conversion between grey, RGB and CMYK, and its components.
    pub(super) fn stored_format(&self) -> Result<(raw::TJPF, usize)> {
        Ok(match self.parameter(raw::TJPARAM_TJPARAM_COLORSPACE)? {
            raw::TJCS_TJCS_GRAY => (raw::TJPF_TJPF_GRAY, 1),
            raw::TJCS_TJCS_CMYK | raw::TJCS_TJCS_YCCK => (raw::TJPF_TJPF_CMYK, 4),
            _ => (raw::TJPF_TJPF_RGB, 3),
        })
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
impl Drop for Decompressor<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is live and not used again.
        unsafe { raw::tj3Destroy(self.handle) };
    }
}
