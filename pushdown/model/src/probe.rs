//! Runs a model on noise with all tensors as outputs, to find their shapes and to see whether batches are safe.

mod observed_tensor;

use std::collections::HashMap;

use onnx_protobuf::TensorProto;

use super::{
    ModelFiles, Runtime,
    graph::{Dependency, Graph, INT64},
    session::{Session, TensorView},
};
use observed_tensor::{ObservedTensor, TensorSummary, is_concatenation};
use pushdown_core::{Error, Result};

/// The result of the runs.
#[derive(Debug)]
pub(super) struct Probe {
    /// Shapes of the tensors of f32 that have a batch axis, without that axis.
    pub(super) shapes: HashMap<String, Vec<usize>>,
    /// Whether a batch of two samples produced what its samples produce in single runs.
    pub(super) batched: bool,
}

/// The tensors of a run on one sample.
type SingleRun = HashMap<String, ObservedTensor<TensorSummary>>;

/// The tensors of a run on a batch of two samples. The flag of a tensor says whether it is the concatenation, along the batch
/// axis, of the tensors of the two single runs.
type PairRun = HashMap<String, ObservedTensor<bool>>;

/// Runs a model whose input has the shape `shape`, without the batch axis, and folds what depends on shapes alone. `files` are
/// those from which the graph was read.
///
/// # Errors
/// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) if the model fails on noise, or its output is not finite.
pub(super) fn probe(
    runtime: &Runtime,
    graph: &mut Graph,
    files: &ModelFiles,
    shape: &[usize],
) -> Result<Probe> {
    let (first, second) = (noise(shape, 1), noise(shape, 2));
    let output = graph.outputs().next().unwrap_or_default().to_owned();
    // Tensors that may leave the model are compared with the batch in every element.
    let compared_fully = graph.possible_cuts(&output);
    let run_single = |sample: &[f32]| -> Result<SingleRun> {
        run((runtime, files), graph, shape, &[sample], |name, value| {
            ObservedTensor::new(value, |_, elements| {
                TensorSummary::new(elements, compared_fully.contains(name))
            })
        })
    };
    let one = run_single(&first)?;
    check_output(&output, one.get(&output))?;
    let other = run_single(&second)?;
    let with_free_batch = graph.with_free_batch();
    let compare = |name: &str, value: &TensorView<'_>| {
        let singles = one.get(name).zip(other.get(name));
        ObservedTensor::new(value, |extents, elements| {
            singles.is_some_and(|(one, other)| is_concatenation(extents, elements, [one, other]))
        })
    };
    // Noise may take the same branch by chance where real samples do not.
    let pair: Option<PairRun> = if graph.has_data_dependent_control_flow() {
        None
    } else {
        let samples = [first.as_slice(), second.as_slice()];
        run((runtime, files), &with_free_batch, shape, &samples, compare).ok()
    };
    let pair = pair.filter(|pair| matches!(pair.get(&output), Some(ObservedTensor::Floats(_, true))));
    if let Some(pair) = &pair {
        *graph = with_free_batch;
        free_reshapes(graph, &one, pair)?;
    }
    graph.fold(constant_shapes(graph, &one, pair.as_ref()));
    let has_batch_axis = |name: &String| {
        pair.as_ref()
            .is_none_or(|pair| matches!(pair.get(name), Some(ObservedTensor::Floats(_, true))))
    };
    let shapes = one.iter().filter_map(|(name, value)| match value {
        ObservedTensor::Floats(extents, _) if extents.first() == Some(&1) && has_batch_axis(name) => {
            Some((name.clone(), extents[1..].to_vec()))
        }
        _ => None,
    });
    Ok(Probe {
        shapes: shapes.collect(),
        batched: pair.is_some(),
    })
}

fn check_output(name: &str, output: Option<&ObservedTensor<TensorSummary>>) -> Result<()> {
    match output {
        Some(ObservedTensor::Floats(_, summary)) if summary.is_finite() => Ok(()),
        Some(ObservedTensor::Floats(..)) => Err(Error::model(format!(
            "the output `{name}` is not finite: are weights NaN?"
        ))),
        _ => Err(Error::model(format!(
            "the output `{name}` is not a tensor of f32"
        ))),
    }
}

/// Runs a graph on a batch of samples, and maps every tensor with `read`.
fn run<T>(
    (runtime, files): (&Runtime, &ModelFiles),
    graph: &Graph,
    shape: &[usize],
    samples: &[&[f32]],
    mut read: impl FnMut(&str, &TensorView<'_>) -> T,
) -> Result<HashMap<String, T>> {
    let model = graph.with_all_outputs(shape, samples.len() > 1)?;
    // Not optimized: no tensor may be fused away.
    let session = Session::new(runtime, &model, files, None)?;
    let extents: Vec<usize> = std::iter::once(samples.len())
        .chain(shape.iter().copied())
        .collect();
    let elements = samples.concat();
    let tensors = session.run(&extents, &elements, |name, value| {
        (name.to_owned(), read(name, value))
    })?;
    Ok(tensors.into_iter().collect())
}

/// Lets `Reshape`s take the batch extent from their input, if their shape starts with the batch size and is otherwise
/// constant.
fn free_reshapes(graph: &mut Graph, single: &SingleRun, pair: &PairRun) -> Result<()> {
    let shapes = batched_shapes(graph, single, pair);
    let input = graph.input()?.name.clone();
    let has_batch_axis = |data: &String| {
        let extents = (
            single.get(data).and_then(ObservedTensor::first_extent),
            pair.get(data).and_then(ObservedTensor::first_extent),
        );
        *data == input || extents == (Some(1), Some(2))
    };
    graph.reshape(|node| {
        let rest = shapes.get(node.input.get(1)?);
        rest.filter(|_| node.input.first().is_some_and(has_batch_axis))
            .cloned()
    });
    Ok(())
}

/// The tensors that depend on shapes alone and are the same for every batch size, as weights.
fn constant_shapes(
    graph: &Graph,
    single: &SingleRun,
    pair: Option<&PairRun>,
) -> HashMap<String, TensorProto> {
    let dependencies = graph.dependencies();
    let shapes = single
        .iter()
        .filter(|(name, _)| dependencies.get(name.as_str()) == Some(&Dependency::Shape));
    let is_constant = |name: &String, extents: &Vec<usize>, elements: &Vec<i64>| {
        pair.is_none_or(|pair| match pair.get(name) {
            Some(ObservedTensor::Integers(pair_extents, pair_elements)) => {
                pair_extents == extents && pair_elements == elements
            }
            _ => false,
        })
    };
    shapes
        .filter_map(|(name, value)| match value {
            ObservedTensor::Integers(extents, elements) if is_constant(name, extents, elements) => {
                Some((name.clone(), weight(name, extents, elements)))
            }
            _ => None,
        })
        .collect()
}

/// The tensors that depend on shapes alone and consist of the batch size and constant extents. Returns those extents by name.
fn batched_shapes(graph: &Graph, single: &SingleRun, pair: &PairRun) -> HashMap<String, Vec<i64>> {
    let dependencies = graph.dependencies();
    let shapes = single
        .iter()
        .filter(|(name, _)| dependencies.get(name.as_str()) == Some(&Dependency::Shape));
    let rest = shapes.filter_map(|(name, value)| match (value, pair.get(name)?) {
        (ObservedTensor::Integers(_, of_one), ObservedTensor::Integers(_, of_two)) => {
            match (of_one.as_slice(), of_two.as_slice()) {
                ([1, rest @ ..], [2, same @ ..]) if rest == same => Some((name.clone(), rest.to_vec())),
                _ => None,
            }
        }
        _ => None,
    });
    rest.collect()
}

fn weight(name: &str, extents: &[usize], elements: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type: INT64,
        dims: extents
            .iter()
            .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX))
            .collect(),
        int64_data: elements.to_vec(),
        ..TensorProto::default()
    }
}

/// Numbers between -1 and 1 without a pattern: fractional parts of square numbers times the golden ratio, as in a Weyl
/// sequence.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "noise"
)]
fn noise(shape: &[usize], seed: usize) -> Vec<f32> {
    let count: usize = shape.iter().product();
    (0..count)
        .map(|index| {
            let number = (index * (seed + 2) + seed) as f64;
            ((number * number * 0.618_033_988_749_895).fract() * 2.0 - 1.0) as f32
        })
        .collect()
}
