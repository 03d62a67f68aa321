//! Finds cut points: single tensors that separate a graph into two parts.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::NodeProto;
use serde::{Deserialize, Serialize};

use super::{Dependency, Graph, reads, subgraphs};

/// Elementwise operators that ONNX Runtime fuses into the operator before them. A cut between the two would change the
/// rounding.
const FUSED_CONSUMERS: [&str; 17] = [
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
/// Operators into which ONNX Runtime fuses those.
const FUSED_PRODUCERS: [&str; 9] = [
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

/// The tensors at which a graph can be cut, in the order in which they are computed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Names of the tensors, the target last.
    pub(crate) tensors: Vec<String>,
    /// Tensors that separate input and target but are not cut points.
    pub(crate) excluded: Vec<ExcludedTensor>,
}

/// A tensor that is not a cut point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExcludedTensor {
    /// Its name.
    pub tensor: String,
    /// The reason.
    pub reason: String,
}

impl Graph {
    /// The cuts between the input and `target`.
    ///
    /// A tensor separates input and target if, at some position in the order of the nodes, it is the only tensor that is
    /// computed before and read after. Every order of the nodes yields the same tensors: each needed node before a separating
    /// tensor leads to it, and each node after it depends on it.
    pub(crate) fn cuts(&self, target: &str) -> Cuts {
        let dependencies = self.dependencies();
        let is_live =
            |name: &str| matches!(dependencies.get(name), Some(Dependency::Data | Dependency::Shape));
        let needed = self.needed(None, [target]);
        let nodes: Vec<_> = self
            .nodes()
            .iter()
            .enumerate()
            .filter(|(index, _)| needed.contains(index))
            .map(|(_, node)| node)
            .collect();
        let readers = readers_of(&nodes);
        let separators = self.separators(&nodes, &readers, target, is_live);
        let mut cuts = Cuts::default();
        for (node, separator) in nodes.iter().zip(separators) {
            cuts.excluded.extend(subgraph_tensors(node));
            let Some(name) = separator else { continue };
            let consumers = readers.get(name).map_or(&[][..], Vec::as_slice);
            match fusion(node, consumers.iter().map(|index| nodes[*index])) {
                Some(reason) if name != target => cuts.excluded.push(ExcludedTensor {
                    tensor: name.to_owned(),
                    reason,
                }),
                _ => cuts.tensors.push(name.to_owned()),
            }
        }
        cuts
    }

    /// A superset of the [`cuts`](Self::cuts) that remain once everything that depends on shapes alone is folded: folding
    /// removes nodes, and adds no other cut.
    pub(crate) fn possible_cuts(&self, target: &str) -> HashSet<String> {
        let dependencies = self.dependencies();
        let depends_on_data = |name: &str| dependencies.get(name) == Some(&Dependency::Data);
        let mut needed_tensors: HashSet<&str> = HashSet::from([target]);
        let mut nodes: Vec<&NodeProto> = Vec::new();
        for node in self.nodes().iter().rev() {
            if node
                .output
                .iter()
                .any(|output| needed_tensors.contains(output.as_str()))
            {
                needed_tensors.extend(reads(node).into_iter().filter(|name| depends_on_data(name)));
                nodes.push(node);
            }
        }
        nodes.reverse();
        let separators = self.separators(&nodes, &readers_of(&nodes), target, depends_on_data);
        // Includes nodes that read only a tensor's shape. Folding removes them. That can create a fused group, but never breaks
        // one up: the result stays a superset.
        let all: Vec<&NodeProto> = self.nodes().iter().collect();
        let readers = readers_of(&all);
        let possible = nodes.iter().zip(separators).filter_map(|(node, separator)| {
            let name = separator?;
            let consumers = readers.get(name).map_or(&[][..], Vec::as_slice);
            let fusion = fusion(node, consumers.iter().map(|index| all[*index]));
            (name == target || fusion.is_none()).then(|| name.to_owned())
        });
        possible.collect()
    }

    /// For each node, in order, its output if that is the only live tensor after the node.
    fn separators<'a>(
        &'a self,
        nodes: &[&'a NodeProto],
        readers: &HashMap<&str, Vec<usize>>,
        target: &str,
        is_live: impl Fn(&str) -> bool,
    ) -> Vec<Option<&'a str>> {
        let last_read = |name: &str| match readers.get(name) {
            _ if name == target => usize::MAX,
            Some(places) => places.last().copied().unwrap_or(0),
            None => 0,
        };
        let mut live: HashSet<&'a str> = self.graph.input.iter().map(|input| input.name.as_str()).collect();
        let separator = |(index, node): (usize, &'a NodeProto)| {
            let outputs = node.output.iter().map(String::as_str);
            live.extend(outputs.filter(|name| is_live(name)));
            live.retain(|name| last_read(name) > index);
            let name = live.iter().next().copied().filter(|_| live.len() == 1)?;
            node.output.iter().any(|output| output == name).then_some(name)
        };
        nodes.iter().copied().enumerate().map(separator).collect()
    }
}

/// The readers of each tensor, as indices into `nodes`.
fn readers_of<'a>(nodes: &[&'a NodeProto]) -> HashMap<&'a str, Vec<usize>> {
    let mut readers: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, node) in nodes.iter().copied().enumerate() {
        for name in reads(node) {
            readers.entry(name).or_default().push(index);
        }
    }
    readers
}

/// The tensors of a node's subgraphs. Subgraphs are never cut.
fn subgraph_tensors(node: &NodeProto) -> Vec<ExcludedTensor> {
    let nodes = subgraphs(node).flat_map(|graph| &graph.node);
    let tensors = nodes.flat_map(|inner| {
        let own = inner.output.iter().filter(|tensor| !tensor.is_empty());
        let own = own.map(|tensor| ExcludedTensor {
            tensor: tensor.clone(),
            reason: format!("it is computed inside `{}`, which is not cut", node.op_type),
        });
        own.chain(subgraph_tensors(inner))
    });
    tensors.collect()
}

/// Why ONNX Runtime fuses `producer` with its `readers`, if it does.
fn fusion<'a>(producer: &NodeProto, readers: impl Iterator<Item = &'a NodeProto> + Clone) -> Option<String> {
    let is_one_of = |node: &NodeProto, group: &[&str]| group.contains(&node.op_type.as_str());
    // Padding is fused into the convolution or pooling after it, every other operator into the one before it.
    let is_fused = if producer.op_type == "Pad" {
        readers
            .clone()
            .all(|reader| is_one_of(reader, &["Conv", "MaxPool", "AveragePool"]))
    } else {
        is_one_of(producer, &FUSED_PRODUCERS)
            && readers.clone().all(|reader| is_one_of(reader, &FUSED_CONSUMERS))
    };
    let reader = readers.into_iter().next().filter(|_| is_fused)?;
    Some(format!(
        "ONNX Runtime fuses `{}` and the `{}` after it",
        producer.op_type, reader.op_type
    ))
}
