//! Parts of models: where a plan may cut them, and what each part holds.

use pushdown::{
    Pipeline,
    step::model::{Boundary, ModelFolder},
};

use super::{
    models::{RUNTIME, models},
    small_models::model,
};

/// Where every layer gives less than the one before, not all of them are worth looking at: the last ones are.
#[test]
fn models_are_cut_in_as_many_places_as_are_asked_for() {
    let folder = ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let whole = Pipeline::parse_with("decode | to_float | model(falling) | cast(f16)", &folder).unwrap();
    let cuts = |most: usize| -> Vec<u64> {
        let refined = whole.refined(most);
        let inside = 3..refined.len() - 1;
        let bytes = refined.kinds()[inside].iter().map(|kind| kind.bytes().unwrap());
        bytes.map(|bytes| bytes / 4).collect()
    };
    let all: Vec<u64> = (9..=23).rev().map(|half| 2 * half).collect();
    assert_eq!(cuts(100), all);
    assert_eq!(cuts(12), all[3..]);
    assert_eq!(cuts(2), [20, 18]);
    assert!(cuts(0).is_empty());
}

/// Of the weights either part has its own, also where they are stored without their zeros.
#[test]
fn both_parts_together_hold_what_the_whole_does() {
    for (name, cut, weights) in [("falling", 8, 17_728 * 4), ("sparse_weights", 1, 500)] {
        let (model, _) = model(name);
        let held = |from: Boundary, to: usize| {
            model.release();
            model.load_layers(from, to).unwrap();
            model.memory_bytes()
        };
        let whole = held(Boundary::Input, model.end());
        assert!(whole > weights, "{name}: {whole} bytes");
        let (before, behind) = (held(Boundary::Input, cut), held(Boundary::Cut(cut), model.end()));
        assert!(
            before + behind < whole * 3 / 2,
            "{name}: {before} and {behind} of {whole} bytes"
        );
    }
}

/// What a part takes to make is told by those that were made, and of steps by the layers among them.
#[test]
fn what_layers_take_to_load_is_known_once_some_were() {
    let folder = ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let text = "decode | to_float | model(falling, until=cut:3) | model(falling, from=cut:3) | cast(f16)";
    let pipeline = Pipeline::parse_with(text, &folder).unwrap();
    assert!(pipeline.loading_time(0..5).is_zero(), "nothing was loaded yet");
    let (_, layers) = pipeline.first_model(0..5).unwrap();
    let model = layers.model();
    model.load_layers(Boundary::Input, model.end()).unwrap();
    let time = |stretch| pipeline.loading_time(stretch);
    assert!(time(0..2).is_zero() && time(4..5).is_zero(), "no layers");
    assert_eq!(time(0..5), time(2..4), "both halves as one part");
    // The file is there for each part, and each has weights of its own.
    assert!(time(0..3) > std::time::Duration::ZERO && time(3..5) > std::time::Duration::ZERO);
    assert!(time(0..3) < time(0..5) && time(3..5) < time(0..5));
    model.release();
    assert!(time(0..5).is_zero());
}
