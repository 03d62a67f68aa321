//! Ranges of layers: where a plan may cut models, and the memory of each range.

use pushdown::{
    Pipeline,
    step::model::{Boundary, ModelFolder},
};

use super::{
    models::{RUNTIME, models},
    small_models::model,
};

/// If every layer has a smaller output than the one before, only the last ones are used as cuts.
#[test]
fn models_are_cut_at_the_requested_number_of_places() {
    let folder = ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let whole = Pipeline::parse_with("decode | to_float | model(falling) | cast(f16)", &folder).unwrap();
    let cuts = |max_cuts: usize| -> Vec<u64> {
        let refined = whole.refined(max_cuts);
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

/// Each range loads only its own weights, sparse ones included.
#[test]
fn two_ranges_use_as_much_memory_as_the_whole() {
    for (name, cut, weights) in [("falling", 8, 17_728 * 4), ("sparse_weights", 1, 500)] {
        let (model, _) = model(name);
        let memory_bytes = |from: Boundary, to: usize| {
            model.release();
            model.load_layers(from, to).unwrap();
            model.memory_bytes()
        };
        let whole = memory_bytes(Boundary::Input, model.end());
        assert!(whole > weights, "{name}: {whole} bytes");
        let before = memory_bytes(Boundary::Input, cut);
        let after = memory_bytes(Boundary::Cut(cut), model.end());
        assert!(
            before + after < whole * 3 / 2,
            "{name}: {before} and {after} of {whole} bytes"
        );
    }
}

/// The load time of a range is extrapolated from earlier loads. That of steps is the sum over their layers.
#[test]
fn load_times_are_known_after_the_first_load() {
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
    // Each half reads the file and loads its own weights.
    assert!(time(0..3) > std::time::Duration::ZERO && time(3..5) > std::time::Duration::ZERO);
    assert!(time(0..3) < time(0..5) && time(3..5) < time(0..5));
    model.release();
    assert!(time(0..5).is_zero());
}
