use super::{
    super::statistics::{kolmogorov_smirnov, torchvision},
    *,
};
use crate::{Pipeline, Step};

fn step(arguments: &str) -> RandomResizedCrop {
    match Pipeline::parse(&format!("decode | random_resized_crop({arguments})"))
        .expect(arguments)
        .steps()
    {
        [_, Step::RandomResizedCrop(step)] => step.clone(),
        other => panic!("{other:?}"),
    }
}

fn draws(sample: u32) -> Draws {
    Draws::new(11, 3, format!("photos/{sample}.jpg").as_bytes(), 0)
}

/// 10,000 rectangles against `RandomResizedCrop.get_params` on an image of 500 x 375.
#[test]
fn rectangles_are_distributed_as_torchvisions() {
    type Measure = fn(&[f64; 4]) -> f64;

    let step = step("224");
    let ours: Vec<[f64; 4]> = (0..10_000)
        .map(|sample| {
            let (x, y, width, height) = step.rectangle(500, 375, draws(sample));
            [y, x, height, width].map(f64::from)
        })
        .collect();
    let theirs = torchvision::<4>("random_resized_crop");
    assert_eq!(theirs.len(), ours.len());
    let measures: [(&str, Measure); 7] = [
        ("top", |rectangle| rectangle[0]),
        ("left", |rectangle| rectangle[1]),
        ("height", |rectangle| rectangle[2]),
        ("width", |rectangle| rectangle[3]),
        ("area", |rectangle| rectangle[2] * rectangle[3]),
        ("ratio", |rectangle| rectangle[3] / rectangle[2]),
        ("right", |rectangle| rectangle[1] + rectangle[3]),
    ];
    for (name, measure) in measures {
        let sample = |rectangles: &[[f64; 4]]| rectangles.iter().map(measure).collect::<Vec<_>>();
        let p = kolmogorov_smirnov(&sample(&ours), &sample(&theirs));
        assert!(p > 0.001, "{name}: p = {p}");
    }
}

#[test]
fn rectangles_lie_within_the_image() {
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
                let (x, y, w, h) = step.rectangle(width, height, draws(sample));
                assert!(
                    w >= 1 && h >= 1 && x + w <= width && y + h <= height,
                    "{x} {y} {w} {h} of {width} x {height}"
                );
            }
        }
    }
}

/// What torchvision takes when ten attempts have failed.
#[test]
fn fallbacks_are_the_largest_central_parts() {
    let never = step("8, scale=[2, 3]");
    let fallback = |width, height| never.rectangle(width, height, draws(0));
    assert_eq!(fallback(400, 300), (0, 0, 400, 300), "within the ratios");
    assert_eq!(fallback(300, 1000), (0, 300, 300, 400), "too high: width / (3/4)");
    assert_eq!(fallback(1000, 300), (300, 0, 400, 300), "too wide: height * 4/3");
    assert_eq!(fallback(1, 1000), (0, 499, 1, 1));
}

/// Changing these values changes every augmented epoch that anyone has recorded: raise ENGINE.
#[test]
fn golden_rectangles() {
    let step = step("224");
    insta::assert_debug_snapshot!(
        (0..6)
            .map(|sample| step.rectangle(500, 375, draws(sample)))
            .collect::<Vec<_>>()
    );
}

/// Filtered as `resize` filters, antialiasing included.
#[test]
fn the_part_is_resized_as_resize_does() {
    let pixels: Vec<u8> = (0..40 * 40 * 3_u32)
        .map(|place| u8::try_from(place * 7919 % 251).unwrap_or(0))
        .collect();
    let image = Image::new(40, 40, pixels).expect("sizes agree");
    for filter in ["bilinear", "bicubic", "lanczos", "nearest"] {
        let whole = format!("decode | random_resized_crop(7, scale=[1, 1], ratio=[1, 1], filter={filter})");
        let run = |text: &str| {
            let context = crate::Context::new(b"id").with_randomness(0, 0);
            Pipeline::parse(text)
                .expect(text)
                .run(1..2, crate::Sample::Image(image.clone()), &context)
        };
        assert_eq!(
            run(&whole),
            run(&format!("decode | resize(7, 7, filter={filter})")),
            "{filter}"
        );
    }
}
