//! A model is read without the numbers of its large weights, which stay where they are: in the file.
//!
//! Read, they would be a copy of the file, and written again for ONNX Runtime one more. Here such a weight tells its place
//! in the file instead, as ONNX has it for weights that stand in another one, and ONNX Runtime is given the file beside
//! the model.

use std::{fmt, ops::Range};

use onnx_protobuf::{Message as _, ModelProto, TensorProto};
use protobuf::{CodedInputStream, CodedOutputStream, rt};

use super::{check::FLOAT, external};
use crate::{Error, Result};

/// By what name weights know the file. No file beside the model may have such a name.
pub(in crate::step::model) const FILE: &str = ".weights";

/// Weights of fewer bytes are read. Shapes are among them, which ONNX Runtime looks into before it sees the file.
pub(super) const LEAST: usize = 1 << 12;
/// The wire type of what tells its length.
const DELIMITED: u32 = 2;
/// Number of the field of a node that names its operator.
const OPERATOR: u32 = 4;
/// Number of the field of a tensor that has floats, one behind the other as in raw bytes.
const FLOATS: u32 = 4;
/// Number of the field of a tensor that has raw bytes.
const RAW: u32 = 9;

/// The messages on the way to a weight of the outermost graph.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
}

impl Kind {
    /// What a field of such a message has, if weights are in it.
    const fn within(self, field: u32) -> Option<Self> {
        match (self, field) {
            (Self::Model, 7) => Some(Self::Graph),
            (Self::Graph, 1) => Some(Self::Node),
            (Self::Node, 5) => Some(Self::Attribute),
            (Self::Graph | Self::Attribute, 5) => Some(Self::Tensor),
            _ => None,
        }
    }
}

/// Reads a model. Of weights in other files it has the places, as the file tells them.
///
/// # Errors
/// [`InvalidModel`](crate::ErrorKind::InvalidModel) for what is no model, and for places outside the model's folder.
pub(super) fn scan(file: &[u8]) -> Result<ModelProto> {
    let model = without_numbers(file, Kind::Model, 0..file.len())?;
    ModelProto::parse_from_bytes(&model).map_err(|error| no_model(&error))
}

/// Bytes of the file that a weight has instead of numbers.
pub(super) fn bytes_of(weight: &TensorProto) -> usize {
    let mut told = weight.external_data.iter();
    let length = told.find(|told| told.key == "length");
    length.and_then(|told| told.value.parse().ok()).unwrap_or(0)
}

fn without_numbers(file: &[u8], kind: Kind, message: Range<usize>) -> Result<Vec<u8>> {
    match kind {
        Kind::Tensor => return weight(file, message),
        Kind::Node if !is_constant(file, &message)? => return Ok(file[message].to_vec()),
        _ => {}
    }
    let mut rest = Vec::new();
    for field in Fields::of(file, &message) {
        let field = field?;
        match (kind.within(field.number), field.content) {
            (Some(inner), Some(content)) => {
                let inner = without_numbers(file, inner, content)?;
                put(&mut rest, field.number, &inner).map_err(|error| no_model(&error))?;
            }
            _ => rest.extend_from_slice(&file[field.whole]),
        }
    }
    Ok(rest)
}

/// Whether a node is a weight.
fn is_constant(file: &[u8], node: &Range<usize>) -> Result<bool> {
    let mut is = false;
    for field in Fields::of(file, node) {
        let field = field?;
        if let (OPERATOR, Some(name)) = (field.number, field.content) {
            is = file[name] == *b"Constant";
        }
    }
    Ok(is)
}

/// A weight, with the place of its numbers if they are many.
fn weight(file: &[u8], message: Range<usize>) -> Result<Vec<u8>> {
    let mut numbers = None;
    let mut rest = Vec::new();
    for field in Fields::of(file, &message) {
        let field = field?;
        let many = field
            .content
            .filter(|content| matches!(field.number, FLOATS | RAW) && content.len() >= LEAST);
        match many {
            Some(place) if numbers.is_none() => numbers = Some((field.number, place)),
            _ => rest.extend_from_slice(&file[field.whole]),
        }
    }
    let mut tensor = TensorProto::parse_from_bytes(&rest).map_err(|error| no_model(&error))?;
    if external::is_external(&tensor) {
        external::check_place(&tensor, numbers.is_some() || !is_empty(&tensor))?;
        return Ok(rest);
    }
    let Some((field, place)) = numbers else {
        return Ok(rest);
    };
    // A tensor with numbers of several kinds, or of another one than it says, is for ONNX Runtime to refuse.
    if !is_empty(&tensor) || (field == FLOATS && tensor.data_type != FLOAT) {
        return Ok(file[message].to_vec());
    }
    external::point(&mut tensor, FILE, place.start as u64, place.len() as u64);
    tensor.write_to_bytes().map_err(|error| no_model(&error))
}

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

/// Writes a message behind the fields of another one.
fn put(fields: &mut Vec<u8>, number: u32, message: &[u8]) -> protobuf::Result<()> {
    let mut output = CodedOutputStream::vec(fields);
    output.write_bytes(number, message)?;
    output.flush()
}

fn no_model(error: &dyn fmt::Display) -> Error {
    Error::model(format!("found no ONNX model: {error}"))
}

/// Where in the file a field stands.
#[derive(Debug)]
struct Field {
    number: u32,
    /// With its number.
    whole: Range<usize>,
    /// Of a field that tells its length: bytes, a text, or a message.
    content: Option<Range<usize>>,
}

/// The fields of a message: one at a time, since there may be one for each number.
struct Fields<'a> {
    input: CodedInputStream<'a>,
    /// Where the message begins.
    start: usize,
}

impl<'a> Fields<'a> {
    fn of(file: &'a [u8], message: &Range<usize>) -> Self {
        Self {
            input: CodedInputStream::from_bytes(&file[message.clone()]),
            start: message.start,
        }
    }

    /// Where in the file the next byte stands. No slice has more than can be counted.
    fn place(&self) -> usize {
        self.start + usize::try_from(self.input.pos()).unwrap_or(0)
    }

    fn read(&mut self) -> protobuf::Result<Option<Field>> {
        let start = self.place();
        let Some(tag) = self.input.read_raw_tag_or_eof()? else {
            return Ok(None);
        };
        let mut content = None;
        if tag & 7 == DELIMITED {
            let length = self.input.read_raw_varint32()?;
            let start = self.place();
            self.input.skip_raw_bytes(length)?;
            content = Some(start..self.place());
        } else {
            rt::skip_field_for_tag(tag, &mut self.input)?;
        }
        Ok(Some(Field {
            number: tag >> 3,
            whole: start..self.place(),
            content,
        }))
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().map_err(|error| no_model(&error)).transpose()
    }
}

#[cfg(test)]
mod tests;
