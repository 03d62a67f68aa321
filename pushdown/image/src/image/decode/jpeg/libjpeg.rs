//! Calls of libjpeg, through the functions in `libjpeg.c` and `crop.c`.

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

/// Which blocks of a file to copy into a new file.
#[derive(Debug)]
pub(super) struct CropJob<'a> {
    pub(super) bytes: &'a [u8],
    /// Width and height of the stored image.
    pub(super) size: (u32, u32),
    /// The pixels of the stored image to copy: they start at blocks of all components, and end at such blocks or at its edges.
    pub(super) region: Region,
    /// Whether nothing below the region is read. Requires a file of one scan.
    pub(super) stop_below: bool,
    pub(super) max_scans: u32,
    /// Maximum length of the new file.
    pub(super) max_bytes: usize,
    pub(super) cancellation: Cancellation<'a>,
}

/// `struct pushdown_jpeg_bounds`.
#[repr(C)]
struct RawBounds {
    max_scans: u32,
    stop_at_warning: u32,
    is_cancelled: extern "C" fn(*const c_void) -> u32,
    cancellation: *const c_void,
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
    bounds: RawBounds,
    pixels: *mut u8,
}

/// `struct pushdown_jpeg_crop_job`.
#[repr(C)]
struct RawCropJob {
    bytes: *const u8,
    length: usize,
    image_width: u32,
    image_height: u32,
    x: u32,
    y: u32,
    width: u32,
    height: u32,
    stop_below: u32,
    bounds: RawBounds,
    output: *mut u8,
    capacity: usize,
}

#[expect(unsafe_code, reason = "declares the functions of libjpeg.c and crop.c")]
unsafe extern "C" {
    fn pushdown_jpeg_read_header(
        bytes: *const u8,
        length: usize,
        header: *mut Header,
        message: *mut c_char,
    ) -> c_int;

    fn pushdown_jpeg_decode(job: *const RawJob, message: *mut c_char) -> c_int;

    fn pushdown_jpeg_crop(job: *const RawCropJob, length: *mut usize, message: *mut c_char) -> c_int;
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
        bounds: RawBounds::new(job.max_scans, job.stop_with_fill.is_some(), &job.cancellation),
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

/// A file of only the blocks of `job`; `None` if libjpeg fails or warns, or if the file would be too long.
///
/// # Errors
/// Those of [`Cancellation::check`].
#[expect(unsafe_code, reason = "libjpeg is a C library")]
pub(super) fn crop(job: &CropJob<'_>) -> Result<Option<Vec<u8>>> {
    let region = job.region;
    let mut output = Vec::with_capacity(job.max_bytes);
    let raw = RawCropJob {
        bytes: job.bytes.as_ptr(),
        length: job.bytes.len(),
        image_width: job.size.0,
        image_height: job.size.1,
        x: region.x,
        y: region.y,
        width: region.width,
        height: region.height,
        stop_below: job.stop_below.into(),
        bounds: RawBounds::new(job.max_scans, true, &job.cancellation),
        output: output.as_mut_ptr(),
        capacity: job.max_bytes,
    };
    let mut message = [0; MESSAGE_BYTES];
    let mut length = 0;
    // SAFETY: `output` has room for `capacity` bytes; all pointers outlive the call.
    let status = unsafe { pushdown_jpeg_crop(&raw const raw, &raw mut length, message.as_mut_ptr()) };
    match has_warned(status, &message) {
        // SAFETY: without an error or a warning, `length` bytes are written.
        Ok(false) => unsafe { output.set_len(length) },
        Err(error) if error == Cancellation::error() => return Err(error),
        Ok(true) | Err(_) => return Ok(None),
    }
    output.shrink_to_fit();
    Ok(Some(output))
}

impl RawBounds {
    /// `cancellation` has to outlive the call.
    const fn new(max_scans: u32, stop_at_warning: bool, cancellation: &Cancellation<'_>) -> Self {
        Self {
            max_scans,
            stop_at_warning: stop_at_warning as u32,
            is_cancelled,
            cancellation: std::ptr::from_ref(cancellation).cast(),
        }
    }
}

#[expect(unsafe_code, reason = "a callback of the C library")]
extern "C" fn is_cancelled(cancellation: *const c_void) -> u32 {
    // SAFETY: each call passes a pointer to the cancellation of its job, which outlives the call.
    let cancellation = unsafe { *cancellation.cast::<Cancellation<'_>>() };
    cancellation.is_cancelled().into()
}

/// The statuses of `call.h`.
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
