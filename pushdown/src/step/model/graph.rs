//! A model's graph: read without trust, reduced to what its outputs need, and cut in two.
//!
//! Everything here is a matter of names and nodes. Shapes come from running the model once
//! ([`probe`](super::probe)), which also folds what depends on shapes alone.

mod aside;
mod check;
mod cost;
mod cuts;
mod external;
mod extract;
mod simplify;

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{GraphProto, ModelProto, NodeProto, SparseTensorProto, ValueInfoProto};

pub(super) use aside::FILE;
pub(super) use check::{FLOAT, input_shape};
pub use cuts::LeftOut;
pub(super) use external::data_files;
pub(super) use extract::{Excerpt, Seam};

use super::files::Files;
use crate::Result;

/// ONNX's number for i64.
pub(super) const INT64: i32 = 7;

/// A graph with one input, whose nodes are in the order in which they can run. The numbers of its large weights are in the
/// files that it was read from.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    /// The model without its graph: versions and operator sets.
    header: ModelProto,
    graph: GraphProto,
}

/// What a tensor's value depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// Nothing: a weight, or computed from weights.
    Constant,
    /// Shapes only.
    Shape,
    /// The input.
    Data,
}

impl Graph {
    /// Reads an ONNX file and what is beside it.
    ///
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for what is no model, for operators outside ONNX's own set,
    /// for weights that the files do not have, and for anything but one input of floats;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) for weights beyond the limit.
    pub(super) fn read(files: &Files) -> Result<Self> {
        let mut header = aside::scan(&files.model)?;
        let mut graph = header.graph.take().unwrap_or_default();
        external::resolve(&mut graph, &files.data)?;
        check::check(&header, &graph)?;
        simplify::constants_are_weights(&mut graph);
        simplify::constants_are_no_inputs(&mut graph);
        check::single_input(&graph)?;
        check::not_training(&graph)?;
        simplify::drop_copies(&mut graph);
        header.metadata_props.clear();
        let mut graph = Self { header, graph };
        graph.prune();
        Ok(graph)
    }

    pub(super) fn nodes(&self) -> &[NodeProto] {
        &self.graph.node
    }

    /// The input, as it is declared.
    pub(super) fn input(&self) -> Result<&ValueInfoProto> {
        check::single_input(&self.graph)
    }

    /// Names of the outputs, the main one first.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.graph.output.iter().map(|output| output.name.as_str())
    }

    /// The shapes of the weights by name, of those that are stored without their zeros, too.
    fn weights(&self) -> HashMap<&str, &[i64]> {
        let weights = self.graph.initializer.iter();
        let weights = weights.map(|weight| (weight.name.as_str(), weight.dims.as_slice()));
        let sparse = self.graph.sparse_initializer.iter();
        let sparse = sparse.map(|weight| (name_of(weight), weight.dims.as_slice()));
        weights.chain(sparse).collect()
    }

    /// What each tensor depends on.
    pub(super) fn flows(&self) -> HashMap<&str, Flow> {
        let graph = &self.graph;
        let mut flows: HashMap<&str, Flow> = graph
            .initializer
            .iter()
            .map(|weight| (weight.name.as_str(), Flow::Constant))
            .chain(graph.input.iter().map(|input| (input.name.as_str(), Flow::Data)))
            .collect();
        for node in &graph.node {
            let inputs = || {
                reads(node)
                    .into_iter()
                    .filter_map(|name| flows.get(name).copied())
            };
            let flow = if inputs().all(|flow| flow == Flow::Constant) {
                Flow::Constant
            } else if matches!(node.op_type.as_str(), "Shape" | "Size")
                || inputs().all(|flow| flow != Flow::Data)
            {
                Flow::Shape
            } else {
                Flow::Data
            };
            flows.extend(node.output.iter().map(|output| (output.as_str(), flow)));
        }
        flows
    }

    /// Whether what is computed, or how often, depends on the input: for the samples of a batch together, which is not
    /// what each of them would have alone. A `Loop` decides inside of itself.
    pub(super) fn decides_by_data(&self) -> bool {
        let flows = self.flows();
        let of_data = |name: &String| flows.get(name.as_str()) == Some(&Flow::Data);
        self.nodes().iter().any(|node| match node.op_type.as_str() {
            "If" => node.input.first().is_some_and(of_data),
            "Loop" => reads(node)
                .iter()
                .any(|name| flows.get(name) == Some(&Flow::Data)),
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
            .retain(|weight| read.contains(name_of(weight)));
        graph.value_info.clear();
    }

    /// Indices of the nodes that `targets` need when `from` is given.
    fn needed<'a>(
        &'a self,
        from: Option<&str>,
        targets: impl IntoIterator<Item = &'a str>,
    ) -> HashSet<usize> {
        let mut wanted: HashSet<&str> = targets.into_iter().filter(|name| Some(*name) != from).collect();
        let mut needed = HashSet::new();
        for (index, node) in self.nodes().iter().enumerate().rev() {
            if node.output.iter().any(|output| wanted.contains(output.as_str())) {
                needed.insert(index);
                wanted.extend(reads(node).into_iter().filter(|name| Some(*name) != from));
            }
        }
        needed
    }
}

/// By what name nodes know a weight that is stored without its zeros.
fn name_of(weight: &SparseTensorProto) -> &str {
    &weight.values.name
}

/// What a node reads: its inputs, and what the graphs inside it (`If`, `Loop`, `Scan`) take from around them.
pub(super) fn reads(node: &NodeProto) -> Vec<&str> {
    let mut names: Vec<&str> = node
        .input
        .iter()
        .map(String::as_str)
        .filter(|name| !name.is_empty())
        .collect();
    for graph in inner(node) {
        let inside = graph.node.iter().flat_map(reads);
        names.extend(inside.chain(graph.output.iter().map(|output| output.name.as_str())));
    }
    names
}

/// The graphs inside a node.
fn inner(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    let attributes = node.attribute.iter();
    attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}
