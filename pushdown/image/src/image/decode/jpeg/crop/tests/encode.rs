//! JPEGs of every sampling and coding that TurboJPEG writes.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

use rand::{Rng as _, rngs::StdRng};
use turbojpeg::raw;

/// One of TurboJPEG's parameters, and its value.
pub(super) type Parameter = (c_uint, c_int);

pub(super) const PROGRESSIVE: Parameter = (raw::TJPARAM_TJPARAM_PROGRESSIVE, 1);
pub(super) const ARITHMETIC: Parameter = (raw::TJPARAM_TJPARAM_ARITHMETIC, 1);
pub(super) const LOSSLESS: Parameter = (raw::TJPARAM_TJPARAM_LOSSLESS, 1);
pub(super) const OPTIMIZE: Parameter = (raw::TJPARAM_TJPARAM_OPTIMIZE, 1);
pub(super) const RGB: Parameter = colour(raw::TJCS_TJCS_RGB);
pub(super) const CMYK: Parameter = colour(raw::TJCS_TJCS_CMYK);
pub(super) const YCCK: Parameter = colour(raw::TJCS_TJCS_YCCK);

const fn colour(space: raw::TJCS) -> Parameter {
    (raw::TJPARAM_TJPARAM_COLORSPACE, space.cast_signed())
}

/// Number of blocks between restart markers.
pub(super) const fn restart(blocks: c_int) -> Parameter {
    (raw::TJPARAM_TJPARAM_RESTARTBLOCKS, blocks)
}

/// The samplings that have parts, grey included.
pub(super) const SAMPLINGS: [raw::TJSAMP; 7] = [
    raw::TJSAMP_TJSAMP_444,
    raw::TJSAMP_TJSAMP_422,
    raw::TJSAMP_TJSAMP_420,
    raw::TJSAMP_TJSAMP_440,
    raw::TJSAMP_TJSAMP_411,
    raw::TJSAMP_TJSAMP_441,
    raw::TJSAMP_TJSAMP_GRAY,
];

/// Parameters for a sampling and a quality.
pub(super) fn parameters(sampling: raw::TJSAMP, quality: c_int) -> Vec<Parameter> {
    vec![
        (raw::TJPARAM_TJPARAM_SUBSAMP, sampling),
        (raw::TJPARAM_TJPARAM_QUALITY, quality),
    ]
}

/// Random parameters of a file that has parts.
pub(super) fn random_parameters(random: &mut StdRng) -> Vec<Parameter> {
    let mut parameters = parameters(SAMPLINGS[random.random_range(0..7)], random.random_range(5..=100));
    match random.random_range(0..6) {
        0 => parameters.push(PROGRESSIVE),
        1 => parameters.push(OPTIMIZE),
        2 => parameters.push(RGB),
        _ => {}
    }
    if random.random_range(0..3) == 0 {
        parameters.push(restart(random.random_range(1..12)));
    }
    parameters
}

/// Pixels between which every difference shows: noise.
fn picture(width: u32, height: u32, channels: u32, random: &mut StdRng) -> Vec<u8> {
    let mut levels = vec![0; (width * height * channels) as usize];
    random.fill(&mut levels[..]);
    levels
}

/// A noisy picture as JPEG.
pub(super) fn jpeg(width: u32, height: u32, parameters: &[Parameter], random: &mut StdRng) -> Vec<u8> {
    let is_cmyk = parameters
        .iter()
        .any(|parameter| [CMYK, YCCK].contains(parameter));
    if is_cmyk {
        let pixels = picture(width, height, 4, random);
        compressed(&pixels, (width, height), raw::TJPF_TJPF_CMYK, parameters)
    } else {
        rgb(&picture(width, height, 3, random), (width, height), parameters)
    }
}

/// Pixels as JPEG.
pub(super) fn rgb(pixels: &[u8], size: (u32, u32), parameters: &[Parameter]) -> Vec<u8> {
    compressed(pixels, size, raw::TJPF_TJPF_RGB, parameters)
}

#[expect(unsafe_code, reason = "the safe wrapper has no restart intervals")]
fn compressed(
    pixels: &[u8],
    (width, height): (u32, u32),
    format: raw::TJPF,
    parameters: &[Parameter],
) -> Vec<u8> {
    let side = |side: u32| c_int::try_from(side).expect("a small image");
    // SAFETY: `pixels` has `height` rows of `width` pixels in `format`; the buffer is TurboJPEG's own, and copied before it is
    // freed.
    unsafe {
        let handle = raw::tj3Init(raw::TJINIT_TJINIT_COMPRESS.cast_signed());
        for (name, value) in parameters {
            assert_eq!(
                raw::tj3Set(handle, name.cast_signed(), *value),
                0,
                "parameter {name}"
            );
        }
        let (mut buffer, mut length) = (ptr::null_mut(), 0);
        let status = raw::tj3Compress8(
            handle,
            pixels.as_ptr(),
            side(width),
            0,
            side(height),
            format,
            &raw mut buffer,
            &raw mut length,
        );
        assert_eq!(status, 0, "{parameters:?}");
        let length = usize::try_from(length).expect("a small file");
        let file = std::slice::from_raw_parts(buffer, length).to_vec();
        raw::tj3Free(buffer.cast());
        raw::tj3Destroy(handle);
        file
    }
}
