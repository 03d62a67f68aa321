//! Runs a model once, opened up, to see the shapes of its tensors and whether it takes batches.

mod seen;

use std::collections::HashMap;

use onnx_protobuf::TensorProto;

use super::{
    files::Files,
    graph::{Flow, Graph, INT64},
    session::{Runtime, Session, Value},
};
use crate::{Error, Result};
use seen::{Row, Seen, is_pair};

/// What a run has shown.
#[derive(Debug)]
pub(super) struct Probe {
    /// Shapes of the tensors of f32 that have a batch axis, without it.
    pub(super) shapes: HashMap<String, Vec<usize>>,
    /// Whether a batch of two gave what its rows give one by one.
    pub(super) batched: bool,
}

/// The tensors of one sample.
type Alone = HashMap<String, Seen<Row>>;

/// The tensors of two samples at once: whether each is what the two have alone, one behind the other along the batch axis.
type Together = HashMap<String, Seen<bool>>;

/// Looks at a model whose input has the shape `shape`, without the batch axis; folds what depends on shapes alone. The
/// graph was read from `files`.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) when it does not run on noise, or gives what is no number.
pub(super) fn probe(runtime: &Runtime, graph: &mut Graph, files: &Files, shape: &[usize]) -> Result<Probe> {
    let (first, second) = (noise(shape, 1), noise(shape, 2));
    let main = graph.outputs().next().unwrap_or_default().to_owned();
    // What may leave the model is held against a batch element by element.
    let whole = graph.possible_cuts(&main);
    let alone = |sample: &[f32]| -> Result<Alone> {
        run((runtime, files), graph, shape, &[sample], |name, value| {
            Seen::of(value, |_, elements| Row::of(elements, whole.contains(name)))
        })
    };
    let one = alone(&first)?;
    match one.get(&main) {
        Some(Seen::Floats(_, row)) if row.is_finite() => {}
        Some(Seen::Floats(..)) => {
            return Err(Error::model(format!(
                "the output `{main}` is not finite: are weights NaN?"
            )));
        }
        _ => return Err(Error::model(format!("the output `{main}` is no tensor of f32"))),
    }
    let other = alone(&second)?;
    let relaxed = graph.with_free_batch();
    let both = |name: &str, value: &Value<'_>| {
        let rows = one.get(name).zip(other.get(name));
        Seen::of(value, |extents, elements| {
            rows.is_some_and(|(one, other)| is_pair(extents, elements, [one, other]))
        })
    };
    // Noise may go the same way by chance where samples do not.
    let together: Option<Together> = if graph.decides_by_data() {
        None
    } else {
        let samples = [first.as_slice(), second.as_slice()];
        run((runtime, files), &relaxed, shape, &samples, both).ok()
    };
    let together = together.filter(|together| matches!(together.get(&main), Some(Seen::Floats(_, true))));
    let batched = together.is_some();
    if let Some(together) = &together {
        *graph = relaxed;
        let behind_batch = shapes_with_batch(graph, &one, together);
        let input = graph.input()?.name.clone();
        let has_batch = |data: &String| {
            let extents = (
                one.get(data).and_then(Seen::first_extent),
                together.get(data).and_then(Seen::first_extent),
            );
            *data == input || extents == (Some(1), Some(2))
        };
        graph.reshape(|node| {
            let rest = behind_batch.get(node.input.get(1)?);
            rest.filter(|_| node.input.first().is_some_and(has_batch))
                .cloned()
        });
    }
    graph.fold(shapes_to_fold(graph, &one, together.as_ref()));
    let has_batch = |name: &String| {
        together
            .as_ref()
            .is_none_or(|together| matches!(together.get(name), Some(Seen::Floats(_, true))))
    };
    let shapes = one.iter().filter_map(|(name, value)| match value {
        Seen::Floats(extents, _) if extents.first() == Some(&1) && has_batch(name) => {
            Some((name.clone(), extents[1..].to_vec()))
        }
        _ => None,
    });
    Ok(Probe {
        shapes: shapes.collect(),
        batched,
    })
}

/// What `read` makes of the tensors of these samples, all at once.
fn run<T>(
    (runtime, files): (&Runtime, &Files),
    graph: &Graph,
    shape: &[usize],
    samples: &[&[f32]],
    mut read: impl FnMut(&str, &Value<'_>) -> T,
) -> Result<HashMap<String, T>> {
    let opened = graph.opened(shape, samples.len() > 1)?;
    // Not optimized: every tensor is looked at, none may be computed away.
    let session = Session::new(runtime, &opened, files, None)?;
    let extents: Vec<usize> = std::iter::once(samples.len())
        .chain(shape.iter().copied())
        .collect();
    let elements = samples.concat();
    let seen = session.run(&extents, &elements, |name, value| {
        (name.to_owned(), read(name, value))
    })?;
    Ok(seen.into_iter().collect())
}

/// The tensors that depend on shapes alone and are the same whatever the batch: weights, then.
fn shapes_to_fold(graph: &Graph, alone: &Alone, together: Option<&Together>) -> HashMap<String, TensorProto> {
    let flows = graph.flows();
    let shapes = alone
        .iter()
        .filter(|(name, _)| flows.get(name.as_str()) == Some(&Flow::Shape));
    let stays = |name: &String, extents: &Vec<usize>, elements: &Vec<i64>| {
        together.is_none_or(|together| match together.get(name) {
            Some(Seen::Integers(of_two, same)) => of_two == extents && same == elements,
            _ => false,
        })
    };
    shapes
        .filter_map(|(name, value)| match value {
            Seen::Integers(extents, elements) if stays(name, extents, elements) => {
                Some((name.clone(), weight(name, extents, elements)))
            }
            _ => None,
        })
        .collect()
}

/// The tensors that depend on shapes alone and are the batch with something behind it that stays: that, by name.
fn shapes_with_batch(graph: &Graph, alone: &Alone, together: &Together) -> HashMap<String, Vec<i64>> {
    let flows = graph.flows();
    let shapes = alone
        .iter()
        .filter(|(name, _)| flows.get(name.as_str()) == Some(&Flow::Shape));
    let rest = shapes.filter_map(|(name, value)| match (value, together.get(name)?) {
        (Seen::Integers(_, of_one), Seen::Integers(_, of_two)) => {
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
