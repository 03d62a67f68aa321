//! Weights and multiplications, counted from shapes.

use std::collections::HashMap;

use onnx_protobuf::NodeProto;

use super::{Graph, Seam, reads};

/// What the nodes of a graph cost, by their index.
#[derive(Debug)]
pub(in crate::step::model) struct Costs {
    macs: Vec<u64>,
}

/// What a part costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::step::model) struct Cost {
    /// Elements of its weights.
    pub(in crate::step::model) parameters: u64,
    /// Multiplications with addition of its convolutions and matrix products, for one sample.
    pub(in crate::step::model) macs: u64,
}

impl Graph {
    /// Counts by the shapes of the nodes' outputs, which stand there without the batch axis.
    pub(in crate::step::model) fn costs(&self, shapes: &HashMap<String, Vec<usize>>) -> Costs {
        let weights = self.weights();
        let macs = |node: &NodeProto| {
            let outputs: usize = shapes.get(node.output.first()?)?.iter().product();
            let weight = *weights.get(node.input.get(1)?.as_str())?;
            let per_output = match (node.op_type.as_str(), weight) {
                // Weights of output channels x input channels of a group x kernel.
                ("Conv", [_, rest @ ..]) => rest.iter().product(),
                ("ConvTranspose", [inputs, _, kernel @ ..]) => inputs * kernel.iter().product::<i64>(),
                ("Gemm", [rows, columns]) => {
                    if transposed(node) {
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
        Costs {
            macs: self.nodes().iter().map(|node| macs(node).unwrap_or(0)).collect(),
        }
    }
}

impl Graph {
    /// Bytes of the values that live at once while one sample runs, at most: each from the node that makes it to the
    /// last that reads it. Convolutions spread their input out, which takes as much again.
    pub(in crate::step::model) fn working_bytes(
        &self,
        input: &Seam,
        shapes: &HashMap<String, Vec<usize>>,
    ) -> u64 {
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
        let mut most = live;
        for (index, node) in self.nodes().iter().enumerate() {
            live += node.output.iter().map(|name| bytes(name)).sum::<u64>();
            most = most.max(live);
            let mut read = reads(node);
            read.sort_unstable();
            read.dedup();
            let done = read
                .into_iter()
                .filter(|name| last_reader.get(name) == Some(&index));
            live = live.saturating_sub(done.map(bytes).sum());
        }
        2 * most
    }
}

impl Costs {
    /// What computing `tensor` from the input costs.
    pub(in crate::step::model) fn up_to(&self, graph: &Graph, tensor: &str) -> Cost {
        let needed = graph.needed(None, [tensor]);
        let mut weights = graph.weights();
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

fn transposed(node: &NodeProto) -> bool {
    node.attribute
        .iter()
        .any(|attribute| attribute.name == "transB" && attribute.i == 1)
}
