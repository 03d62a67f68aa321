//! Reads an ONNX file without the data of its large weights.
//!
//! Parsing that data would copy the file, and serializing it again for ONNX Runtime would copy it once more. Instead, each
//! large weight becomes external data of ONNX that points into the file itself, and ONNX Runtime gets the file in memory.

use std::{fmt, ops::Range};

use onnx_protobuf::{Message as _, ModelProto, TensorProto};
use protobuf::{CodedInputStream, CodedOutputStream, rt};

use super::{check::FLOAT, external};
use pushdown_core::{Error, Result};

/// The name by which stripped weights refer to the ONNX file. No data file may have it, since it starts with a dot.
pub(crate) const MODEL_FILE: &str = ".weights";

/// Minimum bytes of a weight that is stripped. Shapes are smaller: ONNX Runtime reads them before it sees the file.
pub(super) const MIN_STRIPPED_BYTES: usize = 1 << 12;
/// The Protocol Buffers wire type of fields that start with their length.
const LENGTH_DELIMITED: u32 = 2;
/// Number of the field `op_type` of a node.
const OP_TYPE: u32 = 4;
/// Number of the field `float_data` of a tensor. Its packed encoding equals raw bytes.
const FLOAT_DATA: u32 = 4;
/// Number of the field `raw_data` of a tensor.
const RAW_DATA: u32 = 9;

/// The messages that lead to a weight of the outermost graph.
#[derive(Debug, Clone, Copy)]
enum MessageKind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl MessageKind {
    /// The kind of the message in a field, if it can contain weights.
    const fn field_kind(self, field: u32) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) => Some(Self::Graph),
            (Self::Graph, 1) => Some(Self::Node),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::Graph | Self::Attribute, 5) => Some(Self::Tensor),
            _ => None,
        }
    }
}

/// Parses a model without the data of its large weights. Weights in data files keep the locations that the file states.
///
/// # Errors
/// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) for a file that is not an ONNX model, and for locations outside the
/// model's folder.
pub(super) fn parse(file: &[u8]) -> Result<ModelProto> {
    let model = strip(file, MessageKind::Model, 0..file.len())?;
    ModelProto::parse_from_bytes(&model).map_err(|error| invalid_model(&error))
}

/// Bytes of a weight that are stored outside the model; 0 if there are none.
pub(super) fn external_bytes(weight: &TensorProto) -> usize {
    let mut entries = weight.external_data.iter();
    let length = entries.find(|entry| entry.key == "length");
    length.and_then(|entry| entry.value.parse().ok()).unwrap_or(0)
}

/// The message at `message` in `file`, with its large weights stripped.
fn strip(file: &[u8], kind: MessageKind, message: Range<usize>) -> Result<Vec<u8>> {
    match kind {
        MessageKind::Tensor => return strip_tensor(file, message),
        MessageKind::Node if !is_constant(file, &message)? => return Ok(file[message].to_vec()),
        _ => {}
    }
    let mut rest = Vec::new();
    for field in ProtoFields::new(file, &message) {
        let field = field?;
        match (kind.field_kind(field.number), field.content) {
            (Some(inner), Some(content)) => {
                let inner = strip(file, inner, content)?;
                append(&mut rest, field.number, &inner).map_err(|error| invalid_model(&error))?;
            }
            _ => rest.extend_from_slice(&file[field.whole]),
        }
    }
    Ok(rest)
}

/// Whether a node is a `Constant`, and so holds a weight.
fn is_constant(file: &[u8], node: &Range<usize>) -> Result<bool> {
    let mut is_constant = false;
    for field in ProtoFields::new(file, node) {
        let field = field?;
        if let (OP_TYPE, Some(name)) = (field.number, field.content) {
            is_constant = file[name] == *b"Constant";
        }
    }
    Ok(is_constant)
}

/// A tensor, with a location instead of its data if that is large.
fn strip_tensor(file: &[u8], message: Range<usize>) -> Result<Vec<u8>> {
    let mut stripped = None;
    let mut rest = Vec::new();
    for field in ProtoFields::new(file, &message) {
        let field = field?;
        let large_data = field.content.filter(|content| {
            matches!(field.number, FLOAT_DATA | RAW_DATA) && content.len() >= MIN_STRIPPED_BYTES
        });
        match large_data {
            Some(data) if stripped.is_none() => stripped = Some((field.number, data)),
            _ => rest.extend_from_slice(&file[field.whole]),
        }
    }
    let mut tensor = TensorProto::parse_from_bytes(&rest).map_err(|error| invalid_model(&error))?;
    if external::is_external(&tensor) {
        external::check_location(&tensor, stripped.is_some() || !is_empty(&tensor))?;
        return Ok(rest);
    }
    let Some((field, data)) = stripped else {
        return Ok(rest);
    };
    // A tensor with several data fields, or with one of the wrong type, is left to ONNX Runtime to refuse.
    if !is_empty(&tensor) || (field == FLOAT_DATA && tensor.data_type != FLOAT) {
        return Ok(file[message].to_vec());
    }
    external::set_location(&mut tensor, MODEL_FILE, data.start as u64, data.len() as u64);
    tensor.write_to_bytes().map_err(|error| invalid_model(&error))
}

/// Whether a tensor has no data of its own.
fn is_empty(tensor: &TensorProto) -> bool {
    tensor.raw_data.is_empty()
        && tensor.float_data.is_empty()
        && tensor.double_data.is_empty()
        && tensor.int32_data.is_empty()
        && tensor.int64_data.is_empty()
        && tensor.uint64_data.is_empty()
        && tensor.string_data.is_empty()
        && tensor.segment.is_none()
}

/// Appends a message to the fields of another one.
fn append(fields: &mut Vec<u8>, number: u32, message: &[u8]) -> protobuf::Result<()> {
    let mut output = CodedOutputStream::vec(fields);
    output.write_bytes(number, message)?;
    output.flush()
}

fn invalid_model(error: &dyn fmt::Display) -> Error {
    Error::model(format!("invalid ONNX model: {error}"))
}

/// The location of a field in the file.
#[derive(Debug)]
struct ProtoField {
    number: u32,
    /// The field with its tag.
    whole: Range<usize>,
    /// The content of a length-delimited field: bytes, a string, or a message.
    content: Option<Range<usize>>,
}

/// Iterates over the fields of a message. Not a list: a message may have a field per number of a weight.
struct ProtoFields<'a> {
    input: CodedInputStream<'a>,
    /// Where the message begins in the file.
    start: usize,
}

impl<'a> ProtoFields<'a> {
    fn new(file: &'a [u8], message: &Range<usize>) -> Self {
        Self {
            input: CodedInputStream::from_bytes(&file[message.clone()]),
            start: message.start,
        }
    }

    /// Offset of the next byte in the file. It always fits in `usize`: it lies within a slice.
    fn offset(&self) -> usize {
        self.start + usize::try_from(self.input.pos()).unwrap_or(0)
    }

    fn read(&mut self) -> protobuf::Result<Option<ProtoField>> {
        let start = self.offset();
        let Some(tag) = self.input.read_raw_tag_or_eof()? else {
            return Ok(None);
        };
        let mut content = None;
        if tag & 7 == LENGTH_DELIMITED {
            let length = self.input.read_raw_varint32()?;
            let start = self.offset();
            self.input.skip_raw_bytes(length)?;
            content = Some(start..self.offset());
        } else {
            rt::skip_field_for_tag(tag, &mut self.input)?;
        }
        Ok(Some(ProtoField {
            number: tag >> 3,
            whole: start..self.offset(),
            content,
        }))
    }
}

impl Iterator for ProtoFields<'_> {
    type Item = Result<ProtoField>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(|error| invalid_model(&error)).transpose()
    }
}

#[cfg(test)]
mod tests;
