//! What a model must not have.

use std::collections::HashSet;

use onnx_protobuf::{
    GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto,
    tensor_shape_proto::{Dimension, dimension},
    type_proto,
};

use super::{external::is_external, name_of};
use crate::{Error, Result};

/// Draws of their own would differ from run to run.
const RANDOM: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];
/// ONNX's number for f32.
pub(in crate::step::model) const FLOAT: i32 = 1;
/// The most elements of an input: 100 megapixels of RGB.
const MAX_INPUT: usize = 300_000_000;
/// Graphs within graphs go no deeper.
const MAX_DEPTH: usize = 8;

/// Refuses what cannot be run from this model's bytes alone, the same way each time.
pub(super) fn check(header: &ModelProto, graph: &GraphProto) -> Result<()> {
    if let Some(function) = header.functions.first() {
        return Err(Error::model(format!(
            "found the function `{}` of the model's own, expected only ONNX's operators",
            function.name
        )));
    }
    nodes(graph, 0)?;
    if graph.output.is_empty() {
        return Err(Error::model("found an ONNX model without an output"));
    }
    in_order(graph)
}

/// The one input that is no weight.
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
            "found the input `{}` of another type, expected a tensor of f32",
            input.name
        ))),
    }
}

/// The shape of the input, without the batch axis.
pub(in crate::step::model) fn input_shape(input: &ValueInfoProto) -> Result<Vec<usize>> {
    let Some(type_proto::Value::TensorType(tensor)) = input.type_.value.as_ref() else {
        return Err(Error::model(format!(
            "found the input `{}` of no shape",
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
                .is_some_and(|size| size <= MAX_INPUT)
        })
        .ok_or_else(|| {
            Error::model(format!(
                "found the input `{}` without a fixed size, or a larger one than {MAX_INPUT} elements",
                input.name
            ))
        })
}

/// Refuses `Dropout` that draws: one that a third input may tell to.
pub(super) fn not_training(graph: &GraphProto) -> Result<()> {
    let is_false = |name: &String| {
        let weight = graph.initializer.iter().find(|weight| weight.name == *name);
        weight.is_some_and(|weight| {
            weight.external_data.is_empty()
                && weight.raw_data.iter().all(|byte| *byte == 0)
                && weight.int32_data.iter().all(|value| *value == 0)
        })
    };
    let may_draw = |node: &NodeProto| {
        let training = node.input.get(2).filter(|name| !name.is_empty());
        node.op_type == "Dropout" && training.is_some_and(|name| !is_false(name))
    };
    if graph.node.iter().any(may_draw) {
        return Err(Error::model(
            "found a `Dropout` in training, which is random: a frozen model gives the same each time",
        ));
    }
    Ok(())
}

/// Refuses graphs within graphs beyond a depth.
pub(super) fn too_deep(depth: usize) -> Result<()> {
    if depth > MAX_DEPTH {
        return Err(Error::model(format!(
            "found graphs nested deeper than {MAX_DEPTH}"
        )));
    }
    Ok(())
}

fn nodes(graph: &GraphProto, depth: usize) -> Result<()> {
    too_deep(depth)?;
    parts(&graph.sparse_initializer).try_for_each(stored_here)?;
    graph.node.iter().try_for_each(|node| self::node(node, depth))
}

fn node(node: &NodeProto, depth: usize) -> Result<()> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return Err(Error::model(format!(
            "found the custom operator `{}` of `{}`, expected only ONNX's own",
            node.op_type, node.domain
        )));
    }
    if RANDOM.contains(&node.op_type.as_str()) {
        return Err(Error::model(format!(
            "found the random operator `{}`: a frozen model gives the same each time",
            node.op_type
        )));
    }
    for attribute in &node.attribute {
        parts(&attribute.sparse_tensor)
            .chain(parts(&attribute.sparse_tensors))
            .try_for_each(stored_here)?;
        for graph in attribute.g.iter().chain(&attribute.graphs) {
            nodes(graph, depth + 1)?;
        }
    }
    Ok(())
}

/// What weights of which most are 0 consist of.
fn parts<'a>(
    sparse: impl IntoIterator<Item = &'a SparseTensorProto>,
) -> impl Iterator<Item = &'a TensorProto> {
    let sparse = sparse.into_iter();
    sparse.flat_map(|sparse| sparse.values.iter().chain(sparse.indices.iter()))
}

/// Refuses a part of a sparse weight that stands in another file: no exporter writes them so.
fn stored_here(tensor: &TensorProto) -> Result<()> {
    if is_external(tensor) {
        return Err(Error::model(format!(
            "found the weights of `{}` in another file, expected them in the model",
            tensor.name
        )));
    }
    Ok(())
}

fn in_order(graph: &GraphProto) -> Result<()> {
    let weights = graph.initializer.iter().map(|weight| weight.name.as_str());
    let mut known: HashSet<&str> = weights
        .chain(graph.sparse_initializer.iter().map(name_of))
        .chain(graph.input.iter().map(|input| input.name.as_str()))
        .collect();
    for node in &graph.node {
        // What graphs within a node make for themselves is not looked at here.
        let mut inputs = node
            .input
            .iter()
            .map(String::as_str)
            .filter(|name| !name.is_empty());
        if let Some(unknown) = inputs.find(|name| !known.contains(name)) {
            return Err(Error::model(format!(
                "found `{unknown}` read by `{}` before it is made",
                node.op_type
            )));
        }
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if !known.insert(output) {
                return Err(Error::model(format!("found the tensor `{output}` made twice")));
            }
        }
    }
    match graph
        .output
        .iter()
        .find(|output| !known.contains(output.name.as_str()))
    {
        Some(output) => Err(Error::model(format!(
            "found no node that makes the output `{}`",
            output.name
        ))),
        None => Ok(()),
    }
}
