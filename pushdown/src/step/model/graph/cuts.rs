//! Where a graph falls into two with a single tensor between them.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::NodeProto;
use serde::{Deserialize, Serialize};

use super::{Flow, Graph, inner, reads};

/// Elementwise operators that ONNX Runtime computes together with what is before them: cutting there changes how the
/// rest is rounded.
const FUSED_BEHIND: [&str; 17] = [
    "Add",
    "BatchNormalization",
    "Clip",
    "Elu",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Mul",
    "PRelu",
    "Relu",
    "Selu",
    "Sigmoid",
    "Softplus",
    "Sum",
    "Tanh",
];
/// What they are computed together with.
const FUSED_BEFORE: [&str; 9] = [
    "Add",
    "BatchNormalization",
    "Conv",
    "ConvTranspose",
    "Gemm",
    "MatMul",
    "Mul",
    "Sigmoid",
    "Sum",
];

/// The tensors at which a graph can be cut, in the order in which they are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::step::model) struct Cuts {
    /// Names of the tensors, the target last.
    pub(in crate::step::model) tensors: Vec<String>,
    /// Tensors that separate input and target but are no cuts.
    pub(in crate::step::model) left_out: Vec<LeftOut>,
}

/// A tensor that is no cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub tensor: String,
    /// Why.
    pub reason: String,
}

impl Graph {
    /// The cuts on the way to `target`.
    ///
    /// A tensor separates input and target when it is the only one that is made before and read behind some place in
    /// the order of the nodes. Any order shows the same ones: whatever is needed and stands before a separating tensor
    /// leads to it, and whatever is behind follows from it.
    pub(in crate::step::model) fn cuts(&self, target: &str) -> Cuts {
        let flows = self.flows();
        let carried = |name: &str| matches!(flows.get(name), Some(Flow::Data | Flow::Shape));
        let needed = self.needed(None, [target]);
        let nodes: Vec<_> = self
            .nodes()
            .iter()
            .enumerate()
            .filter(|(index, _)| needed.contains(index))
            .map(|(_, node)| node)
            .collect();
        let readers = readers_of(&nodes);
        let alone = self.alone(&nodes, &readers, target, carried);
        let mut cuts = Cuts::default();
        for (node, alone) in nodes.iter().zip(alone) {
            cuts.left_out.extend(made_inside(node));
            let Some(name) = alone else { continue };
            let behind = readers.get(name).map_or(&[][..], Vec::as_slice);
            match fused(node, behind.iter().map(|place| nodes[*place])) {
                Some(reason) if name != target => cuts.left_out.push(LeftOut {
                    tensor: name.to_owned(),
                    reason,
                }),
                _ => cuts.tensors.push(name.to_owned()),
            }
        }
        cuts
    }

    /// The tensors that may be [`cuts`](Self::cuts) once what depends on shapes alone is folded: what computed it is gone
    /// then, and no other tensor has become a cut.
    pub(in crate::step::model) fn possible_cuts(&self, target: &str) -> HashSet<String> {
        let flows = self.flows();
        let of_data = |name: &str| flows.get(name) == Some(&Flow::Data);
        let mut wanted: HashSet<&str> = HashSet::from([target]);
        let mut nodes: Vec<&NodeProto> = Vec::new();
        for node in self.nodes().iter().rev() {
            if node.output.iter().any(|output| wanted.contains(output.as_str())) {
                wanted.extend(reads(node).into_iter().filter(|name| of_data(name)));
                nodes.push(node);
            }
        }
        nodes.reverse();
        let alone = self.alone(&nodes, &readers_of(&nodes), target, of_data);
        // Those who ask for its shape as well: without them a group may come to be one, and none ceases to be one.
        let all: Vec<&NodeProto> = self.nodes().iter().collect();
        let readers = readers_of(&all);
        let possible = nodes.iter().zip(alone).filter_map(|(node, alone)| {
            let name = alone?;
            let behind = readers.get(name).map_or(&[][..], Vec::as_slice);
            let fused = fused(node, behind.iter().map(|place| all[*place]));
            (name == target || fused.is_none()).then(|| name.to_owned())
        });
        possible.collect()
    }

    /// For each node, in their order, the tensor that it makes and that alone is carried on behind it, if there is one.
    fn alone<'a>(
        &'a self,
        nodes: &[&'a NodeProto],
        readers: &HashMap<&str, Vec<usize>>,
        target: &str,
        carried: impl Fn(&str) -> bool,
    ) -> Vec<Option<&'a str>> {
        let last_read = |name: &str| match readers.get(name) {
            _ if name == target => usize::MAX,
            Some(places) => places.last().copied().unwrap_or(0),
            None => 0,
        };
        let mut live: HashSet<&'a str> = self.graph.input.iter().map(|input| input.name.as_str()).collect();
        let behind = |(place, node): (usize, &'a NodeProto)| {
            let made = node.output.iter().map(String::as_str);
            live.extend(made.filter(|name| carried(name)));
            live.retain(|name| last_read(name) > place);
            let name = live.iter().next().copied().filter(|_| live.len() == 1)?;
            node.output.iter().any(|output| output == name).then_some(name)
        };
        nodes.iter().copied().enumerate().map(behind).collect()
    }
}

/// Who reads each tensor, by the place among these nodes.
fn readers_of<'a>(nodes: &[&'a NodeProto]) -> HashMap<&'a str, Vec<usize>> {
    let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, node) in nodes.iter().copied().enumerate() {
        for name in reads(node) {
            readers.entry(name).or_default().push(place);
        }
    }
    readers
}

/// The tensors of the graphs inside a node.
fn made_inside(node: &NodeProto) -> Vec<LeftOut> {
    let nodes = inner(node).flat_map(|graph| &graph.node);
    let made = nodes.flat_map(|within| {
        let own = within.output.iter().filter(|tensor| !tensor.is_empty());
        let own = own.map(|tensor| LeftOut {
            tensor: tensor.clone(),
            reason: format!("it is made inside of `{}`, which is not cut", node.op_type),
        });
        own.chain(made_inside(within))
    });
    made.collect()
}

/// Why the tensor that `maker` makes for `readers` lies inside of a group that is computed as one.
fn fused<'a>(maker: &NodeProto, readers: impl Iterator<Item = &'a NodeProto> + Clone) -> Option<String> {
    let operator = |node: &NodeProto, group: &[&str]| group.contains(&node.op_type.as_str());
    // Padding goes into the convolution behind it, all else into what is before it.
    let within = if maker.op_type == "Pad" {
        readers
            .clone()
            .all(|reader| operator(reader, &["Conv", "MaxPool", "AveragePool"]))
    } else {
        operator(maker, &FUSED_BEFORE) && readers.clone().all(|reader| operator(reader, &FUSED_BEHIND))
    };
    let reader = readers.into_iter().next().filter(|_| within)?;
    Some(format!(
        "`{}` and the `{}` behind it are computed as one",
        maker.op_type, reader.op_type
    ))
}
