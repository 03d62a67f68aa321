//! EfficientNet-Lite0 against the implementation that its weights were published with, on PyTorch
//! (`scripts/golden_cases/models.py`). The model that runs here was put together without it, so that its paddings, its
//! layers and their order are held to something that does not come of the same file.

use std::{fs, ops::RangeInclusive, path::Path};

use pushdown::{Context, Pipeline, Sample};
use safetensors::SafeTensors;

use super::{FOLDER, distance, floats, noise_image};

/// PyTorch adds up in another order, and folds no batch norm into a convolution.
const TOLERANCE: f32 = 1e-5;
const CAT: &str = "jpeg_large.jpg";
const ASTRONAUT: &str = "jpeg_large_progressive.jpg";
/// Breeds of cats among ImageNet's classes.
const CATS: RangeInclusive<usize> = 281..=285;

/// What the model makes of an image, up to a tensor, prepared as its card has it; a photo is framed first.
fn values(source: &str, until: &str) -> Vec<f32> {
    let (framing, first, sample) = if source == "noise" {
        ("", 1, noise_image())
    } else {
        let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
        let object = fs::read(photos.join(source)).unwrap();
        let framing = "resize(short=256, filter=bicubic) | center_crop(224) |";
        (framing, 0, Sample::Bytes(object.into()))
    };
    let text = format!(
        "decode | {framing} to_float | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until={until})"
    );
    let pipeline = Pipeline::parse_with(&text, &*FOLDER).unwrap();
    let steps = first..pipeline.len();
    match pipeline.run(steps, sample, &Context::new(b"")).unwrap() {
        Sample::Tensor(tensor) => floats(&tensor),
        other => panic!("expected a tensor, found {other:?}"),
    }
}

#[test]
fn features_and_logits_are_those_of_the_published_model() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/efficientnet_lite0.safetensors");
    let file = fs::read(file).unwrap();
    let golden = SafeTensors::deserialize(&file).unwrap();
    for source in ["noise", CAT, ASTRONAUT] {
        for until in ["features", "logits"] {
            let expected = golden.tensor(&format!("{source}: {until}")).unwrap();
            let expected: Vec<f32> = bytemuck::pod_collect_to_vec(expected.data());
            let far = distance(&values(source, until), &expected);
            assert!(far <= TOLERANCE, "{source}, {until}: {far}");
        }
    }
}

/// What no implementation decides: the order of the channels, the scale of the input and that of the classes are right.
#[test]
fn a_cat_is_taken_for_a_cat() {
    let logits = values(CAT, "logits");
    let highest = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let (class, _) = highest.unwrap();
    assert!(CATS.contains(&class), "class {class}");
}
