use super::{
    super::statistics::{kolmogorov_smirnov, torchvision},
    *,
};
use pushdown::Pipeline;

use crate::parse_step;

fn step(arguments: &str) -> RandomResizedCrop {
    parse_step(&format!("random_resized_crop({arguments})"))
}

fn draws(sample: u32) -> Draws {
    Draws::new(11, 3, format!("photos/{sample}.jpg").as_bytes(), 0)
}

/// `(x, y, width, height)` of a drawn region.
fn region(step: &RandomResizedCrop, width: u32, height: u32, sample: u32) -> (u32, u32, u32, u32) {
    let region = step.draw_region(width, height, draws(sample));
    (region.x, region.y, region.width, region.height)
}

/// Compares 10,000 regions of an image of 500 x 375 with `RandomResizedCrop.get_params`.
#[test]
fn regions_have_torchvisions_distribution() {
    type Measure = fn(&[f64; 4]) -> f64;

    let step = step("224");
    let ours: Vec<[f64; 4]> = (0..10_000)
        .map(|sample| {
            let (x, y, width, height) = region(&step, 500, 375, sample);
            [y, x, height, width].map(f64::from)
        })
        .collect();
    let theirs = torchvision::<4>("random_resized_crop");
    assert_eq!(theirs.len(), ours.len());
    let measures: [(&str, Measure); 7] = [
        ("top", |region| region[0]),
        ("left", |region| region[1]),
        ("height", |region| region[2]),
        ("width", |region| region[3]),
        ("area", |region| region[2] * region[3]),
        ("ratio", |region| region[3] / region[2]),
        ("right", |region| region[1] + region[3]),
    ];
    for (name, measure) in measures {
        let sample = |regions: &[[f64; 4]]| regions.iter().map(measure).collect::<Vec<_>>();
        let p = kolmogorov_smirnov(&sample(&ours), &sample(&theirs));
        assert!(p > 0.001, "{name}: p = {p}");
    }
}

#[test]
fn regions_are_within_the_image() {
    let steps = [
        "8",
        "8, scale=[0.9, 1.5]",
        "8, ratio=[0.01, 100]",
        "8, scale=[1e-9, 1e-9]",
        "8, scale=[1, 1e300]",
    ]
    .map(step);
    for (width, height) in [(1, 1), (1, 500), (500, 1), (2, 3), (640, 480), (65_535, 7)] {
        for step in &steps {
            for sample in 0..200 {
                let (x, y, w, h) = region(step, width, height, sample);
                assert!(
                    w >= 1 && h >= 1 && x + w <= width && y + h <= height,
                    "{x} {y} {w} {h} of {width} x {height}"
                );
            }
        }
    }
}

/// torchvision's fallback after ten failed attempts.
#[test]
fn the_fallback_is_the_largest_central_region() {
    let always_too_large = step("8, scale=[2, 3]");
    let fallback = |width, height| region(&always_too_large, width, height, 0);
    assert_eq!(fallback(400, 300), (0, 0, 400, 300), "within the ratios");
    assert_eq!(fallback(300, 1000), (0, 300, 300, 400), "too high: width / (3/4)");
    assert_eq!(fallback(1000, 300), (300, 0, 400, 300), "too wide: height * 4/3");
    assert_eq!(fallback(1, 1000), (0, 499, 1, 1));
}

/// A change of these values changes the draws of all recorded epochs: raise the version of the family with it.
#[test]
fn golden_regions() {
    let step = step("224");
    insta::assert_debug_snapshot!(
        (0..6)
            .map(|sample| region(&step, 500, 375, sample))
            .collect::<Vec<_>>()
    );
}

/// The filters of `resize` apply, with antialiasing.
#[test]
fn the_region_is_resized_like_resize() {
    let pixels: Vec<u8> = (0..40 * 40 * 3_u32)
        .map(|index| u8::try_from(index * 7919 % 251).unwrap_or(0))
        .collect();
    let image = Image::new(40, 40, pixels).expect("sizes agree");
    for filter in ["bilinear", "bicubic", "lanczos", "nearest"] {
        let whole_image =
            format!("decode | random_resized_crop(7, scale=[1, 1], ratio=[1, 1], filter={filter})");
        let run = |text: &str| {
            let context = pushdown_core::Context::new(b"id").with_randomness(0, 0);
            Pipeline::parse(text).expect(text).run(
                1..2,
                pushdown_core::Sample::Image(image.clone()),
                &context,
            )
        };
        assert_eq!(
            run(&whole_image),
            run(&format!("decode | resize(7, 7, filter={filter})")),
            "{filter}"
        );
    }
}
