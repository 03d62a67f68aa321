//! Extracts parts of a graph as models.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{
    GraphProto, Message as _, ModelProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};

use super::{Dependency, Graph, check::FLOAT, reads, sparse_name, strip_weights};
use crate::TensorSpec;
use pushdown_core::{Error, Result};

/// A part of a graph, as a model.
#[derive(Debug)]
pub(crate) struct Submodel {
    /// The serialized model. Its large weights stay in the graph's files.
    pub(crate) model: Vec<u8>,
    /// Bytes of the model and of its weights in files.
    pub(crate) bytes: usize,
}

impl Graph {
    /// The part from one tensor to another, with just the weights that it needs. Without `batched` its batch axis has the
    /// length 1.
    ///
    /// # Errors
    /// [`Internal`](pushdown_core::ErrorKind::Internal) if the model cannot be serialized: a defect.
    pub(crate) fn submodel(&self, from: &TensorSpec, to: &TensorSpec, batched: bool) -> Result<Submodel> {
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
        let sparse = sparse.filter(|weight| read.contains(sparse_name(weight)));
        let external_bytes: usize = weights.clone().map(strip_weights::external_bytes).sum();
        let model = self.serialize(GraphProto {
            name: self.graph.name.clone(),
            initializer: weights.cloned().collect(),
            sparse_initializer: sparse.cloned().collect(),
            input: vec![value_info(from, batched)],
            output: vec![value_info(to, batched)],
            node: nodes.into_iter().map(|(_, node)| node.clone()).collect(),
            ..GraphProto::default()
        })?;
        Ok(Submodel {
            bytes: model.len() + external_bytes,
            model,
        })
    }

    /// The whole graph, with every tensor that depends on the input or its shape as an output. Shows the shapes of all tensors,
    /// and the values of those that are shapes.
    pub(crate) fn with_all_outputs(&self, shape: &[usize], batched: bool) -> Result<Vec<u8>> {
        let dependencies = self.dependencies();
        let computed = self.nodes().iter().flat_map(|node| &node.output);
        let output = computed
            .filter(|name| {
                matches!(
                    dependencies.get(name.as_str()),
                    Some(Dependency::Data | Dependency::Shape)
                )
            })
            .map(|name| ValueInfoProto {
                name: name.clone(),
                ..ValueInfoProto::default()
            })
            .collect();
        let input = TensorSpec {
            tensor: self.input()?.name.clone(),
            shape: shape.to_vec(),
        };
        self.serialize(GraphProto {
            input: vec![value_info(&input, batched)],
            output,
            ..self.graph.clone()
        })
    }

    fn serialize(&self, graph: GraphProto) -> Result<Vec<u8>> {
        let model = ModelProto {
            graph: Some(graph).into(),
            ..self.header.clone()
        };
        model
            .write_to_bytes()
            .map_err(|error| Error::internal(format!("the ONNX model cannot be serialized: {error}")))
    }

    /// Replaces the nodes that compute `values` with weights.
    pub(crate) fn fold(&mut self, values: HashMap<String, TensorProto>) {
        self.graph
            .node
            .retain(|node| !node.output.iter().any(|output| values.contains_key(output)));
        self.graph.initializer.extend(values.into_values());
        self.prune();
    }
}

fn value_info(spec: &TensorSpec, batched: bool) -> ValueInfoProto {
    let dimension = |value| Dimension {
        value: Some(value),
        ..Dimension::default()
    };
    let batch = if batched {
        dimension::Value::DimParam("N".to_owned())
    } else {
        dimension::Value::DimValue(1)
    };
    let extents = spec
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
        name: spec.tensor.clone(),
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
