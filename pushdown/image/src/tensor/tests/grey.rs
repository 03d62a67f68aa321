//! Grey images, and u8 tensors as floats.

use super::{flat, run as run_steps, unit_float};
use pushdown::Pipeline;
use pushdown_core::{Context, Image, Layout, Sample};

/// Pixels and their levels by Pillow 13.0.0's `convert("L")`: full and faint colours, and values on both sides of a half.
const PILLOW_GREY: [([u8; 3], u8); 22] = [
    ([255, 0, 0], 76),
    ([0, 255, 0], 150),
    ([0, 0, 255], 29),
    ([255, 255, 0], 226),
    ([0, 255, 255], 179),
    ([255, 0, 255], 105),
    ([255, 255, 254], 255),
    ([254, 255, 255], 255),
    ([1, 0, 0], 0),
    ([2, 0, 0], 1),
    ([0, 1, 0], 1),
    ([0, 0, 1], 0),
    ([0, 0, 4], 0),
    ([0, 0, 5], 1),
    ([150, 108, 11], 109),
    ([186, 23, 249], 97),
    ([223, 171, 39], 172),
    ([65, 117, 249], 117),
    ([34, 227, 106], 155),
    ([143, 111, 49], 113),
    ([16, 58, 155], 57),
    ([192, 9, 165], 82),
];

#[test]
fn grayscale_matches_pillow() {
    let run = |pixels: &[[u8; 3]], text: &str| {
        let pipeline = Pipeline::parse(&format!("decode | {text}")).expect(text);
        let width = u32::try_from(pixels.len()).expect("a few");
        let image = Image::new(width, 1, pixels.concat()).expect("sizes agree");
        match pipeline.run(1..pipeline.len(), Sample::Image(image), &Context::new(b"")) {
            Ok(Sample::Tensor(tensor)) => tensor,
            other => panic!("expected a tensor, found {other:?}"),
        }
    };
    let greys: Vec<u8> = (0..=255).collect();
    let found = run(
        &greys.iter().map(|level| [*level; 3]).collect::<Vec<_>>(),
        "grayscale",
    );
    assert_eq!(&*found.values::<u8>(), greys, "a grey pixel keeps its level");
    assert_eq!((found.layout(), found.shape()), (Layout::Chw, &[1, 1, 256][..]));
    let colours = PILLOW_GREY.map(|(pixel, _)| pixel);
    let levels = PILLOW_GREY.map(|(_, level)| level);
    assert_eq!(&*run(&colours, "grayscale").values::<u8>(), levels);
    let scaled = levels.map(|level| unit_float(usize::from(level)));
    assert_eq!(&*run(&colours, "grayscale | to_float").values::<f32>(), scaled);
    assert_eq!(
        &*run(
            &colours,
            "grayscale | to_float | normalize(mean=0.1307, std=0.3081)"
        )
        .values::<f32>(),
        scaled.map(|value| (value - 0.1307) / 0.3081)
    );
    assert_eq!(
        run(&colours, "grayscale | cast(f32) | normalize(mean=0, std=255)"),
        run(&colours, "grayscale | to_float"),
        "to_float equals the explicit division"
    );
    let channels_last = run(&colours, "grayscale | layout(hwc) | to_float");
    assert_eq!(
        (channels_last.layout(), channels_last.shape()),
        (Layout::Hwc, &[1, colours.len(), 1][..])
    );
}

/// u8 tensors of any shape are scaled. For an image, a `to_tensor` before `to_float` makes no difference.
#[test]
fn u8_tensors_become_floats() {
    let bytes: Vec<u8> = (0..=255).collect();
    let floats: Vec<f32> = (0..256).map(unit_float).collect();
    let found = run_steps("to_float", flat(&bytes), "to_tensor").expect("bytes");
    assert_eq!(&*found.values::<f32>(), floats);
    assert_eq!((found.layout(), found.shape()), (Layout::Flat, &[256][..]));
    let image = Image::new(16, 4, (0..192).collect()).expect("sizes agree");
    let direct = |text: &str| {
        let pipeline = Pipeline::parse(&format!("decode | {text}")).expect(text);
        pipeline
            .run(
                1..pipeline.len(),
                Sample::Image(image.clone()),
                &Context::new(b""),
            )
            .expect(text)
    };
    assert_eq!(direct("to_tensor | to_float"), direct("to_float"));
    assert_eq!(
        direct("to_tensor | to_float | normalize(imagenet)"),
        direct("to_float | normalize(imagenet)"),
        "separate steps equal the fused lookup"
    );
}
