//! A model's graph: read from an untrusted file, reduced to what its outputs need, and cut in two.
//!
//! This module deals with names and nodes only. [`probe`](super::probe) runs the model to find shapes, and folds what
//! depends on shapes alone.

mod check;
mod cost;
mod cuts;
mod external;
mod extract;
mod simplify;
mod strip_weights;

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{GraphProto, ModelProto, NodeProto, SparseTensorProto, ValueInfoProto};

pub(super) use check::{FLOAT, input_shape};
pub use cuts::ExcludedTensor;
pub(super) use external::data_files;
pub(super) use extract::Submodel;
pub(super) use strip_weights::MODEL_FILE;

use super::files::ModelFiles;
use pushdown_core::Result;

/// ONNX's number for i64.
pub(super) const INT64: i32 = 7;

/// A graph with one input, whose nodes are in an order in which they can run. The data of its large weights stays in the files
/// from which it was read.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    /// The model without its graph: versions and operator sets.
    header: ModelProto,
    graph: GraphProto,
}

/// What the value of a tensor depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dependency {
    /// Nothing but weights.
    Constant,
    /// Shapes, and no other value of the input.
    Shape,
    /// The input.
    Data,
}

impl Graph {
    /// Reads an ONNX file and its data files.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a file that is not an ONNX model, for operators outside ONNX's
    /// own set, for weights that the files lack, and for anything but one input of f32;
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for weights above the limit.
    pub(super) fn read(files: &ModelFiles) -> Result<Self> {
        let mut header = strip_weights::parse(&files.model)?;
        let mut graph = header.graph.take().unwrap_or_default();
        external::resolve(&mut graph, &files.data)?;
        check::check(&header, &graph)?;
        simplify::constants_to_weights(&mut graph);
        simplify::remove_weights_from_inputs(&mut graph);
        check::single_input(&graph)?;
        check::check_no_training(&graph)?;
        simplify::drop_copies(&mut graph);
        header.metadata_props.clear();
        let mut graph = Self { header, graph };
        graph.prune();
        Ok(graph)
    }

    pub(super) fn nodes(&self) -> &[NodeProto] {
        &self.graph.node
    }

    /// The input as declared.
    pub(super) fn input(&self) -> Result<&ValueInfoProto> {
        check::single_input(&self.graph)
    }

    /// Names of the outputs, the main one first.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.graph.output.iter().map(|output| output.name.as_str())
    }

    /// The shapes of the weights by name, sparse ones included.
    fn weight_shapes(&self) -> HashMap<&str, &[i64]> {
        let weights = self.graph.initializer.iter();
        let weights = weights.map(|weight| (weight.name.as_str(), weight.dims.as_slice()));
        let sparse = self.graph.sparse_initializer.iter();
        let sparse = sparse.map(|weight| (sparse_name(weight), weight.dims.as_slice()));
        weights.chain(sparse).collect()
    }

    /// What each tensor depends on.
    pub(super) fn dependencies(&self) -> HashMap<&str, Dependency> {
        let graph = &self.graph;
        let mut dependencies: HashMap<&str, Dependency> = graph
            .initializer
            .iter()
            .map(|weight| (weight.name.as_str(), Dependency::Constant))
            .chain(
                graph
                    .input
                    .iter()
                    .map(|input| (input.name.as_str(), Dependency::Data)),
            )
            .collect();
        for node in &graph.node {
            let inputs = || {
                reads(node)
                    .into_iter()
                    .filter_map(|name| dependencies.get(name).copied())
            };
            let dependency = if inputs().all(|dependency| dependency == Dependency::Constant) {
                Dependency::Constant
            } else if matches!(node.op_type.as_str(), "Shape" | "Size")
                || inputs().all(|dependency| dependency != Dependency::Data)
            {
                Dependency::Shape
            } else {
                Dependency::Data
            };
            dependencies.extend(node.output.iter().map(|output| (output.as_str(), dependency)));
        }
        dependencies
    }

    /// Whether control flow depends on the input. Such a graph decides once per batch, where single runs decide for each
    /// sample. A `Loop` may decide inside its body, so anything that it reads counts.
    pub(super) fn has_data_dependent_control_flow(&self) -> bool {
        let dependencies = self.dependencies();
        let depends_on_data = |name: &String| dependencies.get(name.as_str()) == Some(&Dependency::Data);
        self.nodes().iter().any(|node| match node.op_type.as_str() {
            "If" => node.input.first().is_some_and(depends_on_data),
            "Loop" => reads(node)
                .iter()
                .any(|name| dependencies.get(name) == Some(&Dependency::Data)),
            _ => false,
        })
    }

    /// Drops the nodes and weights that no output needs.
    fn prune(&mut self) {
        let outputs: Vec<String> = self.outputs().map(str::to_owned).collect();
        let needed = self.needed(None, outputs.iter().map(String::as_str));
        let graph = &mut self.graph;
        let mut index = 0;
        graph.node.retain(|_| {
            index += 1;
            needed.contains(&(index - 1))
        });
        let read: HashSet<String> = graph.node.iter().flat_map(reads).map(str::to_owned).collect();
        graph.initializer.retain(|weight| read.contains(&weight.name));
        graph
            .sparse_initializer
            .retain(|weight| read.contains(sparse_name(weight)));
        graph.value_info.clear();
    }

    /// Indices of the nodes that compute `targets`. Nodes before `from`, if given, do not count.
    fn needed<'a>(
        &'a self,
        from: Option<&str>,
        targets: impl IntoIterator<Item = &'a str>,
    ) -> HashSet<usize> {
        let mut needed_tensors: HashSet<&str> =
            targets.into_iter().filter(|name| Some(*name) != from).collect();
        let mut needed = HashSet::new();
        for (index, node) in self.nodes().iter().enumerate().rev() {
            if node
                .output
                .iter()
                .any(|output| needed_tensors.contains(output.as_str()))
            {
                needed.insert(index);
                needed_tensors.extend(reads(node).into_iter().filter(|name| Some(*name) != from));
            }
        }
        needed
    }
}

/// The name of a sparse weight.
fn sparse_name(weight: &SparseTensorProto) -> &str {
    &weight.values.name
}

/// The names that a node reads: its inputs, and what its subgraphs (`If`, `Loop`, `Scan`) read from the enclosing graph.
pub(super) fn reads(node: &NodeProto) -> Vec<&str> {
    let mut names: Vec<&str> = node
        .input
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    for graph in subgraphs(node) {
        let inside = graph.node.iter().flat_map(reads);
        names.extend(inside.chain(graph.output.iter().map(|output| output.name.as_str())));
    }
    names
}

/// The subgraphs of a node.
fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    let attributes = node.attribute.iter();
    attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}
