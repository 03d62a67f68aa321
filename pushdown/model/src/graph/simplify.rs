//! Simplifications that change no value.

use std::collections::{HashMap, HashSet};

use onnx_protobuf::{GraphProto, NodeProto, TensorProto};

use super::{Dependency, FLOAT, Graph, INT64, reads, sparse_name};

/// Turns `Constant` nodes into weights. Exporters write weights and shapes in either form.
pub(super) fn constants_to_weights(graph: &mut GraphProto) {
    let mut weights = Vec::new();
    graph.node.retain_mut(|node| {
        let weight = constant(node);
        let stays = weight.is_none();
        weights.extend(weight);
        stays
    });
    graph.initializer.extend(weights);
}

/// The value of a `Constant`. Strings and sparse tensors stay nodes.
fn constant(node: &mut NodeProto) -> Option<TensorProto> {
    let ("Constant", [attribute], [name]) = (
        node.op_type.as_str(),
        node.attribute.as_mut_slice(),
        node.output.as_slice(),
    ) else {
        return None;
    };
    let length = |count: usize| vec![i64::try_from(count).unwrap_or(i64::MAX)];
    let mut tensor = TensorProto::default();
    match attribute.name.as_str() {
        // Moved, not copied: it may be as large as any weight.
        "value" => tensor = attribute.t.take()?,
        "value_float" => (tensor.data_type, tensor.float_data) = (FLOAT, vec![attribute.f]),
        "value_floats" => {
            (tensor.data_type, tensor.dims) = (FLOAT, length(attribute.floats.len()));
            tensor.float_data.clone_from(&attribute.floats);
        }
        "value_int" => (tensor.data_type, tensor.int64_data) = (INT64, vec![attribute.i]),
        "value_ints" => {
            (tensor.data_type, tensor.dims) = (INT64, length(attribute.ints.len()));
            tensor.int64_data.clone_from(&attribute.ints);
        }
        _ => return None,
    }
    tensor.name.clone_from(name);
    Some(tensor)
}

/// Removes weights from the inputs. Old exporters list them there as defaults that a caller could replace.
pub(super) fn remove_weights_from_inputs(graph: &mut GraphProto) {
    let weights = graph.initializer.iter().map(|weight| weight.name.as_str());
    let sparse = graph.sparse_initializer.iter().map(sparse_name);
    let weights: HashSet<&str> = weights.chain(sparse).collect();
    graph.input.retain(|input| !weights.contains(input.name.as_str()));
}

/// Drops `Identity`, and `Dropout`, which has an effect only in training. Nodes that read their outputs read their inputs
/// instead.
pub(super) fn drop_copies(graph: &mut GraphProto) {
    let outputs: HashSet<String> = graph.output.iter().map(|output| output.name.clone()).collect();
    let masks: HashSet<String> = graph.node.iter().flat_map(reads).map(str::to_owned).collect();
    let mut names: HashMap<String, String> = HashMap::new();
    graph.node.retain_mut(|node| {
        rename(node, &names);
        let copies = match node.op_type.as_str() {
            "Identity" => true,
            // Stays if another node reads its mask, which is all true.
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

/// Renames what a node and its subgraphs read. That is safe: no name refers to two tensors in any of them.
fn rename(node: &mut NodeProto, names: &HashMap<String, String>) {
    let change = |name: &mut String| {
        if let Some(other) = names.get(name) {
            name.clone_from(other);
        }
    };
    node.input.iter_mut().for_each(change);
    for attribute in &mut node.attribute {
        for graph in attribute.g.as_mut().into_iter().chain(&mut attribute.graphs) {
            graph
                .output
                .iter_mut()
                .for_each(|output| change(&mut output.name));
            graph.node.iter_mut().for_each(|node| rename(node, names));
        }
    }
}

impl Graph {
    /// The same graph with a variable batch axis: the first extent of a `Reshape`, if it is 1, becomes 0, which copies the
    /// extent of the input.
    pub(crate) fn with_free_batch(&self) -> Self {
        let weights = self.graph.initializer.iter();
        let shapes = weights.map(|weight| (weight.name.as_str(), integers(weight)));
        let shapes: HashMap<&str, Vec<i64>> = shapes.collect();
        let dependencies = self.dependencies();
        let mut free = self.clone();
        free.reshape(|node| {
            // A weight has no batch axis.
            let data = node.input.first()?;
            let extents = shapes.get(node.input.get(1)?.as_str())?;
            let opened = extents.len() >= 2 && extents.first() == Some(&1);
            (opened && dependencies.get(data.as_str()) == Some(&Dependency::Data))
                .then(|| extents[1..].to_vec())
        });
        free
    }

    /// Makes `Reshape`s copy the batch extent of their input. `rest` returns the other extents of the shape, or `None` to leave
    /// a node unchanged. Nodes that computed the old shape are dropped, unless another node reads it.
    pub(crate) fn reshape(&mut self, rest: impl Fn(&NodeProto) -> Option<Vec<i64>>) {
        let mut shapes: HashMap<String, TensorProto> = HashMap::new();
        for node in &mut self.graph.node {
            let literal = |name: &str, value: i64| name == "allowzero" && value != 0;
            if node.op_type != "Reshape" || node.attribute.iter().any(|with| literal(&with.name, with.i)) {
                continue;
            }
            let (Some(rest), Some(shape)) = (rest(node), node.input.get_mut(1)) else {
                continue;
            };
            let name = format!("{shape}/free_batch");
            shape.clone_from(&name);
            let tensor = TensorProto {
                name: name.clone(),
                data_type: INT64,
                dims: vec![i64::try_from(rest.len() + 1).unwrap_or(i64::MAX)],
                int64_data: std::iter::once(0).chain(rest).collect(),
                ..TensorProto::default()
            };
            shapes.insert(name, tensor);
        }
        self.graph.initializer.extend(shapes.into_values());
        self.prune();
    }
}

/// The elements of a weight of i64, in either encoding; none for another type.
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
