use super::*;
use pushdown::{Pipeline, step::Step};
use pushdown_core::{Context, Sample};

fn image(width: u32, height: u32, level: impl Fn(u32, u32) -> u32) -> Image {
    let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let pixels = pixels
        .flat_map(|(x, y)| [u8::try_from(level(x, y) % 256).unwrap_or(0); 3])
        .collect();
    Image::new(width, height, pixels).expect("sizes agree")
}

fn run(text: &str, image: &Image) -> Vec<u8> {
    let pipeline = Pipeline::parse(&format!("decode | {text}")).expect(text);
    match pipeline.run(
        1..pipeline.len(),
        Sample::Image(image.clone()),
        &Context::new(b""),
    ) {
        Ok(Sample::Image(image)) => image.pixels().iter().step_by(3).copied().collect(),
        other => panic!("expected an image, found {other:?}"),
    }
}

fn size_of(text: &str, width: u32, height: u32) -> (u32, u32) {
    match &Pipeline::parse(&format!("decode | {text}")).expect(text).steps()[1] {
        Step::Resize(resize) => resize.size_of(width, height),
        other => panic!("expected a resize, found {other}"),
    }
}

/// `int(size * long / short)`, as torchvision computes it.
#[test]
fn sizes_equal_those_of_torchvision() {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what Python's `int` does"
    )]
    let python = |size: u32, long: u32, short: u32| (f64::from(size * long) / f64::from(short)) as u32;
    for (width, height) in [
        (500, 375),
        (375, 500),
        (640, 427),
        (1, 1000),
        (333, 1000),
        (97, 89),
        (4000, 3001),
    ] {
        for side in [1, 2, 7, 224, 256, 1000] {
            let (short, long) = (width.min(height), width.max(height));
            let other = python(side, long, short);
            let expected = if width <= height {
                (side, other)
            } else {
                (other, side)
            };
            assert_eq!(
                size_of(&format!("resize(short={side})"), width, height),
                expected,
                "{width} x {height}"
            );
        }
    }
    assert_eq!(size_of("resize(short=256)", 500, 375), (341, 256));
    assert_eq!(size_of("resize(long=256)", 500, 375), (256, 192));
    assert_eq!(size_of("resize(long=10)", 1, 1000), (1, 10), "no side is 0");
    assert_eq!(size_of("resize(short=10)", 30, 30), (10, 10));
    assert_eq!(size_of("resize(7, 9)", 30, 30), (7, 9));
    assert_eq!(
        size_of("resize(short=65535)", 1, 100_000_000),
        (65_535, u32::MAX),
        "saturated, so that the limits refuse it"
    );
}

#[test]
fn small_images_have_known_values() {
    let ramp = image(8, 1, |x, _| x * 30);
    assert_eq!(
        run("resize(4, 1)", &ramp),
        [21, 75, 135, 189],
        "the triangle is as wide as four pixels"
    );
    assert_eq!(
        run("resize(4, 1, antialias=false)", &ramp),
        [15, 75, 135, 195],
        "the mean of two neighbours"
    );
    assert_eq!(run("resize(4, 1, filter=nearest)", &ramp), [30, 90, 150, 210]);
    assert_eq!(run("resize(8, 1)", &ramp), run("crop(0, 0, 8, 1)", &ramp));
    let flat = image(31, 17, |_, _| 143);
    for filter in ["bilinear", "bicubic", "lanczos", "nearest"] {
        for size in ["5, 3", "64, 64", "31, 5", "1, 1"] {
            let resized = run(&format!("resize({size}, filter={filter})"), &flat);
            assert!(
                resized.iter().all(|level| *level == 143),
                "{filter} keeps a flat image flat"
            );
        }
    }
    for filter in ["bilinear", "bicubic"] {
        let resized = run(&format!("resize(50, 9, filter={filter}, antialias=false)"), &flat);
        assert!(
            resized.iter().all(|level| *level == 143),
            "{filter} without antialiasing"
        );
    }
}

/// Offsets are half the difference in torchvision's rounding: half to even when cropping, toward 0 when padding.
#[test]
fn center_crop_rounds_like_torchvision() {
    let offset = |input: u32, output: u32| match &Pipeline::parse(&format!("decode | center_crop({output})"))
        .expect("a pipeline")
        .steps()[1]
    {
        Step::CenterCrop(crop) => crop.rectangle(input, input).x,
        other => panic!("expected a center_crop, found {other}"),
    };
    let cropping = [
        (10, 10, 0),
        (11, 10, 0),
        (12, 10, 1),
        (13, 10, 2),
        (14, 10, 2),
        (15, 10, 2),
        (17, 10, 4),
        (341, 224, 58),
    ];
    let padding = [
        (9, 10, 0),
        (8, 10, -1),
        (7, 10, -1),
        (6, 10, -2),
        (5, 10, -2),
        (1, 224, -111),
    ];
    for (input, output, expected) in cropping.into_iter().chain(padding) {
        assert_eq!(offset(input, output), expected, "{output} of {input}");
    }
}

#[test]
fn crops_pad_with_zeros() {
    let small = image(2, 2, |x, y| 10 + x + 2 * y);
    assert_eq!(
        run("center_crop(4)", &small),
        [0, 0, 0, 0, 0, 10, 11, 0, 0, 12, 13, 0, 0, 0, 0, 0]
    );
    assert_eq!(
        run("center_crop(3, 2)", &small),
        [10, 11, 0, 12, 13, 0],
        "the odd column goes to the right"
    );
    assert_eq!(run("crop(1, 1, 2, 2)", &small), [13, 0, 0, 0]);
    assert_eq!(run("crop(5, 0, 2, 1)", &small), [0, 0], "beyond the image");
    assert_eq!(run("crop(4294967295, 4294967295, 1, 1)", &small), [0]);
    assert_eq!(run("crop(0, 1, 2, 1)", &small), [12, 13]);
}

/// Values that overshoot are clamped between the passes, so that the order of the passes matters. Pillow resizes columns first,
/// unless the image loses more than twice as many rows as columns.
#[test]
fn the_order_of_passes_equals_pillows() {
    let steep = image(6, 6, |x, y| if x < 2 || y < 3 { 255 } else { x * 9 + y });
    for filter in ["bicubic", "lanczos"] {
        let in_two_passes = |first: &str, size: &str| {
            run(
                &format!("resize({first}, filter={filter}) | resize({size}, filter={filter})"),
                &steep,
            )
        };
        let more_rows = run(&format!("resize(9, 8, filter={filter})"), &steep);
        assert_eq!(more_rows, in_two_passes("9, 6", "9, 8"), "{filter}");
        assert_ne!(
            more_rows,
            in_two_passes("6, 8", "9, 8"),
            "{filter}: the order matters"
        );
        let fewer_rows = run(&format!("resize(9, 4, filter={filter})"), &steep);
        assert_eq!(fewer_rows, in_two_passes("6, 4", "9, 4"), "{filter}");
    }
}

/// A result never contains data of an earlier image.
#[test]
fn buffers_do_not_leak() {
    let noise = image(300, 200, |x, y| (x * 7919 + y * 104_729) ^ (x * y));
    let dark = image(200, 300, |_, _| 0);
    let text = "resize(90, 80, filter=lanczos) | crop(40, 30, 20, 20)";
    let before = run(text, &dark);
    let _noise = run(text, &noise);
    assert_eq!(run(text, &dark), before);
    assert!(before.iter().all(|level| *level == 0));
}
