//! Weights in data files (ONNX's external data), as PyTorch's exporter and `onnx.save_model` write them.
//!
//! Large weights of the outermost graph stay in their files, whose contents ONNX Runtime gets in memory. All others are read
//! into the model: shapes, which the inspection needs, and weights of subgraphs.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use onnx_protobuf::{GraphProto, StringStringEntryProto, TensorProto, tensor_proto::DataLocation};

use super::{
    check::check_depth,
    strip_weights::{MIN_STRIPPED_BYTES, MODEL_FILE, parse},
};
use crate::{
    MAX_MODEL_BYTES,
    data_file::{MAX_FILES, is_bare_name},
};
use pushdown_core::{Error, Result};

/// Where the data of a weight is stored.
struct ExternalLocation {
    file: String,
    offset: u64,
    /// In bytes, if stated.
    length: Option<u64>,
}

impl ExternalLocation {
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a file name that is not bare, and for an invalid offset or length.
    fn parse(weight: &TensorProto) -> Result<Self> {
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
        if !is_bare_name(file) {
            return Err(Error::model(format!(
                "found the weights of `{name}` in the file {file:?}, expected the bare name of a file in the model's folder"
            )));
        }
        Ok(Self {
            file: file.to_owned(),
            offset: number("offset")?.unwrap_or(0),
            length: number("length")?,
        })
    }
}

/// Whether the data of a weight is outside the ONNX file.
pub(super) fn is_external(weight: &TensorProto) -> bool {
    weight.data_location.enum_value() == Ok(DataLocation::EXTERNAL) || !weight.external_data.is_empty()
}

/// Whether [`parse`] has stripped a weight. No file can forge that: `MODEL_FILE` is not a bare name, and so refused.
fn is_stripped(weight: &TensorProto) -> bool {
    match weight.external_data.as_slice() {
        [location, _, _] => location.key == "location" && location.value == MODEL_FILE,
        _ => false,
    }
}

/// Refuses an external weight with an invalid location, or with data in the model as well.
pub(super) fn check_location(weight: &TensorProto, has_data: bool) -> Result<()> {
    ExternalLocation::parse(weight)?;
    if has_data {
        return Err(Error::model(format!(
            "found the weights of `{}` both in the model and in a data file",
            weight.name
        )));
    }
    Ok(())
}

/// Moves the data of a weight to a file.
pub(super) fn set_location(weight: &mut TensorProto, file: &str, offset: u64, length: u64) {
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

/// The names of a model's data files.
///
/// # Errors
/// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a file that is not an ONNX model, for names that are not bare, and for
/// more than [`MAX_FILES`].
pub(crate) fn data_files(model: &[u8]) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut graph = parse(model)?.graph.take().unwrap_or_default();
    visit_external(&mut graph, 0, &mut |weight, _| {
        names.insert(ExternalLocation::parse(weight)?.file);
        Ok(())
    })?;
    if names.len() > MAX_FILES {
        return Err(Error::model(format!(
            "found {} data files, expected at most {MAX_FILES}",
            names.len()
        )));
    }
    Ok(names)
}

/// Checks the locations of external weights against the files, and reads the weights that do not stay there.
///
/// # Errors
/// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a location outside its file, and for one whose size is not that of the
/// weight; [`TooLarge`](pushdown_core::ErrorKind::TooLarge) if all weights together have more than [`MAX_MODEL_BYTES`]. Weights that
/// share a location count once each.
pub(super) fn resolve(graph: &mut GraphProto, data: &BTreeMap<String, Arc<[u8]>>) -> Result<()> {
    let mut total = 0_u64;
    visit_external(graph, 0, &mut |weight, may_stay| {
        let location = ExternalLocation::parse(weight)?;
        let name = &weight.name;
        let file = data.get(&location.file).ok_or_else(|| {
            Error::model(format!(
                "missing the data file `{}` with the weights of `{name}`",
                location.file
            ))
        })?;
        let size = byte_size(weight)?;
        if let Some(found) = location.length.filter(|length| *length != size) {
            return Err(Error::model(format!(
                "found {found} bytes for the weights of `{name}`, expected {size} for their type and shape"
            )));
        }
        let end = location.offset.checked_add(size);
        let range =
            end.and_then(|end| Some(usize::try_from(location.offset).ok()?..usize::try_from(end).ok()?));
        let bytes = range.and_then(|range| file.get(range)).ok_or_else(|| {
            Error::model(format!(
                "found the weights of `{name}` at byte {} of the file `{}`, {size} bytes, expected them within its {}",
                location.offset,
                location.file,
                file.len()
            ))
        })?;
        total = total.saturating_add(size);
        if total > MAX_MODEL_BYTES as u64 {
            return Err(Error::too_large(format!(
                "weights of {total} bytes up to `{name}` are more than the limit of {MAX_MODEL_BYTES}"
            )));
        }
        if may_stay && bytes.len() >= MIN_STRIPPED_BYTES {
            set_location(weight, &location.file, location.offset, size);
        } else {
            weight.raw_data = bytes.to_vec();
            weight.external_data.clear();
            weight.data_location = DataLocation::DEFAULT.into();
        }
        Ok(())
    })
}

/// Visits every external weight of a graph and its subgraphs, with a flag that says whether it may stay in its file. Weights
/// that [`parse`] has stripped are skipped.
fn visit_external(
    graph: &mut GraphProto,
    depth: usize,
    visit: &mut dyn FnMut(&mut TensorProto, bool) -> Result<()>,
) -> Result<()> {
    check_depth(depth)?;
    let mut weight = |weight: &mut TensorProto, may_stay: bool| {
        if is_external(weight) && !(may_stay && is_stripped(weight)) {
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
            visit_external(graph, depth + 1, visit)?;
        }
    }
    Ok(())
}

/// Bytes of a weight, by its type and shape.
fn byte_size(weight: &TensorProto) -> Result<u64> {
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
                "found the weights of `{}` with ONNX's type {other} in a data file, expected numbers",
                weight.name
            )));
        }
    };
    let mut extents = weight.dims.iter().map(|extent| u64::try_from(*extent).ok());
    let elements = extents.try_fold(1_u64, |product, extent| product.checked_mul(extent?));
    let size = elements.and_then(|elements| elements.checked_mul(bits));
    size.map(|bits| bits.div_ceil(8)).ok_or_else(|| {
        Error::model(format!(
            "found the weights of `{}` with the shape {:?}, more than any weights may have",
            weight.name, weight.dims
        ))
    })
}

#[cfg(test)]
mod tests;
