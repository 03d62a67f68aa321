//! CIE L*a*b* to sRGB, as Little CMS converts 8 bits for Pillow: by a table of 33 steps a side, interpolated in
//! tetrahedra (Sakamoto's method, `TetrahedralInterp16`).
//!
//! The exact conversion would be up to 45 levels off between the table's nodes, where a colour is outside of sRGB.

use std::sync::LazyLock;

/// Nodes along each side.
const STEPS: u16 = 33;

/// What each node gives, in 16 bits: lightness counts least often, then a, then b.
static NODES: LazyLock<Vec<[u16; 3]>> = LazyLock::new(|| {
    let side = || (0..STEPS).map(|step| whole(f64::from(step) * 65535.0 / f64::from(STEPS - 1)));
    let all = side().flat_map(|l| side().flat_map(move |a| side().map(move |b| [l, a, b])));
    let to_rgb = srgb_of_xyz();
    all.map(|lab| node(lab, &to_rgb)).collect()
});

/// White of the profile connection space: D50, as ICC rounds it.
const D50: [f64; 3] = [0.9642, 1.0, 0.8249];

type Matrix = [[f64; 3]; 3];

/// Converts a pixel of a TIFF, of which a and b are signed.
pub(super) fn to_rgb([l, a, b]: [u8; 3]) -> [u8; 3] {
    // From 0 to 255 to ICC's 16 bits, first of version 2 and then of version 4, as Little CMS does.
    let wide = [l, a ^ 0x80, b ^ 0x80].map(|level| {
        let level = u32::from(level) * 257;
        ((level << 8 | level) >> 8).min(0xffff)
    });
    // Places between nodes, in 16 bits of fraction.
    let fixed = wide.map(|level| {
        let place = level * u32::from(STEPS - 1);
        place + (place + 0x7fff) / 0xffff
    });
    let [l0, a0, b0] = fixed.map(|place| (place >> 16) as usize);
    let rest = fixed.map(|place| i64::from(place & 0xffff));
    let at = |l: usize, a: usize, b: usize| {
        let steps = usize::from(STEPS);
        let [l, a, b] = [l0 + l, a0 + a, b0 + b].map(|step| step.min(steps - 1));
        NODES[(l * steps + a) * steps + b].map(i64::from)
    };
    // From the node below to the one above, along the axes in the order of what is left on them.
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|axis| std::cmp::Reverse(rest[*axis]));
    let mut corner = [0; 3];
    let start = at(0, 0, 0);
    let mut before = start;
    let mut sum = [0x8001; 3];
    for axis in axes {
        corner[axis] = 1;
        let next = at(corner[0], corner[1], corner[2]);
        sum = std::array::from_fn(|channel| sum[channel] + (next[channel] - before[channel]) * rest[axis]);
        before = next;
    }
    std::array::from_fn(|channel| {
        let wide = start[channel] + ((sum[channel] + (sum[channel] >> 16)) >> 16);
        // To 8 bits, as `FROM_16_TO_8`.
        u8::try_from((wide * 65281 + 8_388_608) >> 24).unwrap_or_default()
    })
}

fn node([l, a, b]: [u16; 3], to_rgb: &Matrix) -> [u16; 3] {
    let lightness = f64::from(l) * 100.0 / 65535.0;
    let [a, b] = [a, b].map(|level| f64::from(level) / 257.0 - 128.0);
    let y = (lightness + 16.0) / 116.0;
    let xyz = [y + 0.002 * a, y, y - 0.005 * b];
    let xyz: [f64; 3] = std::array::from_fn(|axis| {
        let root = xyz[axis];
        let value = if root <= 24.0 / 116.0 {
            (108.0 / 841.0) * (root - 16.0 / 116.0)
        } else {
            root * root * root
        };
        value * D50[axis]
    });
    times(to_rgb, xyz).map(|light| whole(encoded(light) * 65535.0))
}

/// sRGB's curve (IEC 61966-2-1), as its ICC profile has it.
fn encoded(light: f64) -> f64 {
    let edge = libm::pow((0.040_45 + 0.055) / 1.055, 2.4);
    if light >= edge {
        (libm::pow(light, 1.0 / 2.4) - 0.055 / 1.055) * 1.055
    } else {
        light * 12.92
    }
}

/// The nearest of 0 to 65535.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast that saturates"
)]
fn whole(value: f64) -> u16 {
    (value + 0.5).floor() as u16
}

/// From XYZ under D50 to linear sRGB: its primaries under D65, adapted by Bradford's method.
fn srgb_of_xyz() -> Matrix {
    const BRADFORD: Matrix = [
        [0.8951, 0.2664, -0.1614],
        [-0.7502, 1.7135, 0.0367],
        [0.0389, -0.0685, 1.0296],
    ];
    // Red, green and blue stand in columns.
    const PRIMARIES: Matrix = [[0.64, 0.30, 0.15], [0.33, 0.60, 0.06], [0.03, 0.10, 0.79]];
    let d65 = [0.3127 / 0.3290, 1.0, (1.0 - 0.3127 - 0.3290) / 0.3290];
    let parts = times(&inverse(&PRIMARIES), d65);
    let primaries = PRIMARIES.map(|row| std::array::from_fn(|column| row[column] * parts[column]));
    let (from, to) = (times(&BRADFORD, d65), times(&BRADFORD, D50));
    let cones: Matrix = std::array::from_fn(|row| BRADFORD[row].map(|value| value * to[row] / from[row]));
    let adapted = product(&product(&inverse(&BRADFORD), &cones), &primaries);
    inverse(&adapted)
}

fn times(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2])
}

fn product(left: &Matrix, right: &Matrix) -> Matrix {
    left.map(|row| std::array::from_fn(|column| (0..3).map(|k| row[k] * right[k][column]).sum()))
}

fn inverse(matrix: &Matrix) -> Matrix {
    // The cofactor of an element, by cyclic neighbours, has its sign.
    let cofactor = |row: usize, column: usize| {
        let [r1, r2, c1, c2] = [row + 1, row + 2, column + 1, column + 2].map(|index| index % 3);
        matrix[r1][c1] * matrix[r2][c2] - matrix[r1][c2] * matrix[r2][c1]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * cofactor(0, column)).sum();
    std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant))
}
