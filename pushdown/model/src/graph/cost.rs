//! Weights and multiply-accumulate operations, counted from shapes.

use std::collections::HashMap;

use onnx_protobuf::NodeProto;

use super::{Graph, reads};
use crate::TensorSpec;

/// Costs of the nodes of a graph, by their index.
#[derive(Debug)]
pub(crate) struct NodeCosts {
    macs: Vec<u64>,
}

/// The cost of a part of a graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Number of elements of its weights.
    pub(crate) parameters: u64,
    /// Multiply-accumulate operations of its convolutions and matrix products, for one sample.
    pub(crate) macs: u64,
}

impl Graph {
    /// Counts by the shapes of the nodes' outputs, without the batch axis.
    pub(crate) fn costs(&self, shapes: &HashMap<String, Vec<usize>>) -> NodeCosts {
        let weights = self.weight_shapes();
        let macs = |node: &NodeProto| {
            let outputs: usize = shapes.get(node.output.first()?)?.iter().product();
            let weight = *weights.get(node.input.get(1)?.as_str())?;
            let per_output = match (node.op_type.as_str(), weight) {
                // The weight is output channels x input channels of a group x kernel.
                ("Conv", [_, rest @ ..]) => rest.iter().product(),
                ("ConvTranspose", [inputs, _, kernel @ ..]) => inputs * kernel.iter().product::<i64>(),
                ("Gemm", [rows, columns]) => {
                    if is_transposed(node) {
                        *columns
                    } else {
                        *rows
                    }
                }
                ("MatMul", [.., rows, _]) => *rows,
                _ => return None,
            };
            Some(outputs as u64 * u64::try_from(per_output).unwrap_or(0))
        };
        NodeCosts {
            macs: self.nodes().iter().map(|node| macs(node).unwrap_or(0)).collect(),
        }
    }
}

impl Graph {
    /// Maximum bytes of the values that are live at the same time while one sample runs. A value is live from the node that
    /// computes it to the last node that reads it. The sum is doubled: convolutions copy their input (im2col).
    pub(crate) fn working_bytes(&self, input: &TensorSpec, shapes: &HashMap<String, Vec<usize>>) -> u64 {
        let bytes = |name: &str| {
            let shape = if name == input.tensor {
                Some(&input.shape)
            } else {
                shapes.get(name)
            };
            shape.map_or(0, |shape| 4 * shape.iter().product::<usize>() as u64)
        };
        let mut last_reader: HashMap<&str, usize> = HashMap::new();
        for (index, node) in self.nodes().iter().enumerate() {
            last_reader.extend(reads(node).into_iter().map(|name| (name, index)));
        }
        let mut live = bytes(&input.tensor);
        let mut peak = live;
        for (index, node) in self.nodes().iter().enumerate() {
            live += node.output.iter().map(|name| bytes(name)).sum::<u64>();
            peak = peak.max(live);
            let mut read = reads(node);
            read.sort_unstable();
            read.dedup();
            let dead = read
                .into_iter()
                .filter(|name| last_reader.get(name) == Some(&index));
            live = live.saturating_sub(dead.map(bytes).sum());
        }
        2 * peak
    }
}

impl NodeCosts {
    /// The cost of computing `tensor` from the input.
    pub(crate) fn until(&self, graph: &Graph, tensor: &str) -> Cost {
        let needed = graph.needed(None, [tensor]);
        let mut weights = graph.weight_shapes();
        let mut cost = Cost::default();
        for (index, node) in graph
            .nodes()
            .iter()
            .enumerate()
            .filter(|(index, _)| needed.contains(index))
        {
            cost.macs += self.macs[index];
            for weight in reads(node).into_iter().filter_map(|name| weights.remove(name)) {
                let elements: i64 = weight.iter().product();
                cost.parameters += u64::try_from(elements).unwrap_or(0);
            }
        }
        cost
    }
}

fn is_transposed(node: &NodeProto) -> bool {
    node.attribute
        .iter()
        .any(|attribute| attribute.name == "transB" && attribute.i == 1)
}
