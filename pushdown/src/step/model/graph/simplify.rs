//! Takes away what changes no value.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{GraphProto, TensorProto};

use super::INT64;

/// Old exporters list weights among the inputs, so that they could be replaced. Here they are constants.
pub(super) fn constants_are_no_inputs(graph: &mut GraphProto) {
    let weights: HashSet<&str> = graph
        .initializer
        .iter()
        .map(|weight| weight.name.as_str())
        .collect();
    graph.input.retain(|input| !weights.contains(input.name.as_str()));
}

/// Drops `Identity`, and `Dropout`, which does nothing but in training; what read their outputs reads their inputs.
pub(super) fn drop_copies(graph: &mut GraphProto) {
    let outputs: HashSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let within = graph
        .node
        .iter()
        .flat_map(|node| &node.attribute)
        .any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty());
    if within {
        // Names would have to be changed inside of nodes, too.
        return;
    }
    let masks: HashSet<String> = graph
        .node
        .iter()
        .flat_map(|node| node.input.iter().cloned())
        .collect();
    let mut names: HashMap<String, String> = HashMap::new();
    graph.node.retain_mut(|node| {
        for input in &mut node.input {
            if let Some(name) = names.get(input) {
                input.clone_from(name);
            }
        }
        let copies = match node.op_type.as_str() {
            "Identity" => true,
            // The mask is all true, but someone reads it.
            "Dropout" => !node
                .output
                .iter()
                .skip(1)
                .any(|mask| masks.contains(mask) || outputs.contains(mask)),
            _ => false,
        };
        match (copies, node.input.first(), node.output.first()) {
            (true, Some(input), Some(output)) if !outputs.contains(output) => {
                names.insert(output.clone(), input.clone());
                false
            }
            _ => true,
        }
    });
}

/// The same graph with the batch axis of its `Reshape`s left open: a fixed length of 1 in front becomes "as the input
/// has it", which is 0.
pub(super) fn free_batch(graph: &mut GraphProto) {
    let mut shapes: HashMap<String, TensorProto> = HashMap::new();
    for node in &mut graph.node {
        let [_, shape] = node.input.as_mut_slice() else {
            continue;
        };
        if node.op_type != "Reshape"
            || node
                .attribute
                .iter()
                .any(|attribute| attribute.name == "allowzero" && attribute.i != 0)
        {
            continue;
        }
        let Some(weight) = graph.initializer.iter().find(|weight| weight.name == *shape) else {
            continue;
        };
        let mut extents = integers(weight);
        if extents.len() < 2 || extents.first() != Some(&1) {
            continue;
        }
        extents[0] = 0;
        let name = format!("{shape}/free_batch");
        shapes.insert(
            name.clone(),
            TensorProto {
                name: name.clone(),
                data_type: INT64,
                dims: weight.dims.clone(),
                int64_data: extents,
                ..TensorProto::default()
            },
        );
        *shape = name;
    }
    graph.initializer.extend(shapes.into_values());
}

/// A weight of i64, stored in either way.
fn integers(weight: &TensorProto) -> Vec<i64> {
    if weight.data_type != INT64 {
        Vec::new()
    } else if weight.raw_data.is_empty() {
        weight.int64_data.clone()
    } else {
        let (words, _) = weight.raw_data.as_chunks::<8>();
        words.iter().map(|word| i64::from_le_bytes(*word)).collect()
    }
}
