//! Runs a network once, opened up, to see the shapes of its tensors and whether it takes batches.

use std::collections::HashMap;

use onnx_protobuf::TensorProto;

use super::{
    graph::{Flow, Graph, INT64},
    session::{Runtime, Session, Value},
};
use crate::{Error, Result};

/// How far the rows of a batch may be from the same rows alone, relative to the largest element.
const TOLERANCE: f32 = 1e-4;

/// What a run has shown.
#[derive(Debug)]
pub(super) struct Probe {
    /// Shapes of the tensors of f32 that have a batch axis, without it.
    pub(super) shapes: HashMap<String, Vec<usize>>,
    /// Whether a batch of two gave what its rows give one by one.
    pub(super) batched: bool,
}

type Values = HashMap<String, Value>;

/// Looks at a network whose input has the shape `shape`, without the batch axis; folds what depends on shapes alone.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) when it does not run on noise, or gives what is no number.
pub(super) fn probe(runtime: &Runtime, graph: &mut Graph, shape: &[usize]) -> Result<Probe> {
    let (one, other) = (noise(shape, 1), noise(shape, 2));
    let alone = run(runtime, graph, shape, &[&one], false)?;
    let main = graph.outputs().next().unwrap_or_default();
    match alone.get(main) {
        Some(Value::Floats(_, elements)) if elements.iter().all(|element| element.is_finite()) => {}
        Some(Value::Floats(..)) => {
            return Err(Error::model(format!(
                "the output `{main}` is not finite: are weights NaN?"
            )));
        }
        _ => return Err(Error::model(format!("the output `{main}` is no tensor of f32"))),
    }
    let other_alone = run(runtime, graph, shape, &[&other], false)?;
    let relaxed = graph.with_free_batch();
    let together = run(runtime, &relaxed, shape, &[&one, &other], true).ok();
    let batched = together.as_ref().is_some_and(|together| {
        together
            .get(main)
            .zip(alone.get(main))
            .zip(other_alone.get(main))
            .is_some_and(|((pair, first), second)| is_pair(pair, first, second))
    });
    if batched {
        *graph = relaxed;
    }
    graph.fold(shapes_to_fold(
        graph,
        &alone,
        together.as_ref().filter(|_| batched),
    ));
    let together = together.filter(|_| batched);
    let shapes = alone
        .iter()
        .filter_map(|(name, value)| match value {
            Value::Floats(extents, _) if extents.first() == Some(&1) => {
                match together.as_ref().map(|all| all.get(name)) {
                    Some(Some(pair)) => is_pair(pair, value, other_alone.get(name)?)
                        .then(|| (name.clone(), extents[1..].to_vec())),
                    Some(None) => None,
                    None => Some((name.clone(), extents[1..].to_vec())),
                }
            }
            _ => None,
        })
        .collect();
    Ok(Probe { shapes, batched })
}

fn run(
    runtime: &Runtime,
    graph: &Graph,
    shape: &[usize],
    rows: &[&Vec<f32>],
    batched: bool,
) -> Result<Values> {
    // Not optimized: every tensor is looked at, none may be computed away.
    let session = Session::new(runtime, &graph.opened(shape, batched)?, false)?;
    let extents: Vec<usize> = std::iter::once(rows.len()).chain(shape.iter().copied()).collect();
    let elements: Vec<f32> = rows.iter().flat_map(|row| row.iter().copied()).collect();
    Ok(session.run(&extents, &elements)?.into_iter().collect())
}

/// The tensors that depend on shapes alone and are the same whatever the batch: weights, then.
fn shapes_to_fold(graph: &Graph, alone: &Values, together: Option<&Values>) -> HashMap<String, TensorProto> {
    let flows = graph.flows();
    let shapes = alone
        .iter()
        .filter(|(name, _)| flows.get(name.as_str()) == Some(&Flow::Shape));
    shapes
        .filter(|(name, value)| together.is_none_or(|together| together.get(*name) == Some(*value)))
        .filter_map(|(name, value)| match value {
            Value::Integers(extents, elements) => Some((name.clone(), weight(name, extents, elements))),
            _ => None,
        })
        .collect()
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

/// Whether `pair` is `first` and `second` behind one another along the batch axis.
fn is_pair(pair: &Value, first: &Value, second: &Value) -> bool {
    let (Value::Floats(extents, pair), Value::Floats(of_first, first), Value::Floats(_, second)) =
        (pair, first, second)
    else {
        return false;
    };
    let shaped = extents.first() == Some(&2) && of_first.first() == Some(&1) && extents[1..] == of_first[1..];
    shaped && pair.len() == first.len() + second.len() && {
        let (of_first, of_second) = pair.split_at(first.len());
        is_close(of_first, first) && is_close(of_second, second)
    }
}

fn is_close(found: &[f32], expected: &[f32]) -> bool {
    let largest = expected
        .iter()
        .fold(0_f32, |largest, element| largest.max(element.abs()));
    let differences = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| (found - expected).abs());
    // A NaN is close to nothing.
    differences
        .into_iter()
        .all(|difference| difference <= TOLERANCE * largest)
}

/// Numbers between -1 and 1 without a pattern (Weyl's sequence of the golden ratio, squared).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "noise"
)]
fn noise(shape: &[usize], seed: usize) -> Vec<f32> {
    let count: usize = shape.iter().product();
    (0..count)
        .map(|index| {
            let place = (index * (seed + 2) + seed) as f64;
            ((place * place * 0.618_033_988_749_895).fract() * 2.0 - 1.0) as f32
        })
        .collect()
}
