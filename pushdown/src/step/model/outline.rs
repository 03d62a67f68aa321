//! A model without its weights: what a look at it shows. It costs runs and a copy of the weights, and takes little room.

use super::{
    files::Files,
    graph::{Excerpt, Graph, LeftOut, Seam, input_shape},
    onnx_model::{CutPoint, Place, Port, weights_between},
    probe::{Probe, probe},
    session::Runtime,
    trim::give_back,
};
use crate::{DType, Error, Result};

/// The most bytes that the files of a model may have together: of one message ONNX can have no more.
pub const MAX_MODEL_BYTES: usize = 2 << 30;

/// A model that was looked at.
#[derive(Debug)]
pub(super) struct Outline {
    graph: Graph,
    input: Seam,
    cuts: Vec<Seam>,
    /// What is known of the cuts.
    points: Vec<CutPoint>,
    batched: bool,
}

/// What is told of it.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) input: Port,
    pub(super) output: Option<Port>,
    pub(super) cut_points: Vec<CutPoint>,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) batched: bool,
    pub(super) working_bytes: u64,
}

impl Outline {
    /// Reads a model's files and runs it on noise.
    pub(super) fn look(runtime: &Runtime, files: &Files) -> Result<(Self, Facts)> {
        let looked = Self::of(runtime, files);
        give_back();
        looked
    }

    fn of(runtime: &Runtime, files: &Files) -> Result<(Self, Facts)> {
        let bytes = files.bytes();
        if bytes > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "a model of {bytes} bytes is more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        let mut graph = Graph::read(files)?;
        let input = Seam {
            tensor: graph.input()?.name.clone(),
            shape: input_shape(graph.input()?)?,
        };
        let Probe { shapes, batched } = probe(runtime, &mut graph, files, &input.shape)?;
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
        let outline = Self {
            graph,
            input,
            cuts,
            points,
            batched,
        };
        Ok((outline, facts))
    }

    /// How many of so many samples run at once.
    pub(super) const fn together(&self, samples: usize) -> usize {
        if self.batched && samples > 0 { samples } else { 1 }
    }

    /// The tensor at a place.
    pub(super) fn seam(&self, place: Place) -> Result<&Seam> {
        match place {
            Place::Input => Ok(&self.input),
            Place::Cut(index) => self
                .cuts
                .get(index)
                .ok_or_else(|| Error::internal(format!("cut {index} of {}", self.cuts.len()))),
        }
    }

    /// The layers between two places.
    pub(super) fn part(&self, from: Place, to: usize) -> Result<Excerpt> {
        let (start, end) = (self.seam(from)?, self.seam(Place::Cut(to))?);
        self.graph.part(start, end, self.batched)
    }

    /// Bytes of the weights between two places, about.
    pub(super) fn weights(&self, from: Place, to: usize) -> u64 {
        weights_between(&self.points, from, to)
    }
}
