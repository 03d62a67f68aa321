//! Calls of libjpeg, through the functions in `libjpeg.c`.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::super::Region;
use pushdown_core::{Cancellation, Error, Result};

/// Bytes of libjpeg's longest message (`JMSG_LENGTH_MAX`).
const MESSAGE_BYTES: usize = 200;

/// What the header of a JPEG says.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Header {
    /// Width of the stored image.
    pub(super) width: u32,
    /// Height of the stored image.
    pub(super) height: u32,
    /// 1 for grey, 3 for RGB and `YCbCr`, 4 for CMYK and YCCK, 0 for a colour space without a name.
    components: u32,
    progressive: u32,
    arithmetic: u32,
}

impl Header {
    /// Levels per pixel without a conversion between grey, RGB and CMYK.
    pub(super) const fn components(&self) -> usize {
        self.components as usize
    }

    pub(super) const fn is_progressive(&self) -> bool {
        self.progressive != 0
    }

    pub(super) const fn is_arithmetic(&self) -> bool {
        self.arithmetic != 0
    }
}

/// How to decode a file.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) bytes: &'a [u8],
    /// 1, 2, 4 or 8: the image is decoded at `1 / divisor` of each side.
    pub(super) divisor: u32,
    /// Width and height of the image at that scale.
    pub(super) size: (u32, u32),
    /// The region of the scaled image to decode; `x` is a multiple of the block size.
    pub(super) region: Region,
    /// Levels per pixel of the output: 1 (grey), 3 (RGB) or 4 (CMYK).
    pub(super) components: usize,
    pub(super) max_scans: u32,
    pub(super) cancellation: Cancellation<'a>,
    /// If set, decoding ends at the first warning, and rows that are missing then have this level.
    pub(super) stop_with_fill: Option<u8>,
}

/// A result, and whether libjpeg warned about the file.
#[derive(Debug)]
pub(super) struct Outcome<T> {
    pub(super) value: T,
    pub(super) warned: bool,
}

/// `struct pushdown_jpeg_job`.
#[repr(C)]
struct RawJob {
    bytes: *const u8,
    length: usize,
    divisor: u32,
    image_width: u32,
    image_height: u32,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    components: u32,
    max_scans: u32,
    stop_at_warning: u32,
    is_cancelled: extern "C" fn(*const c_void) -> u32,
    cancellation: *const c_void,
    pixels: *mut u8,
}

#[expect(unsafe_code, reason = "declares the functions of libjpeg.c")]
unsafe extern "C" {
    fn pushdown_jpeg_read_header(
        bytes: *const u8,
        length: usize,
        header: *mut Header,
        message: *mut c_char,
    ) -> c_int;

    fn pushdown_jpeg_decode(job: *const RawJob, message: *mut c_char) -> c_int;
}

/// Reads the header of `bytes`.
///
/// # Errors
/// `Undecodable` for a broken header, and for a colour space without a name.
#[expect(unsafe_code, reason = "libjpeg is a C library")]
pub(super) fn read_header(bytes: &[u8]) -> Result<Outcome<Header>> {
    let mut header = Header::default();
    let mut message = [0; MESSAGE_BYTES];
    // SAFETY: pointer and length are those of one slice, and `message` has room for libjpeg's longest text.
    let status = unsafe {
        pushdown_jpeg_read_header(bytes.as_ptr(), bytes.len(), &raw mut header, message.as_mut_ptr())
    };
    let warned = has_warned(status, &message)?;
    if header.components == 0 {
        return Err(Error::undecodable(
            "unknown JPEG colour space: expected grey, RGB, YCbCr, CMYK or YCCK",
        ));
    }
    Ok(Outcome {
        value: header,
        warned,
    })
}

/// Decodes the region of `job` to height x width x components levels.
///
/// # Errors
/// `Undecodable` where libjpeg fails, or finds an image of another size than `job` says; those of
/// [`Cancellation::check`].
#[expect(unsafe_code, reason = "libjpeg is a C library")]
pub(super) fn decode(job: &Job<'_>) -> Result<Outcome<Vec<u8>>> {
    job.cancellation.check()?;
    let region = job.region;
    let length = region.width as usize * region.height as usize * job.components;
    let mut pixels = job
        .stop_with_fill
        .map_or_else(|| Vec::with_capacity(length), |fill| vec![fill; length]);
    let raw = RawJob {
        bytes: job.bytes.as_ptr(),
        length: job.bytes.len(),
        divisor: job.divisor,
        image_width: job.size.0,
        image_height: job.size.1,
        x: region.x,
        y: region.y,
        width: region.width,
        height: region.height,
        components: u32::try_from(job.components).unwrap_or_default(),
        max_scans: job.max_scans,
        stop_at_warning: job.stop_with_fill.is_some().into(),
        is_cancelled,
        cancellation: (&raw const job.cancellation).cast(),
        pixels: pixels.as_mut_ptr(),
    };
    let mut message = [0; MESSAGE_BYTES];
    // SAFETY: `pixels` has room for `length` bytes, and libjpeg.c writes width * height * components of them, after it
    // has compared the image's size with the one given; all pointers outlive the call.
    let status = unsafe { pushdown_jpeg_decode(&raw const raw, message.as_mut_ptr()) };
    let warned = has_warned(status, &message)?;
    // SAFETY: without an error every row is written; where a warning may stop it, `pixels` was filled before.
    unsafe { pixels.set_len(length) };
    Ok(Outcome {
        value: pixels,
        warned,
    })
}

#[expect(unsafe_code, reason = "a callback of the C library")]
extern "C" fn is_cancelled(cancellation: *const c_void) -> u32 {
    // SAFETY: `decode` passes a pointer to the cancellation of its job, which outlives the call.
    let cancellation = unsafe { *cancellation.cast::<Cancellation<'_>>() };
    cancellation.is_cancelled().into()
}

/// The statuses of `libjpeg.c`.
fn has_warned(status: c_int, message: &[c_char; MESSAGE_BYTES]) -> Result<bool> {
    match status {
        0 => Ok(false),
        1 => Ok(true),
        2 => {
            let bytes = message.map(|character| character.to_ne_bytes()[0]);
            let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
            Err(Error::undecodable(format!("libjpeg: {}", text.to_string_lossy())))
        }
        _ => Err(Cancellation::error()),
    }
}
