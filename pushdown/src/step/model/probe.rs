//! Runs a network once, opened up, to see the shapes of its tensors and whether it takes batches.

use std::{collections::HashMap, sync::Arc};

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

/// What is kept of a tensor: all of them together would be many times what a run needs.
#[derive(Debug, PartialEq)]
enum Seen {
    Floats {
        extents: Vec<usize>,
        finite: bool,
        /// Along the first axis.
        rows: Vec<Row>,
    },
    Integers(Vec<usize>, Vec<i64>),
    Other,
}

/// A row of a batch.
#[derive(Debug, PartialEq)]
struct Row {
    /// The magnitude of the largest element.
    largest: f32,
    /// Elements all over the row, or all of them.
    some: Vec<f32>,
}

/// Elements that are kept of a row.
const KEPT: usize = 1 << 9;

type Values = HashMap<String, Seen>;

/// Looks at a network whose input has the shape `shape`, without the batch axis; folds what depends on shapes alone. The
/// graph was read from `file`.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) when it does not run on noise, or gives what is no number.
pub(super) fn probe(
    runtime: &Runtime,
    graph: &mut Graph,
    file: &Arc<[u8]>,
    shape: &[usize],
) -> Result<Probe> {
    let (one, other) = (noise(shape, 1), noise(shape, 2));
    let run = |graph: &Graph, rows: &[&Vec<f32>], batched| run(runtime, graph, file, shape, rows, batched);
    let alone = run(graph, &[&one], false)?;
    let main = graph.outputs().next().unwrap_or_default();
    match alone.get(main) {
        Some(Seen::Floats { finite: true, .. }) => {}
        Some(Seen::Floats { .. }) => {
            return Err(Error::model(format!(
                "the output `{main}` is not finite: are weights NaN?"
            )));
        }
        _ => return Err(Error::model(format!("the output `{main}` is no tensor of f32"))),
    }
    let other_alone = run(graph, &[&other], false)?;
    let relaxed = graph.with_free_batch();
    // Noise may go the same way by chance where samples do not.
    let together = (!graph.decides_by_data())
        .then(|| run(&relaxed, &[&one, &other], true).ok())
        .flatten();
    let batched = together.as_ref().is_some_and(|together| {
        together
            .get(main)
            .zip(alone.get(main))
            .zip(other_alone.get(main))
            .is_some_and(|((pair, first), second)| is_pair(pair, first, second))
    });
    let together = together.filter(|_| batched);
    if let Some(together) = &together {
        *graph = relaxed;
        let behind_batch = shapes_with_batch(graph, &alone, together);
        let input = graph.input()?.name.clone();
        graph.reshape(|node| {
            let data = node.input.first()?;
            let has_batch = *data == input || Seen::are_batches(alone.get(data), together.get(data));
            let rest = behind_batch.get(node.input.get(1)?);
            rest.filter(|_| has_batch).cloned()
        });
    }
    graph.fold(shapes_to_fold(graph, &alone, together.as_ref()));
    let shapes = alone
        .iter()
        .filter_map(|(name, value)| match value {
            Seen::Floats { extents, .. } if extents.first() == Some(&1) => {
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
    file: &Arc<[u8]>,
    shape: &[usize],
    rows: &[&Vec<f32>],
    batched: bool,
) -> Result<Values> {
    // Not optimized: every tensor is looked at, none may be computed away.
    let session = Session::new(runtime, &graph.opened(shape, batched)?, file, None)?;
    let extents: Vec<usize> = std::iter::once(rows.len()).chain(shape.iter().copied()).collect();
    let elements: Vec<f32> = rows.iter().flat_map(|row| row.iter().copied()).collect();
    let seen = session.run(&extents, &elements, |name, value| {
        (name.to_owned(), Seen::of(value))
    })?;
    Ok(seen.into_iter().collect())
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
            Seen::Integers(extents, elements) => Some((name.clone(), weight(name, extents, elements))),
            _ => None,
        })
        .collect()
}

/// The tensors that depend on shapes alone and are the batch with something behind it that stays: that, by name.
fn shapes_with_batch(graph: &Graph, alone: &Values, together: &Values) -> HashMap<String, Vec<i64>> {
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

/// Whether `pair` is `first` and `second` behind one another along the batch axis.
fn is_pair(pair: &Seen, first: &Seen, second: &Seen) -> bool {
    let (Some((extents, [of_first, of_second])), Some((alone, [first])), Some((other, [second]))) =
        (pair.rows(), first.rows(), second.rows())
    else {
        return false;
    };
    extents == alone && extents == other && of_first.is_close(first) && of_second.is_close(second)
}

impl Seen {
    fn of(value: &Value<'_>) -> Self {
        match value {
            Value::Floats(extents, elements) => {
                let size = elements.len() / extents.first().copied().unwrap_or(1).max(1);
                Self::Floats {
                    extents: extents.clone(),
                    finite: elements.iter().all(|element| element.is_finite()),
                    rows: elements.chunks(size.max(1)).take(2).map(Row::of).collect(),
                }
            }
            Value::Integers(extents, elements) => Self::Integers(extents.clone(), elements.to_vec()),
            Value::Other => Self::Other,
        }
    }

    /// Whether these are a tensor of one sample and of two.
    fn are_batches(one: Option<&Self>, two: Option<&Self>) -> bool {
        let batch = |seen: Option<&Self>| match seen {
            Some(Self::Floats { extents, .. }) => extents.first().copied(),
            _ => None,
        };
        (batch(one), batch(two)) == (Some(1), Some(2))
    }

    /// The extents of a row, and as many rows as the batch has.
    fn rows<const COUNT: usize>(&self) -> Option<(&[usize], &[Row; COUNT])> {
        match self {
            Self::Floats { extents, rows, .. } if extents.first() == Some(&COUNT) => {
                Some((&extents[1..], rows.as_slice().try_into().ok()?))
            }
            _ => None,
        }
    }
}

impl Row {
    fn of(elements: &[f32]) -> Self {
        let largest = |largest: f32, element: &f32| largest.max(element.abs());
        // Odd, so that it walks through the columns of an image.
        let stride = elements.len().div_ceil(KEPT) | 1;
        Self {
            largest: elements.iter().fold(0_f32, largest),
            some: elements.iter().copied().step_by(stride).collect(),
        }
    }

    fn is_close(&self, expected: &Self) -> bool {
        let pairs = self.some.iter().zip(&expected.some);
        // A NaN is close to nothing.
        let differences = pairs.map(|(found, expected)| (found - expected).abs());
        self.some.len() == expected.some.len()
            && differences
                .into_iter()
                .all(|difference| difference <= TOLERANCE * expected.largest)
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
