//! Weights in files beside the model (ONNX's external data), as PyTorch's exporter and `onnx.save_model` write them.
//!
//! Large weights of the outermost graph stay in their files, of which ONNX Runtime is given the contents; all others are read
//! into the model: shapes, which are looked at, and what graphs within nodes have.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use onnx_protobuf::{GraphProto, StringStringEntryProto, TensorProto, tensor_proto::DataLocation};

use super::{
    aside::{FILE, LEAST, scan},
    check::too_deep,
};
use crate::{
    Error, Result,
    step::model::{
        MAX_MODEL_BYTES,
        data_file::{MAX_FILES, is_bare},
    },
};

/// Where the numbers of a weight are.
struct Place {
    file: String,
    offset: u64,
    /// What the weight takes, unless it says otherwise.
    length: Option<u64>,
}

impl Place {
    /// # Errors
    /// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a name that is none of a file in the folder, and for numbers that are
    /// none.
    fn of(weight: &TensorProto) -> Result<Self> {
        let name = &weight.name;
        let entry = |key: &str| -> Result<Option<&str>> {
            let mut entries = weight.external_data.iter().filter(|entry| entry.key == key);
            match (entries.next(), entries.next()) {
                (entry, None) => Ok(entry.map(|entry| entry.value.as_str())),
                _ => Err(Error::model(format!(
                    "found `{key}` twice for the weights of `{name}`"
                ))),
            }
        };
        let number = |key: &str| -> Result<Option<u64>> {
            let Some(text) = entry(key)? else { return Ok(None) };
            text.parse().map(Some).map_err(|_| {
                Error::model(format!(
                    "found the {key} {text:?} for the weights of `{name}`, expected a number of bytes"
                ))
            })
        };
        let file = entry("location")?.unwrap_or_default();
        if !is_bare(file) {
            return Err(Error::model(format!(
                "found the weights of `{name}` in the file {file:?}, expected the bare name of a file beside the model"
            )));
        }
        Ok(Self {
            file: file.to_owned(),
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}

/// Whether the numbers of a weight are in another file.
pub(super) fn is_external(weight: &TensorProto) -> bool {
    weight.data_location.enum_value() == Ok(DataLocation::EXTERNAL) || !weight.external_data.is_empty()
}

/// Whether [`scan`] has set a weight aside. No file can forge that: its places were held to bare names.
fn is_set_aside(weight: &TensorProto) -> bool {
    match weight.external_data.as_slice() {
        [location, _, _] => location.key == "location" && location.value == FILE,
        _ => false,
    }
}

/// Refuses an external weight with a name that is none, or with numbers of its own.
pub(super) fn check_place(weight: &TensorProto, has_numbers: bool) -> Result<()> {
    Place::of(weight)?;
    if has_numbers {
        return Err(Error::model(format!(
            "found the weights of `{}` both in the model and in another file",
            weight.name
        )));
    }
    Ok(())
}

/// Lets a weight have its numbers in a file, instead of its own.
pub(super) fn point(weight: &mut TensorProto, file: &str, offset: u64, length: u64) {
    weight.data_location = DataLocation::EXTERNAL.into();
    weight.external_data = [
        ("location", file.to_owned()),
        ("offset", offset.to_string()),
        ("length", length.to_string()),
    ]
    .map(|(key, value)| StringStringEntryProto {
        key: key.to_owned(),
        value,
        ..StringStringEntryProto::default()
    })
    .into();
}

/// The names of the files that a model has weights in.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) for what is no model, for names that are none of a file in the folder, and
/// for more than [`MAX_FILES`].
pub(in crate::step::model) fn data_files(model: &[u8]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut graph = scan(model)?.graph.take().unwrap_or_default();
    each(&mut graph, 0, &mut |weight, _| {
        names.insert(Place::of(weight)?.file);
        Ok(())
    })?;
    if names.len() > MAX_FILES {
        return Err(Error::model(format!(
            "found weights in {} files, expected at most {MAX_FILES}",
            names.len()
        )));
    }
    Ok(names)
}

/// Holds the places of external weights against the files, and reads those that do not stay there.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) for a place that the file does not have, or of another size than the weight
/// has; [`TooLarge`](crate::ErrorKind::TooLarge) when weights, those that share a place counted each, have more than
/// [`MAX_MODEL_BYTES`].
pub(super) fn resolve(graph: &mut GraphProto, data: &BTreeMap<String, Arc<[u8]>>) -> Result<()> {
    let mut total = 0_u64;
    each(graph, 0, &mut |weight, may_stay| {
        let place = Place::of(weight)?;
        let name = &weight.name;
        let file = data.get(&place.file).ok_or_else(|| {
            Error::model(format!(
                "found no file `{}`, which has the weights of `{name}`",
                place.file
            ))
        })?;
        let size = size(weight)?;
        if let Some(found) = place.length.filter(|length| *length != size) {
            return Err(Error::model(format!(
                "found {found} bytes for the weights of `{name}`, expected {size} for their type and shape"
            )));
        }
        let end = place.offset.checked_add(size);
        let range = end.and_then(|end| Some(usize::try_from(place.offset).ok()?..usize::try_from(end).ok()?));
        let numbers = range.and_then(|range| file.get(range)).ok_or_else(|| {
            Error::model(format!(
                "found the weights of `{name}` at byte {} of the file `{}`, {size} bytes, expected them within its {}",
                place.offset,
                place.file,
                file.len()
            ))
        })?;
        total = total.saturating_add(size);
        if total > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "weights of {total} bytes up to `{name}` are more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        if may_stay && numbers.len() >= LEAST {
            point(weight, &place.file, place.offset, size);
        } else {
            weight.raw_data = numbers.to_vec();
            weight.external_data.clear();
            weight.data_location = DataLocation::DEFAULT.into();
        }
        Ok(())
    })
}

/// Visits every external weight of a graph and of those within its nodes, with whether it may stay in its file. What
/// [`scan`] has set aside is none.
fn each(
    graph: &mut GraphProto,
    depth: usize,
    visit: &mut dyn FnMut(&mut TensorProto, bool) -> Result<()>,
) -> Result<()> {
    too_deep(depth)?;
    let mut weight = |weight: &mut TensorProto, may_stay: bool| {
        if is_external(weight) && !(may_stay && is_set_aside(weight)) {
            visit(weight, may_stay)
        } else {
            Ok(())
        }
    };
    for initializer in &mut graph.initializer {
        weight(initializer, depth == 0)?;
    }
    for node in &mut graph.node {
        let is_weight = depth == 0 && node.op_type == "Constant";
        for attribute in &mut node.attribute {
            if let Some(tensor) = attribute.t.as_mut() {
                weight(tensor, is_weight)?;
            }
            for tensor in &mut attribute.tensors {
                weight(tensor, false)?;
            }
        }
    }
    for attribute in graph.node.iter_mut().flat_map(|node| &mut node.attribute) {
        for graph in attribute.g.as_mut().into_iter().chain(&mut attribute.graphs) {
            each(graph, depth + 1, visit)?;
        }
    }
    Ok(())
}

/// Bytes that the numbers of a weight take by its type and shape.
fn size(weight: &TensorProto) -> Result<u64> {
    let bits: u64 = match weight.data_type {
        // UINT2, INT2
        25 | 26 => 2,
        // UINT4, INT4, FLOAT4E2M1
        21..=23 => 4,
        // UINT8, INT8, BOOL, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT8E8M0
        2 | 3 | 9 | 17..=20 | 24 => 8,
        // UINT16, INT16, FLOAT16, BFLOAT16
        4 | 5 | 10 | 16 => 16,
        // FLOAT, INT32, UINT32
        1 | 6 | 12 => 32,
        // INT64, DOUBLE, UINT64, COMPLEX64
        7 | 11 | 13 | 14 => 64,
        // COMPLEX128
        15 => 128,
        other => {
            return Err(Error::model(format!(
                "found the weights of `{}` of ONNX's type {other} in another file, expected numbers",
                weight.name
            )));
        }
    };
    let mut extents = weight.dims.iter().map(|extent| u64::try_from(*extent).ok());
    let elements = extents.try_fold(1_u64, |product, extent| product.checked_mul(extent?));
    let size = elements.and_then(|elements| elements.checked_mul(bits));
    size.map(|bits| bits.div_ceil(8)).ok_or_else(|| {
        Error::model(format!(
            "found the weights of `{}` of the shape {:?}, more than any weights may have",
            weight.name, weight.dims
        ))
    })
}

#[cfg(test)]
mod tests;
