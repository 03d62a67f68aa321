//! Parts of a graph as models of their own.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{
    GraphProto, Message as _, ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};

use super::{Flow, Graph, aside, check::FLOAT, name_of, reads};
use crate::{Error, Result};

/// A tensor between two parts: its name, and its shape without the batch axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::step::model) struct Seam {
    pub(in crate::step::model) tensor: String,
    pub(in crate::step::model) shape: Vec<usize>,
}

/// A part of a graph.
#[derive(Debug)]
pub(in crate::step::model) struct Excerpt {
    /// A model, whose large weights are in the graph's files.
    pub(in crate::step::model) model: Vec<u8>,
    /// Bytes of all its weights, wherever they are.
    pub(in crate::step::model) bytes: usize,
}

impl Graph {
    /// The part from one tensor to another as a model with just the weights that it needs. Without `batched` its
    /// batch axis has the length 1.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal), for a defect.
    pub(in crate::step::model) fn part(&self, from: &Seam, to: &Seam, batched: bool) -> Result<Excerpt> {
        let needed = self.needed(Some(&from.tensor), [to.tensor.as_str()]);
        let nodes: Vec<_> = self
            .nodes()
            .iter()
            .enumerate()
            .filter(|(index, _)| needed.contains(index))
            .collect();
        let read: HashSet<&str> = nodes.iter().flat_map(|(_, node)| reads(node)).collect();
        let weights = self
            .graph
            .initializer
            .iter()
            .filter(|weight| read.contains(weight.name.as_str()));
        let sparse = self.graph.sparse_initializer.iter();
        let sparse = sparse.filter(|weight| read.contains(name_of(weight)));
        let in_file: usize = weights.clone().map(aside::bytes_of).sum();
        let model = self.write(GraphProto {
            name: self.graph.name.clone(),
            initializer: weights.cloned().collect(),
            sparse_initializer: sparse.cloned().collect(),
            input: vec![value_info(from, batched)],
            output: vec![value_info(to, batched)],
            node: nodes.into_iter().map(|(_, node)| node.clone()).collect(),
            ..GraphProto::default()
        })?;
        Ok(Excerpt {
            bytes: model.len() + in_file,
            model,
        })
    }

    /// The whole graph with every tensor that depends on the input as an output, for a look at their shapes, and at
    /// the values of those that are shapes.
    pub(in crate::step::model) fn opened(&self, shape: &[usize], batched: bool) -> Result<Vec<u8>> {
        let flows = self.flows();
        let made = self.nodes().iter().flat_map(|node| &node.output);
        let output = made
            .filter(|name| matches!(flows.get(name.as_str()), Some(Flow::Data | Flow::Shape)))
            .map(|name| ValueInfoProto {
                name: name.clone(),
                ..ValueInfoProto::default()
            })
            .collect();
        let input = Seam {
            tensor: self.input()?.name.clone(),
            shape: shape.to_vec(),
        };
        self.write(GraphProto {
            input: vec![value_info(&input, batched)],
            output,
            ..self.graph.clone()
        })
    }

    fn write(&self, graph: GraphProto) -> Result<Vec<u8>> {
        let model = ModelProto {
            graph: Some(graph).into(),
            ..self.header.clone()
        };
        model
            .write_to_bytes()
            .map_err(|error| Error::internal(format!("an ONNX model that cannot be written: {error}")))
    }

    /// Puts weights in the place of the nodes that made them.
    pub(in crate::step::model) fn fold(&mut self, values: HashMap<String, TensorProto>) {
        self.graph
            .node
            .retain(|node| !node.output.iter().any(|output| values.contains_key(output)));
        self.graph.initializer.extend(values.into_values());
        self.prune();
    }
}

fn value_info(seam: &Seam, batched: bool) -> ValueInfoProto {
    let dimension = |value| Dimension {
        value: Some(value),
        ..Dimension::default()
    };
    let batch = if batched {
        dimension::Value::DimParam("N".to_owned())
    } else {
        dimension::Value::DimValue(1)
    };
    let extents = seam
        .shape
        .iter()
        .map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX));
    let shape = TensorShapeProto {
        dim: std::iter::once(batch)
            .chain(extents.map(dimension::Value::DimValue))
            .map(dimension)
            .collect(),
        ..TensorShapeProto::default()
    };
    let tensor = type_proto::Tensor {
        elem_type: FLOAT,
        shape: Some(shape).into(),
        ..type_proto::Tensor::default()
    };
    ValueInfoProto {
        name: seam.tensor.clone(),
        type_: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        })
        .into(),
        ..ValueInfoProto::default()
    }
}

#[cfg(test)]
mod tests;
