//! Compares EfficientNet-Lite0 with the published PyTorch implementation of its weights (`scripts/golden_cases/models.py`). The
//! model of the tests was built without that implementation, so this is an independent check of its paddings, its layers and
//! their order.

use std::{fs, ops::RangeInclusive, path::Path};

use pushdown::{Context, Pipeline, Sample};
use safetensors::SafeTensors;

use super::{FOLDER, distance, floats, noise_image};

/// PyTorch adds in another order, and does not fold batch norms into convolutions.
const TOLERANCE: f32 = 1e-5;
const CAT: &str = "jpeg_large.jpg";
const ASTRONAUT: &str = "jpeg_large_progressive.jpg";
/// ImageNet's classes of cat breeds.
const CATS: RangeInclusive<usize> = 281..=285;

/// The values of a tensor for an image that is prepared as the card says. Photos are resized and cropped first.
fn values(source: &str, until: &str) -> Vec<f32> {
    let (crop, first, sample) = if source == "noise" {
        ("", 1, noise_image())
    } else {
        let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
        let object = fs::read(photos.join(source)).unwrap();
        let crop = "resize(short=256, filter=bicubic) | center_crop(224) |";
        (crop, 0, Sample::Bytes(object.into()))
    };
    let text = format!(
        "decode | {crop} to_float | normalize(model=efficientnet_lite0) | model(efficientnet_lite0, until={until})"
    );
    let pipeline = Pipeline::parse_with(&text, &*FOLDER).unwrap();
    let steps = first..pipeline.len();
    match pipeline.run(steps, sample, &Context::new(b"")).unwrap() {
        Sample::Tensor(tensor) => floats(&tensor),
        other => panic!("expected a tensor, found {other:?}"),
    }
}

#[test]
fn features_and_logits_equal_the_published_model() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/efficientnet_lite0.safetensors");
    let file = fs::read(file).unwrap();
    let golden = SafeTensors::deserialize(&file).unwrap();
    for source in ["noise", CAT, ASTRONAUT] {
        for until in ["features", "logits"] {
            let expected = golden.tensor(&format!("{source}: {until}")).unwrap();
            let expected: Vec<f32> = bytemuck::pod_collect_to_vec(expected.data());
            let error = distance(&values(source, until), &expected);
            assert!(error <= TOLERANCE, "{source}, {until}: {error}");
        }
    }
}

/// Checks the order of channels, the scale of inputs and the order of classes.
#[test]
fn a_cat_is_classified_as_a_cat() {
    let logits = values(CAT, "logits");
    let highest = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    let (class, _) = highest.unwrap();
    assert!(CATS.contains(&class), "class {class}");
}
