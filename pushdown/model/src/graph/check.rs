//! Refuses models that cannot run reproducibly from their files alone.

use std::collections::HashSet;

use onnx_protobuf::{
    GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};

use super::{external::is_external, sparse_name};
use pushdown_core::{Error, Result};

/// Random operators, whose results differ from run to run.
const RANDOM_OPERATORS: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];
/// ONNX's number for f32.
pub(crate) const FLOAT: i32 = 1;
/// Maximum elements of an input: 100 megapixels of RGB.
const MAX_INPUT_ELEMENTS: usize = 300_000_000;
/// Maximum nesting depth of subgraphs.
const MAX_DEPTH: usize = 8;

/// Refuses functions, operators outside ONNX's own set, random operators, and nodes that are out of order.
pub(super) fn check(header: &ModelProto, graph: &GraphProto) -> Result<()> {
    if let Some(function) = header.functions.first() {
        return Err(Error::model(format!(
            "found the custom function `{}`, expected only ONNX's operators",
            function.name
        )));
    }
    check_nodes(graph, 0)?;
    if graph.output.is_empty() {
        return Err(Error::model("found an ONNX model without an output"));
    }
    check_order(graph)
}

/// The one input.
pub(super) fn single_input(graph: &GraphProto) -> Result<&ValueInfoProto> {
    let [input] = graph.input.as_slice() else {
        let names: Vec<_> = graph.input.iter().map(|input| input.name.as_str()).collect();
        return Err(Error::model(format!(
            "found {} inputs ({}), expected one",
            names.len(),
            names.join(", ")
        )));
    };
    match input.type_.value.as_ref() {
        Some(type_proto::Value::TensorType(tensor)) if tensor.elem_type == FLOAT => Ok(input),
        _ => Err(Error::model(format!(
            "found the input `{}` with another type, expected a tensor of f32",
            input.name
        ))),
    }
}

/// The shape of the input, without the batch axis.
pub(crate) fn input_shape(input: &ValueInfoProto) -> Result<Vec<usize>> {
    let Some(type_proto::Value::TensorType(tensor)) = input.type_.value.as_ref() else {
        return Err(Error::model(format!(
            "found the input `{}` without a shape",
            input.name
        )));
    };
    let [_, extents @ ..] = tensor.shape.dim.as_slice() else {
        return Err(Error::model(format!(
            "found the input `{}` without a batch axis",
            input.name
        )));
    };
    let fixed = |dimension: &Dimension| match dimension.value {
        Some(dimension::Value::DimValue(extent)) => usize::try_from(extent).ok().filter(|extent| *extent > 0),
        _ => None,
    };
    extents
        .iter()
        .map(fixed)
        .collect::<Option<Vec<_>>>()
        .filter(|shape| {
            shape
                .iter()
                .try_fold(1, |size: usize, extent| size.checked_mul(*extent))
                .is_some_and(|size| size <= MAX_INPUT_ELEMENTS)
        })
        .ok_or_else(|| {
            Error::model(format!(
                "found the input `{}` without a fixed size, or a larger one than {MAX_INPUT_ELEMENTS} elements",
                input.name
            ))
        })
}

/// Refuses `Dropout` in training mode. Its third input selects the mode.
pub(super) fn check_no_training(graph: &GraphProto) -> Result<()> {
    let is_false = |name: &String| {
        let weight = graph.initializer.iter().find(|weight| weight.name == *name);
        weight.is_some_and(|weight| {
            weight.external_data.is_empty()
                && weight.raw_data.iter().all(|byte| *byte == 0)
                && weight.int32_data.iter().all(|value| *value == 0)
        })
    };
    let may_be_random = |node: &NodeProto| {
        let training = node.input.get(2).filter(|name| !name.is_empty());
        node.op_type == "Dropout" && training.is_some_and(|name| !is_false(name))
    };
    if graph.node.iter().any(may_be_random) {
        return Err(Error::model(
            "found a `Dropout` in training mode, expected no random operator",
        ));
    }
    Ok(())
}

/// Refuses subgraphs that are nested too deep.
pub(super) fn check_depth(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::model(format!(
            "found subgraphs nested deeper than {MAX_DEPTH}"
        )));
    }
    Ok(())
}

fn check_nodes(graph: &GraphProto, depth: usize) -> Result<()> {
    check_depth(depth)?;
    sparse_parts(&graph.sparse_initializer).try_for_each(check_internal)?;
    graph.node.iter().try_for_each(|node| check_node(node, depth))
}

fn check_node(node: &NodeProto, depth: usize) -> Result<()> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return Err(Error::model(format!(
            "found the custom operator `{}` of `{}`, expected only ONNX's own",
            node.op_type, node.domain
        )));
    }
    if RANDOM_OPERATORS.contains(&node.op_type.as_str()) {
        return Err(Error::model(format!(
            "found the random operator `{}`, expected a deterministic model",
            node.op_type
        )));
    }
    for attribute in &node.attribute {
        sparse_parts(&attribute.sparse_tensor)
            .chain(sparse_parts(&attribute.sparse_tensors))
            .try_for_each(check_internal)?;
        for graph in attribute.g.iter().chain(&attribute.graphs) {
            check_nodes(graph, depth + 1)?;
        }
    }
    Ok(())
}

/// The tensors of which sparse weights consist: values and indices.
fn sparse_parts<'a>(
    sparse: impl IntoIterator<Item = &'a SparseTensorProto>,
) -> impl Iterator<Item = &'a TensorProto> {
    let sparse = sparse.into_iter();
    sparse.flat_map(|sparse| sparse.values.iter().chain(sparse.indices.iter()))
}

/// Refuses a part of a sparse weight in a data file: no exporter writes that.
fn check_internal(tensor: &TensorProto) -> Result<()> {
    if is_external(tensor) {
        return Err(Error::model(format!(
            "found the sparse weights of `{}` in a data file, expected them in the model",
            tensor.name
        )));
    }
    Ok(())
}

/// Checks that every tensor is computed once, before it is read.
fn check_order(graph: &GraphProto) -> Result<()> {
    let weights = graph.initializer.iter().map(|weight| weight.name.as_str());
    let mut known: HashSet<&str> = weights
        .chain(graph.sparse_initializer.iter().map(sparse_name))
        .chain(graph.input.iter().map(|input| input.name.as_str()))
        .collect();
    for node in &graph.node {
        // Only direct inputs are checked, not what subgraphs read.
        let mut inputs = node
            .input
            .iter()
            .map(String::as_str)
            .filter(|name| !name.is_empty());
        if let Some(unknown) = inputs.find(|name| !known.contains(name)) {
            return Err(Error::model(format!(
                "found `{unknown}` read by `{}` before it is computed",
                node.op_type
            )));
        }
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if !known.insert(output) {
                return Err(Error::model(format!(
                    "found the tensor `{output}` computed twice"
                )));
            }
        }
    }
    match graph
        .output
        .iter()
        .find(|output| !known.contains(output.name.as_str()))
    {
        Some(output) => Err(Error::model(format!(
            "found no node that computes the output `{}`",
            output.name
        ))),
        None => Ok(()),
    }
}
