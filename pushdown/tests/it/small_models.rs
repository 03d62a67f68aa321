//! Models of a few nodes with features that the real ones lack: `Constant`, `Identity`, computed shapes, control flow, other
//! types, a moved batch axis, sparse weights, and batches that mix their samples.

use std::{sync::Arc, time::Duration};

use pushdown::{
    Context, Pipeline, Sample,
    step::model::{Boundary, ExcludedTensor, Model, ModelFolder},
};

use super::models::{Golden, RUNTIME, TOLERANCE, distance, floats, golden, models};

pub(super) fn model(name: &str) -> (Arc<Model>, Golden) {
    let folder =
        ModelFolder::open(&models().join("tiny"), Ok(RUNTIME.clone())).expect("scripts/models.sh creates it");
    (folder.find(name).expect(name), golden(&format!("tiny/{name}")))
}

/// Compares the layers before and after every cut, in single runs and in batches, with single runs of ONNX Runtime's Python API.
pub(super) fn check_against_onnxruntime(model: &Model, golden: &Golden) {
    let many: Vec<_> = golden.inputs.iter().cycle().take(8).cloned().collect();
    for (batch, first) in [(&golden.inputs[..1], 0), (&golden.inputs[1..], 1), (&many, 0)] {
        for cut in 0..=model.end() {
            let values = model.run(Boundary::Input, cut, batch).expect("a prefix");
            golden.check_inner(&model.description().cut_points[cut].tensor, first, &values);
            let outputs = model
                .run(Boundary::Cut(cut), model.end(), &values)
                .expect("a suffix");
            assert_eq!(outputs.len(), batch.len());
            let expected = golden.outputs.iter().cycle().skip(first);
            for (found, expected) in outputs.iter().zip(expected) {
                let error = distance(&floats(found), expected);
                assert!(error <= TOLERANCE, "cut {cut}, batch of {}: {error}", batch.len());
            }
        }
    }
}

fn tensors(model: &Model) -> Vec<&str> {
    let cuts = model.description().cut_points.iter();
    cuts.map(|cut| cut.tensor.as_str()).collect()
}

fn excluded(tensor: &str, reason: &str) -> ExcludedTensor {
    ExcludedTensor {
        tensor: tensor.to_owned(),
        reason: reason.to_owned(),
    }
}

/// A `Reshape` whose batch extent is computed from the shape of the input copies that of its own input instead. Otherwise no
/// layer between the two could be a cut point.
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
    assert_eq!(costs(0), (kernels + 4 + 4, macs), "offsets and their shape");
    assert_eq!(costs(1), (kernels + 9, macs), "a factor");
    assert_eq!(costs(2), (kernels + 11, macs), "a shape of two extents");
    assert_eq!(costs(3), (kernels + 11 + 64 * 5, macs + 64 * 5));
    // An `Identity` between two nodes does not prevent their fusion.
    assert_eq!(
        description.left_out,
        [
            excluded("convolved", "ONNX Runtime fuses `Conv` and the `Add` after it"),
            excluded("shifted", "ONNX Runtime fuses `Add` and the `Relu` after it"),
            excluded("scores", "ONNX Runtime fuses `Gemm` and the `Relu` after it"),
        ]
    );
    check_against_onnxruntime(&model, &golden);
}

#[test]
fn batches_that_mix_samples_run_one_by_one() {
    let (model, golden) = model("batch_mean");
    assert!(!model.description().batched);
    check_against_onnxruntime(&model, &golden);
}

/// Law 1 limits the influence of other samples of a batch, whether it is small in all elements or in a single one.
#[test]
fn batches_that_mix_samples_slightly_run_one_by_one() {
    for name in ["faint_mean", "one_mixed"] {
        let (model, golden) = model(name);
        assert!(!model.description().batched, "{name}");
        check_against_onnxruntime(&model, &golden);
    }
}

/// The branch would depend on all samples of a batch, so they run one by one.
#[test]
fn branches_are_not_cut() {
    let (model, golden) = model("branches");
    let description = model.description();
    assert!(!description.batched);
    assert_eq!(tensors(&model), ["a", "chosen", "y"]);
    let reason = "it is computed inside `If`, which is not cut";
    let mut found = description.left_out.clone();
    found.sort_by(|a, b| a.tensor.cmp(&b.tensor));
    assert_eq!(
        found,
        [
            excluded("half", reason),
            excluded("halved", reason),
            excluded("root", reason)
        ]
    );
    check_against_onnxruntime(&model, &golden);
}

/// The iterations of a `Loop` may depend on all samples of a batch. Those of a `Scan` depend on shapes alone.
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
        assert_eq!(found, inside.map(|tensor| excluded(tensor, &reason)));
        check_against_onnxruntime(&model, &golden);
    }
}

/// Tensors of f16 and of integers, and tensors whose batch axis is the second or the last. In single runs the first extent is 1
/// for all of them.
#[test]
fn only_f32_tensors_with_a_leading_batch_axis_are_cut_points() {
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
            others.map(|tensor| excluded(tensor, reason))
        );
        check_against_onnxruntime(&model, &golden);
    }
}

/// Sparse weights count with their zeros, since ONNX Runtime computes with dense ones.
#[test]
fn sparse_weights_count_as_dense() {
    let (model, golden) = model("sparse_weights");
    assert!(model.description().batched);
    assert_eq!(tensors(&model), ["flat", "rectified", "y"]);
    let costs = model.description().cut_points.iter();
    let costs: Vec<_> = costs.map(|cut| (cut.parameters, cut.macs)).collect();
    let (first, second) = (48 * 12, 12 * 5);
    assert_eq!(costs, [(0, 0), (first, first), (first + second, first + second)]);
    check_against_onnxruntime(&model, &golden);
}

/// Weights are loaded before the clock starts: loading happens once, and is not a cost of a sample.
#[test]
fn weights_are_loaded_before_a_step_is_timed() {
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
        let mut memory_bytes = Vec::new();
        let sample = Sample::Tensor(golden.inputs[0].clone());
        let clock = || {
            memory_bytes.push(model.memory_bytes());
            Duration::ZERO
        };
        let context = Context::new(b"");
        let (_, groups) = pipeline
            .run_timed(steps.clone(), sample, &context, clock)
            .unwrap();
        let groups: Vec<_> = groups.into_iter().map(|group| group.steps).collect();
        assert_eq!(groups, std::slice::from_ref(&steps), "adjacent ranges run as one");
        let loaded = model.memory_bytes();
        assert!(loaded > 0, "{layers}");
        assert_eq!(memory_bytes, [loaded; 2], "{layers}");
    }
    // Loading is not a cost of the step before the model either.
    model.release();
    let pipeline = Pipeline::parse_with("decode | to_float | cast(f32) | model(constants)", &folder).unwrap();
    let mut memory_bytes = Vec::new();
    let sample = Sample::Tensor(golden.inputs[0].clone());
    let clock = || {
        memory_bytes.push(model.memory_bytes());
        Duration::ZERO
    };
    pipeline
        .run_timed(2..4, sample, &Context::new(b""), clock)
        .unwrap();
    let loaded = model.memory_bytes();
    assert_eq!(memory_bytes, [0, 0, loaded, loaded]);
}
