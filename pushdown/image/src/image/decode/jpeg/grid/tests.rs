use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;

fn grid(width: u32, height: u32, (horizontal, vertical): (u8, u8), divisor: u32) -> BlockGrid {
    BlockGrid {
        width,
        height,
        subsampling: Subsampling::new(horizontal, vertical).expect("a sampling with parts"),
        divisor,
    }
}

fn region(x: u32, y: u32, width: u32, height: u32) -> Region {
    Region { x, y, width, height }
}

#[test]
fn a_crop_has_the_blocks_around_a_region_and_its_neighbours() {
    let crop = |sampling, divisor, wanted| grid(500, 375, sampling, divisor).crop(wanted);
    assert_eq!(crop((1, 1), 1, region(8, 16, 8, 8)), region(8, 16, 8, 8), "4:4:4");
    assert_eq!(crop((1, 1), 1, region(7, 16, 8, 9)), region(0, 16, 16, 16));
    assert_eq!(
        crop((2, 2), 1, region(18, 34, 28, 12)),
        region(16, 32, 32, 16),
        "4:2:0"
    );
    assert_eq!(crop((2, 2), 1, region(17, 33, 30, 14)), region(0, 16, 64, 48));
    assert_eq!(
        crop((2, 1), 1, region(18, 32, 28, 8)),
        region(16, 32, 32, 8),
        "4:2:2"
    );
    assert_eq!(
        crop((2, 2), 1, region(490, 370, 10, 5)),
        region(480, 368, 20, 7),
        "the edge"
    );
    assert_eq!(
        crop((2, 2), 2, region(10, 18, 12, 4)),
        region(16, 32, 32, 16),
        "half of each side"
    );
    assert_eq!(crop((2, 2), 1, region(0, 0, 500, 375)), region(0, 0, 500, 375));
    // 500 has 4 pixels in the last block, 2 samples of chroma.
    assert_eq!(crop((2, 2), 1, region(499, 0, 1, 1)), region(480, 0, 20, 16));
    assert_eq!(
        grid(20, 16, (2, 2), 1).crop(region(18, 0, 2, 1)),
        region(0, 0, 20, 16),
        "two samples would be repeated instead of interpolated"
    );
    assert_eq!(
        grid(64, 8, (2, 1), 4).crop(region(2, 0, 1, 1)),
        region(0, 0, 32, 8),
        "two samples again, in a block at a quarter of its side"
    );
}

#[test]
fn crops_are_whole_blocks_around_every_region() {
    let mut random = StdRng::seed_from_u64(3);
    for _ in 0..50_000 {
        let (width, height) = (random.random_range(1..400), random.random_range(1..400));
        let sampling = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4)][random.random_range(0..6)];
        let divisor = 1 << random.random_range(0..4);
        let grid = grid(width, height, sampling, divisor);
        let mut axis = |side: u32| {
            let start = random.random_range(0..side.div_ceil(divisor));
            (start, random.random_range(1..=side.div_ceil(divisor) - start))
        };
        let ((x, columns), (y, rows)) = (axis(width), axis(height));
        let wanted = region(x, y, columns, rows);
        let crop = grid.crop(wanted);
        for (start, length, side, factor, wanted_start, wanted_length) in [
            (crop.x, crop.width, width, sampling.0, x, columns),
            (crop.y, crop.height, height, sampling.1, y, rows),
        ] {
            let (end, block, factor) = (start + length, 8 * u32::from(factor), u32::from(factor));
            let message = format!("{crop:?} for {wanted:?} of {grid:?}");
            assert!(
                start % block == 0 && (end % block == 0 || end == side),
                "{message}"
            );
            assert!(end <= side && length > 0, "{message}");
            let margin = if factor == 1 { 0 } else { factor };
            let wanted_end = wanted_start + wanted_length;
            assert!(
                start == 0 || start + margin * divisor <= wanted_start * divisor,
                "{message}"
            );
            assert!(end == side || end >= (wanted_end + margin) * divisor, "{message}");
        }
        let samples = |pixels: u32| pixels.div_ceil(divisor * u32::from(sampling.0));
        assert_eq!(
            samples(crop.width) > 2,
            samples(width) > 2,
            "{crop:?} for {wanted:?} of {grid:?}"
        );
        let share = grid.share(crop);
        assert!(0.0 < share && share <= 1.0, "{share}");
        assert_eq!(grid.is_worthwhile(crop), share <= 0.9);
    }
}
