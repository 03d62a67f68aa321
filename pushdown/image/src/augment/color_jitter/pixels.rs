//! The four adjustments as in torchvision on u8 tensors: computed in f32, clamped, rounded towards zero.

/// Red, green and blue.
pub(super) type Pixel = [u8; 3];

/// Multiplies the image by `factor`.
pub(super) fn adjust_brightness(image: &mut [Pixel], factor: f64) {
    blend(image, factor, |_| [0.0; 3]);
}

/// Blends with the mean of the grey image. Factors above 1 move away from it.
pub(super) fn adjust_contrast(image: &mut [Pixel], factor: f64) {
    // The sum is of integers, so the mean does not depend on the order of summation.
    let sum: u64 = image.iter().map(|pixel| u64::from(grey(*pixel))).sum();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "a mean of 0 to 255"
    )]
    let mean = (sum as f64 / image.len().max(1) as f64) as f32;
    blend(image, factor, |_| [mean; 3]);
}

/// Blends with the grey image. Factors above 1 move away from it.
pub(super) fn adjust_saturation(image: &mut [Pixel], factor: f64) {
    blend(image, factor, |pixel| [f32::from(grey(pixel)); 3]);
}

/// Rotates the hue by `shift` turns.
pub(super) fn shift_hue(image: &mut [Pixel], shift: f64) {
    #[expect(clippy::cast_possible_truncation, reason = "torch computes in f32")]
    let shift = shift as f32;
    for pixel in image {
        let [hue, saturation, value] = to_hsv(pixel.map(|channel| f32::from(channel) / 255.0));
        let rotated = wrap_turns(hue + shift);
        // torchvision's conversion from float scales by slightly less than 256 and rounds towards zero.
        *pixel = to_rgb([rotated, saturation, value]).map(|channel| to_u8(channel * (255.0 + 1.0 - 1e-3)));
    }
}

/// ITU-R 601-2 luma, rounded as in torchvision.
fn grey([red, green, blue]: Pixel) -> u8 {
    to_u8(0.2989 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue))
}

/// `factor * pixel + (1 - factor) * other(pixel)`.
fn blend(image: &mut [Pixel], factor: f64, other: impl Fn(Pixel) -> [f32; 3]) {
    #[expect(clippy::cast_possible_truncation, reason = "torch computes in f32")]
    let (ratio, rest) = (factor as f32, (1.0 - factor) as f32);
    for pixel in image {
        let other = other(*pixel);
        *pixel =
            std::array::from_fn(|channel| to_u8(ratio * f32::from(pixel[channel]) + rest * other[channel]));
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates and rounds towards zero"
)]
fn to_u8(value: f32) -> u8 {
    value as u8
}

/// Adds or subtracts a turn to bring `turns`, from -1 to 2, into 0..=1. This avoids a call of `fmod` per pixel.
fn wrap_turns(turns: f32) -> f32 {
    if turns < 0.0 {
        turns + 1.0
    } else if turns >= 1.0 {
        turns - 1.0
    } else {
        turns
    }
}

/// Hue in turns, saturation and value in 0..1.
fn to_hsv([red, green, blue]: [f32; 3]) -> [f32; 3] {
    let max = red.max(green).max(blue);
    let min = red.min(green).min(blue);
    let spread = max - min;
    if spread == 0.0 {
        return [0.0, 0.0, max];
    }
    let [to_red, to_green, to_blue] = [red, green, blue].map(|channel| (max - channel) / spread);
    #[expect(clippy::float_cmp, reason = "one of the channels is the maximum")]
    let sector = if max == red {
        to_blue - to_green
    } else if max == green {
        2.0 + to_red - to_blue
    } else {
        4.0 + to_green - to_red
    };
    [wrap_turns(sector / 6.0 + 1.0), spread / max, max]
}

fn to_rgb([hue, saturation, value]: [f32; 3]) -> [f32; 3] {
    let sector = to_u8(hue * 6.0);
    let fraction = hue * 6.0 - f32::from(sector);
    let clamp = |channel: f32| channel.clamp(0.0, 1.0);
    let low = clamp(value * (1.0 - saturation));
    let falling = clamp(value * (1.0 - saturation * fraction));
    let rising = clamp(value * (1.0 - saturation * (1.0 - fraction)));
    match sector % 6 {
        0 => [value, rising, low],
        1 => [falling, value, low],
        2 => [low, value, rising],
        3 => [low, falling, value],
        4 => [rising, low, value],
        _ => [value, low, falling],
    }
}
