//! A network in memory: its parts from one place to another, made when they are first run.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    graph::{Graph, LeftOut, Seam, input_shape},
    network::{CutPoint, Place, Port, weights_between},
    probe::{Probe, probe},
    session::{Runtime, Session, Value},
    trim::give_back,
};
use crate::{DType, Error, Layout, Result, Tensor};

/// The most bytes that a network may have.
pub const MAX_MODEL_BYTES: usize = 2 << 30;
/// Parts that are kept, the last ones used: each has weights of its own.
const MAX_PARTS: usize = 4;

/// A network whose weights are here.
#[derive(Debug)]
pub(super) struct Loaded {
    graph: Graph,
    /// Size of the file that the graph was read from.
    bytes: usize,
    input: Seam,
    cuts: Vec<Seam>,
    /// What is known of the cuts.
    points: Vec<CutPoint>,
    batched: bool,
    runtime: Runtime,
    /// The last one used stands last.
    parts: Mutex<Vec<Part>>,
}

/// Layers that have been run.
#[derive(Debug)]
struct Part {
    /// From where to where.
    reach: (Place, usize),
    session: Arc<Session>,
    /// Of the model, in every copy of it.
    bytes: usize,
}

/// What looking at a network shows.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) input: Port,
    pub(super) output: Option<Port>,
    pub(super) cut_points: Vec<CutPoint>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) batched: bool,
    pub(super) working_bytes: u64,
}

impl Loaded {
    /// Reads an ONNX model and runs it on noise.
    pub(super) fn open(runtime: &Runtime, bytes: &[u8]) -> Result<(Self, Facts)> {
        let opened = Self::look(runtime, bytes);
        give_back();
        opened
    }

    fn look(runtime: &Runtime, bytes: &[u8]) -> Result<(Self, Facts)> {
        if bytes.len() > MAX_MODEL_BYTES {
            return Err(Error::too_large(format!(
                "a network of {} bytes is more than the limit of {MAX_MODEL_BYTES}",
                bytes.len()
            )));
        }
        let mut graph = Graph::read(bytes)?;
        let input = Seam {
            tensor: graph.input()?.name.clone(),
            shape: input_shape(graph.input()?)?,
        };
        let Probe { shapes, batched } = probe(runtime, &mut graph, &input.shape)?;
        let output = graph.outputs().next().unwrap_or_default().to_owned();
        let found = graph.cuts(&output);
        let mut left_out = found.left_out;
        let costs = graph.costs(&shapes);
        let mut cut_points = Vec::new();
        for tensor in found.tensors {
            let Some(shape) = shapes.get(&tensor) else {
                let reason = "it is no tensor of f32 with the batch as its first axis".to_owned();
                left_out.push(LeftOut { tensor, reason });
                continue;
            };
            let elements: usize = shape.iter().product();
            let cost = costs.up_to(&graph, &tensor);
            cut_points.push(CutPoint {
                shape: shape.clone(),
                bytes: elements as u64 * DType::F32.size() as u64,
                parameters: cost.parameters,
                macs: cost.macs,
                tensor,
            });
        }
        if cut_points.last().is_none_or(|cut| cut.tensor != output) {
            return Err(Error::model(format!(
                "the output `{output}` does not have the batch as its first axis"
            )));
        }
        let seam = |cut: &CutPoint| Seam {
            tensor: cut.tensor.clone(),
            shape: cut.shape.clone(),
        };
        let port = |seam: &Seam| Port {
            tensor: seam.tensor.clone(),
            shape: seam.shape.clone(),
        };
        let cuts: Vec<Seam> = cut_points.iter().map(seam).collect();
        let points = cut_points.clone();
        let facts = Facts {
            input: port(&input),
            output: cuts.last().map(port),
            cut_points,
            left_out,
            batched,
            working_bytes: graph.working_bytes(&input, &shapes),
        };
        let loaded = Self {
            graph,
            bytes: bytes.len(),
            input,
            cuts,
            points,
            batched,
            runtime: runtime.clone(),
            parts: Mutex::default(),
        };
        Ok((loaded, facts))
    }

    /// Bytes that the graph and the copies of its parts hold, about. No one waits for a part that is being made.
    pub(super) fn held_bytes(&self) -> usize {
        let parts = self.parts.try_lock();
        let parts = parts.map_or(0, |parts| parts.iter().map(|part| part.bytes).sum());
        self.bytes + parts
    }

    /// Runs the layers between two places on values of the first.
    pub(super) fn run(&self, from: Place, to: usize, batch: &[Tensor]) -> Result<Vec<Tensor>> {
        let (start, end) = (self.seam(from)?, self.seam(Place::Cut(to))?);
        for value in batch {
            check_value(value, start)?;
        }
        if from >= Place::Cut(to) {
            return Ok(batch.to_vec());
        }
        let part = self.part(from, to)?;
        let together = if self.batched { batch.len().max(1) } else { 1 };
        let mut outputs = Vec::with_capacity(batch.len());
        for batch in batch.chunks(together) {
            let extents: Vec<usize> = std::iter::once(batch.len())
                .chain(start.shape.iter().copied())
                .collect();
            let mut elements = Vec::new();
            for value in batch {
                elements.extend_from_slice(&value.values::<f32>());
            }
            let expected: Vec<usize> = std::iter::once(batch.len())
                .chain(end.shape.iter().copied())
                .collect();
            let read = |_: &str, value: &Value<'_>| match value {
                Value::Floats(found, floats) if *found == expected => {
                    let rows = floats.chunks_exact((floats.len() / batch.len().max(1)).max(1));
                    Ok(rows
                        .map(|row| Tensor::from_values(Layout::Flat, end.shape.clone(), row.to_vec()))
                        .collect::<Vec<_>>())
                }
                Value::Floats(found, _) => Err(Error::model(format!(
                    "ONNX Runtime gave the shape {found:?}, expected {expected:?}"
                ))),
                _ => Err(Error::model("ONNX Runtime gave no tensor of f32")),
            };
            let mut read = part.run(&extents, &elements, read)?.into_iter();
            let missing = || Err(Error::model("ONNX Runtime gave no output"));
            outputs.extend(read.next().unwrap_or_else(missing)?);
        }
        Ok(outputs)
    }

    fn seam(&self, place: Place) -> Result<&Seam> {
        match place {
            Place::Input => Ok(&self.input),
            Place::Cut(index) => self
                .cuts
                .get(index)
                .ok_or_else(|| Error::internal(format!("cut {index} of {}", self.cuts.len()))),
        }
    }

    /// The session of a part. Others wait while one is made.
    fn part(&self, from: Place, to: usize) -> Result<Arc<Session>> {
        let reach = (from, to);
        let mut parts = self.parts.lock();
        let part = if let Some(index) = parts.iter().position(|part| part.reach == reach) {
            parts.remove(index)
        } else {
            let (start, end) = (self.seam(from)?, self.seam(Place::Cut(to))?);
            let model = self.graph.part(start, end, self.batched)?;
            if parts.len() == MAX_PARTS {
                parts.remove(0);
            }
            let weights = weights_between(&self.points, from, to);
            let session = Arc::new(Session::new(&self.runtime, &model, Some(weights))?);
            let bytes = model.len() * session.copies();
            drop(model);
            give_back();
            Part {
                reach,
                session,
                bytes,
            }
        };
        let session = Arc::clone(&part.session);
        parts.push(part);
        Ok(session)
    }
}

fn check_value(value: &Tensor, seam: &Seam) -> Result<()> {
    if value.dtype() == DType::F32 && value.shape() == seam.shape {
        return Ok(());
    }
    Err(Error::unsuitable(format!(
        "takes f32 of the shape {:?} at `{}`, found {} of {:?}",
        seam.shape,
        seam.tensor,
        value.dtype(),
        value.shape()
    )))
}
