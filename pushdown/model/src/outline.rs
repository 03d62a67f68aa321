//! The outline of a model: its graph and cut points, without large weights. It is small, while the inspection that finds it
//! runs the model and holds a copy of the weights.

use super::{
    Boundary, CutPoint, ExcludedTensor, LayerRange, ModelFiles, Runtime, TensorSpec,
    graph::{Graph, Submodel, input_shape},
    probe::{Probe, probe},
    trim::trim_heap,
};
use pushdown_core::{DType, Error, Result};

/// Maximum total bytes of a model's files: an ONNX file is one Protocol Buffers message, which cannot be larger.
pub const MAX_MODEL_BYTES: usize = 2 << 30;

/// The outline of an inspected model.
#[derive(Debug)]
pub(super) struct Outline {
    graph: Graph,
    input: TensorSpec,
    cuts: Vec<TensorSpec>,
    points: Vec<CutPoint>,
    batched: bool,
}

/// What an inspection contributes to a model's description.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) input: TensorSpec,
    pub(super) output: Option<TensorSpec>,
    pub(super) cut_points: Vec<CutPoint>,
    pub(super) excluded: Vec<ExcludedTensor>,
    pub(super) batched: bool,
    pub(super) working_bytes: u64,
}

impl Outline {
    /// Reads a model's files and runs the model on noise.
    pub(super) fn inspect(runtime: &Runtime, files: &ModelFiles) -> Result<(Self, Facts)> {
        let result = Self::new(runtime, files);
        trim_heap();
        result
    }

    fn new(runtime: &Runtime, files: &ModelFiles) -> Result<(Self, Facts)> {
        let bytes = files.bytes();
        if bytes > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "a model of {bytes} bytes is more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        let mut graph = Graph::read(files)?;
        let input = TensorSpec {
            tensor: graph.input()?.name.clone(),
            shape: input_shape(graph.input()?)?,
        };
        let Probe { shapes, batched } = probe(runtime, &mut graph, files, &input.shape)?;
        let output = graph.outputs().next().unwrap_or_default().to_owned();
        let cuts = graph.cuts(&output);
        let mut excluded = cuts.excluded;
        let costs = graph.costs(&shapes);
        let mut cut_points = Vec::new();
        for tensor in cuts.tensors {
            let Some(shape) = shapes.get(&tensor) else {
                let reason = "it is not a tensor of f32 with the batch as its first axis".to_owned();
                excluded.push(ExcludedTensor { tensor, reason });
                continue;
            };
            let elements: usize = shape.iter().product();
            let cost = costs.until(&graph, &tensor);
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
        let spec = |cut: &CutPoint| TensorSpec {
            tensor: cut.tensor.clone(),
            shape: cut.shape.clone(),
        };
        let cuts: Vec<TensorSpec> = cut_points.iter().map(spec).collect();
        let points = cut_points.clone();
        let facts = Facts {
            input: input.clone(),
            output: cuts.last().cloned(),
            cut_points,
            excluded,
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

    /// How many of `samples` run at once. At least 1.
    pub(super) const fn batch_size(&self, samples: usize) -> usize {
        if self.batched && samples > 0 { samples } else { 1 }
    }

    /// The tensor at a boundary.
    pub(super) fn tensor(&self, boundary: Boundary) -> Result<&TensorSpec> {
        match boundary {
            Boundary::Input => Ok(&self.input),
            Boundary::Cut(index) => self
                .cuts
                .get(index)
                .ok_or_else(|| Error::internal(format!("cut {index} of {}", self.cuts.len()))),
        }
    }

    /// The layers of a range as a model.
    pub(super) fn submodel(&self, range: LayerRange) -> Result<Submodel> {
        let (from, to) = (self.tensor(range.from)?, self.tensor(Boundary::Cut(range.to))?);
        self.graph.submodel(from, to, self.batched)
    }

    /// Approximate bytes of the weights of a range.
    pub(super) fn weight_bytes(&self, range: LayerRange) -> u64 {
        range.weight_bytes(&self.points)
    }
}
