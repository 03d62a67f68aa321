//! Bilinear and bicubic without antialiasing, as `torch.nn.functional.interpolate(align_corners=False)`.
//!
//! PyTorch computes in floats, so this module does not round between the passes. It uses plain arithmetic in a fixed order, for
//! the same result on every host.

use super::Filter;
use pushdown_core::Image;

/// The four source indices and weights of one output index.
struct Taps {
    indices: [usize; 4],
    weights: [f32; 4],
}

/// Resizes `image` to `width` x `height`. Pixels outside the image equal its border.
pub(crate) fn interpolate(image: &Image, width: u32, height: u32, filter: Filter) -> Image {
    let columns = taps(image.width(), width, filter);
    let rows = taps(image.height(), height, filter);
    let mut pixels = Vec::with_capacity(width as usize * height as usize * 3);
    // A ring by source index, with the four resized rows that an output row reads.
    let mut ring = [const { Vec::new() }; 4];
    let mut ring_indices = [usize::MAX; 4];
    for row in &rows {
        for index in row.indices {
            if ring_indices[index % 4] != index {
                ring_indices[index % 4] = index;
                let source = &image.pixels()[index * image.stride()..][..image.stride()];
                resize_row(source, &columns, &mut ring[index % 4]);
            }
        }
        let lines = row.indices.map(|index| ring[index % 4].as_slice());
        for column in 0..width as usize * 3 {
            pixels.push(to_u8(weighted_sum(lines.map(|line| line[column]), row.weights)));
        }
    }
    Image::from_parts(width, height, pixels)
}

fn resize_row(source: &[u8], columns: &[Taps], target: &mut Vec<f32>) {
    target.clear();
    for taps in columns {
        for channel in 0..3 {
            let values = taps.indices.map(|index| f32::from(source[index * 3 + channel]));
            target.push(weighted_sum(values, taps.weights));
        }
    }
}

fn weighted_sum([a, b, c, d]: [f32; 4], [weight_a, weight_b, weight_c, weight_d]: [f32; 4]) -> f32 {
    a * weight_a + b * weight_b + c * weight_c + d * weight_d
}

/// The taps of each of `target` outputs over `source` inputs.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to the indices of the source"
)]
fn taps(source: u32, target: u32, filter: Filter) -> Vec<Taps> {
    let scale = f64::from(source) / f64::from(target);
    let last = f64::from(source - 1);
    (0..target)
        .map(|output| {
            let center = scale * (f64::from(output) + 0.5) - 0.5;
            let (first, offset) = (center.floor(), center - center.floor());
            Taps {
                indices: [-1.0, 0.0, 1.0, 2.0].map(|tap| (first + tap).clamp(0.0, last) as usize),
                weights: [offset + 1.0, offset, 1.0 - offset, 2.0 - offset]
                    .map(|distance| kernel(filter, distance) as f32),
            }
        })
        .collect()
}

/// The triangle, or Keys' cubic convolution with a = -3/4 (IEEE Trans. ASSP 29(6), 1981), for distances from 0 to 2.
fn kernel(filter: Filter, x: f64) -> f64 {
    const A: f64 = -0.75;
    match filter {
        Filter::Bicubic if x <= 1.0 => ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0,
        Filter::Bicubic => ((x - 5.0) * x + 8.0) * x * A - 4.0 * A,
        _ => (1.0 - x).max(0.0),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates"
)]
fn to_u8(value: f32) -> u8 {
    value.round_ties_even() as u8
}
