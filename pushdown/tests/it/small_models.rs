//! Models of a few nodes, with what the real ones lack: `Constant`, `Identity`, computed shapes, control flow, other types,
//! a batch that is moved, weights without their zeros, and samples that a batch would mix.

use std::{sync::Arc, time::Duration};

use pushdown::{
    Context, Pipeline, Sample,
    step::model::{Boundary, ExcludedTensor, Model, ModelFolder, ModelResolver as _},
};

use super::models::{Golden, RUNTIME, TOLERANCE, distance, floats, golden, models};

pub(super) fn model(name: &str) -> (Arc<Model>, Golden) {
    let folder =
        ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).expect("scripts/models.sh makes it");
    (folder.find(name).expect(name), golden(&format!("tiny/{name}")))
}

/// Whole and at every cut, before it and behind it, alone and all at once, as ONNX Runtime's Python has each alone.
pub(super) fn as_onnxruntime(model: &Model, golden: &Golden) {
    let many: Vec<_> = golden.inputs.iter().cycle().take(8).cloned().collect();
    for (batch, first) in [(&golden.inputs[..1], 0), (&golden.inputs[1..], 1), (&many, 0)] {
        for cut in 0..=model.end() {
            let values = model.run(Boundary::Input, cut, batch).expect("a prefix");
            golden.check_inside(&model.description().cut_points[cut].tensor, first, &values);
            let outputs = model
                .run(Boundary::Cut(cut), model.end(), &values)
                .expect("a suffix");
            assert_eq!(outputs.len(), batch.len());
            let expected = golden.outputs.iter().cycle().skip(first);
            for (found, expected) in outputs.iter().zip(expected) {
                let far = distance(&floats(found), expected);
                assert!(far <= TOLERANCE, "cut {cut}, {} at once: {far}", batch.len());
            }
        }
    }
}

fn tensors(model: &Model) -> Vec<&str> {
    let cuts = model.description().cut_points.iter();
    cuts.map(|cut| cut.tensor.as_str()).collect()
}

fn left_out(tensor: &str, reason: &str) -> ExcludedTensor {
    ExcludedTensor {
        tensor: tensor.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The batch that the shape of the input tells is what a `Reshape` takes from its own: else no layer between the two could
/// be cut.
#[test]
fn constants_and_shapes_are_folded() {
    let (model, golden) = model("constants");
    let description = model.description();
    assert!(description.batched);
    assert_eq!(tensors(&model), ["rectified", "scaled", "flat", "y"]);
    let costs = |cut: usize| {
        let cut = &description.cut_points[cut];
        (cut.parameters, cut.macs)
    };
    let (kernels, macs) = (4 * 3 * 9, 16 * 4 * 3 * 9);
    assert_eq!(costs(0), (kernels + 4 + 4, macs), "offsets, and their shape");
    assert_eq!(costs(1), (kernels + 9, macs), "a factor");
    assert_eq!(costs(2), (kernels + 11, macs), "a shape of two extents");
    assert_eq!(costs(3), (kernels + 11 + 64 * 5, macs + 64 * 5));
    // `Identity` between two nodes keeps them no more apart than nothing does.
    assert_eq!(
        description.left_out,
        [
            left_out("convolved", "ONNX Runtime fuses `Conv` and the `Add` after it"),
            left_out("shifted", "ONNX Runtime fuses `Add` and the `Relu` after it"),
            left_out("scores", "ONNX Runtime fuses `Gemm` and the `Relu` after it"),
        ]
    );
    as_onnxruntime(&model, &golden);
}

#[test]
fn samples_that_a_batch_would_mix_run_one_by_one() {
    let (model, golden) = model("batch_mean");
    assert!(!model.description().batched);
    as_onnxruntime(&model, &golden);
}

/// Law 1 bounds what a sample may have of its company: neither a little of everything nor a single element is left to it.
#[test]
fn samples_that_a_batch_would_mix_a_little_run_one_by_one() {
    for name in ["faint_mean", "one_mixed"] {
        let (model, golden) = model(name);
        assert!(!model.description().batched, "{name}");
        as_onnxruntime(&model, &golden);
    }
}

/// Which branch is taken depends on the samples of a batch together, so that they run one by one.
#[test]
fn branches_are_not_cut() {
    let (model, golden) = model("branches");
    let description = model.description();
    assert!(!description.batched);
    assert_eq!(tensors(&model), ["a", "chosen", "y"]);
    let inside = "it is computed inside `If`, which is not cut";
    let mut found = description.left_out.clone();
    found.sort_by(|a, b| a.tensor.cmp(&b.tensor));
    assert_eq!(
        found,
        [
            left_out("half", inside),
            left_out("halved", inside),
            left_out("root", inside)
        ]
    );
    as_onnxruntime(&model, &golden);
}

/// How many turns a `Loop` takes may depend on a sample, and then on all of a batch; a `Scan` goes by the shape alone.
#[test]
fn loops_and_scans_are_not_cut() {
    for (name, operator, batched, cuts, inside) in [
        (
            "loops",
            "Loop",
            false,
            ["a", "looped", "y"],
            ["and_again", "grown_on", "multiplied"],
        ),
        (
            "scans",
            "Scan",
            true,
            ["a", "sums", "y"],
            ["multiplied", "row_sum", "sum"],
        ),
    ] {
        let (model, golden) = model(name);
        let description = model.description();
        assert_eq!(description.batched, batched, "{name}");
        assert_eq!(tensors(&model), cuts);
        let mut found = description.left_out.clone();
        found.sort_by(|a, b| a.tensor.cmp(&b.tensor));
        let reason = format!("it is computed inside `{operator}`, which is not cut");
        assert_eq!(found, inside.map(|tensor| left_out(tensor, &reason)));
        as_onnxruntime(&model, &golden);
    }
}

/// Halves, and numbers of places; a batch that is the second axis or the last. One sample alone has 1 in front all the same.
#[test]
fn what_has_no_samples_of_f32_for_rows_is_no_cut() {
    let reason = "it is not a tensor of f32 with the batch as its first axis";
    for (name, cuts, others) in [
        (
            "other_types",
            &["a", "singles", "levels", "y"][..],
            ["halves", "places"],
        ),
        ("batch_moved", &["a", "back", "y"], ["second", "last"]),
    ] {
        let (model, golden) = model(name);
        let description = model.description();
        assert!(description.batched, "{name}");
        assert_eq!(tensors(&model), cuts);
        assert_eq!(
            description.left_out,
            others.map(|tensor| left_out(tensor, reason))
        );
        as_onnxruntime(&model, &golden);
    }
}

/// They are weights like others, counted with their zeros: that is how they are computed with.
#[test]
fn weights_may_be_stored_without_their_zeros() {
    let (model, golden) = model("sparse_weights");
    assert!(model.description().batched);
    assert_eq!(tensors(&model), ["flat", "rectified", "y"]);
    let costs = model.description().cut_points.iter();
    let costs: Vec<_> = costs.map(|cut| (cut.parameters, cut.macs)).collect();
    let (first, second) = (48 * 12, 12 * 5);
    assert_eq!(costs, [(0, 0), (first, first), (first + second, first + second)]);
    as_onnxruntime(&model, &golden);
}

/// Whoever times steps begins behind the weights: they come once, and are no cost of a sample.
#[test]
fn weights_are_there_before_a_step_is_timed() {
    let folder = ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).unwrap();
    let (model, golden) = (folder.find("constants").unwrap(), golden("tiny/constants"));
    for (layers, steps) in [
        ("model(constants)", 2..3),
        (
            "model(constants, until=cut:1) | model(constants, from=cut:1)",
            2..4,
        ),
    ] {
        model.release();
        assert_eq!(model.memory_bytes(), 0);
        let pipeline = Pipeline::parse_with(&format!("decode | to_float | {layers}"), &folder).unwrap();
        let mut held = Vec::new();
        let sample = Sample::Tensor(golden.inputs[0].clone());
        let clock = || {
            held.push(model.memory_bytes());
            Duration::ZERO
        };
        let context = Context::new(b"");
        let (_, groups) = pipeline
            .run_timed(steps.clone(), sample, &context, clock)
            .unwrap();
        let groups: Vec<_> = groups.into_iter().map(|group| group.steps).collect();
        assert_eq!(
            groups,
            std::slice::from_ref(&steps),
            "what goes together runs as one"
        );
        let loaded = model.memory_bytes();
        assert!(loaded > 0, "{layers}");
        assert_eq!(held, [loaded; 2], "{layers}");
    }
    // Nor are they a cost of the step before the model.
    model.release();
    let pipeline = Pipeline::parse_with("decode | to_float | cast(f32) | model(constants)", &folder).unwrap();
    let mut held = Vec::new();
    let sample = Sample::Tensor(golden.inputs[0].clone());
    let clock = || {
        held.push(model.memory_bytes());
        Duration::ZERO
    };
    pipeline
        .run_timed(2..4, sample, &Context::new(b""), clock)
        .unwrap();
    let loaded = model.memory_bytes();
    assert_eq!(held, [0, 0, loaded, loaded]);
}
