//! CIE L*a*b* to sRGB, as Little CMS converts 8 bits for Pillow: a table of 33 nodes per axis with tetrahedral interpolation
//! (Sakamoto's method, `TetrahedralInterp16`).
//!
//! The exact conversion would differ by up to 45 levels between the nodes, for colours outside sRGB.

use std::sync::LazyLock;

/// Nodes along each axis.
const NODES_PER_AXIS: u16 = 33;

/// The RGB values of the nodes, in 16 bits. L is the outermost index, then a, then b.
static NODES: LazyLock<Vec<[u16; 3]>> = LazyLock::new(|| {
    let axis =
        || (0..NODES_PER_AXIS).map(|step| to_u16(f64::from(step) * 65535.0 / f64::from(NODES_PER_AXIS - 1)));
    let all = axis().flat_map(|l| axis().flat_map(move |a| axis().map(move |b| [l, a, b])));
    let to_rgb = xyz_to_srgb();
    all.map(|lab| node(lab, &to_rgb)).collect()
});

/// The white point of the profile connection space: D50, as rounded by ICC.
const D50: [f64; 3] = [0.9642, 1.0, 0.8249];

type Matrix = [[f64; 3]; 3];

/// Converts a pixel of a TIFF. L is unsigned, a and b are signed.
pub(super) fn to_rgb([l, a, b]: [u8; 3]) -> [u8; 3] {
    // As Little CMS does, converts 8 bits to ICC's 16 bits of version 2, and those to version 4.
    let wide = [l, a ^ 0x80, b ^ 0x80].map(|level| {
        let level = u32::from(level) * 257;
        ((level << 8 | level) >> 8).min(0xffff)
    });
    // Positions between nodes, with 16 bits of fraction.
    let fixed = wide.map(|level| {
        let position = level * u32::from(NODES_PER_AXIS - 1);
        position + (position + 0x7fff) / 0xffff
    });
    let [l0, a0, b0] = fixed.map(|position| (position >> 16) as usize);
    let fraction = fixed.map(|position| i64::from(position & 0xffff));
    let node_at = |l: usize, a: usize, b: usize| {
        let nodes = usize::from(NODES_PER_AXIS);
        let [l, a, b] = [l0 + l, a0 + a, b0 + b].map(|index| index.min(nodes - 1));
        NODES[(l * nodes + a) * nodes + b].map(i64::from)
    };
    // Walks from the lower to the upper node, along the axes in descending order of their fractions.
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|axis| std::cmp::Reverse(fraction[*axis]));
    let mut corner = [0; 3];
    let start = node_at(0, 0, 0);
    let mut before = start;
    let mut sum = [0x8001; 3];
    for axis in axes {
        corner[axis] = 1;
        let next = node_at(corner[0], corner[1], corner[2]);
        sum =
            std::array::from_fn(|channel| sum[channel] + (next[channel] - before[channel]) * fraction[axis]);
        before = next;
    }
    std::array::from_fn(|channel| {
        let wide = start[channel] + ((sum[channel] + (sum[channel] >> 16)) >> 16);
        // Converts to 8 bits, as `FROM_16_TO_8`.
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
    multiply_vector(to_rgb, xyz).map(|light| to_u16(gamma_encoded(light) * 65535.0))
}

/// The transfer function of sRGB (IEC 61966-2-1), as in its ICC profile.
fn gamma_encoded(light: f64) -> f64 {
    let edge = libm::pow((0.040_45 + 0.055) / 1.055, 2.4);
    if light >= edge {
        (libm::pow(light, 1.0 / 2.4) - 0.055 / 1.055) * 1.055
    } else {
        light * 12.92
    }
}

/// The nearest integer from 0 to 65535.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates"
)]
fn to_u16(value: f64) -> u16 {
    (value + 0.5).floor() as u16
}

/// The matrix from XYZ under D50 to linear sRGB, whose primaries are under D65. Adapted by Bradford's method.
fn xyz_to_srgb() -> Matrix {
    const BRADFORD: Matrix = [
        [0.8951, 0.2664, -0.1614],
        [-0.7502, 1.7135, 0.0367],
        [0.0389, -0.0685, 1.0296],
    ];
    // The columns are red, green and blue.
    const PRIMARIES: Matrix = [[0.64, 0.30, 0.15], [0.33, 0.60, 0.06], [0.03, 0.10, 0.79]];
    let d65 = [0.3127 / 0.3290, 1.0, (1.0 - 0.3127 - 0.3290) / 0.3290];
    let parts = multiply_vector(&inverse(&PRIMARIES), d65);
    let primaries = PRIMARIES.map(|row| std::array::from_fn(|column| row[column] * parts[column]));
    let (from, to) = (multiply_vector(&BRADFORD, d65), multiply_vector(&BRADFORD, D50));
    let cones: Matrix = std::array::from_fn(|row| BRADFORD[row].map(|value| value * to[row] / from[row]));
    let adapted = multiply(&multiply(&inverse(&BRADFORD), &cones), &primaries);
    inverse(&adapted)
}

fn multiply_vector(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2])
}

fn multiply(left: &Matrix, right: &Matrix) -> Matrix {
    left.map(|row| std::array::from_fn(|column| (0..3).map(|k| row[k] * right[k][column]).sum()))
}

fn inverse(matrix: &Matrix) -> Matrix {
    // Cyclic indices give a cofactor the right sign.
    let cofactor = |row: usize, column: usize| {
        let [r1, r2, c1, c2] = [row + 1, row + 2, column + 1, column + 2].map(|index| index % 3);
        matrix[r1][c1] * matrix[r2][c2] - matrix[r1][c2] * matrix[r2][c1]
    };
    let determinant: f64 = (0..3).map(|column| matrix[0][column] * cofactor(0, column)).sum();
    std::array::from_fn(|row| std::array::from_fn(|column| cofactor(column, row) / determinant))
}
