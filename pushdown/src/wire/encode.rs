//! One value to a body, and back.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{Form, arrow, header, ipc, npy, raw, safetensors, shape::Shape, table};
use crate::{Error, Kind, Limits, Result, Sample};

/// A value as the body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The form that it has.
    pub form: Form,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Headers that say what the value is: kind and, for arrays, dtype, shape, layout and scale.
    pub metadata: Vec<(&'static str, String)>,
    /// The body, in pieces: the elements are not copied.
    pub parts: Vec<Bytes>,
}

impl Encoded {
    /// Length of the body in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether the body has no bytes: that of an empty object, say.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Writes `sample` in `form`. `kind` is what was known when the form was chosen; it names the type of bytes.
///
/// The same sample in the same form is always the same bytes.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a form that the value cannot take: bytes as an array, bf16
/// as npy, more than 32 axes.
pub fn encode(sample: Sample, form: Form, kind: &Kind) -> Result<Encoded> {
    let content_type = form.content_type(kind);
    let (shape, elements) = match (Shape::take(sample), form) {
        (Ok((shape, elements)), _) => (shape, elements),
        (Err(Sample::Table(table)), Form::ArrowStream) => {
            let metadata = vec![(header::KIND, "table".to_owned())];
            return Ok(Encoded {
                form,
                content_type,
                metadata,
                parts: table::encode(&table)?,
            });
        }
        (Err(Sample::Table(_)), form) => return Err(cannot("a table", form)),
        (Err(Sample::Bytes(bytes)), Form::Encoded | Form::Raw) => {
            let metadata = vec![(header::KIND, "bytes".to_owned())];
            return Ok(Encoded {
                form,
                content_type,
                metadata,
                parts: vec![bytes],
            });
        }
        (Err(_), form) => return Err(cannot("bytes", form)),
    };
    shape.check_axes()?;
    let metadata = shape.metadata();
    let parts = match form {
        Form::Npy => vec![npy::head(&shape)?, ipc::share(elements)],
        Form::ArrowStream => arrow::encode(&shape, elements)?,
        Form::Safetensors => vec![safetensors::head(&shape, elements.len())?, ipc::share(elements)],
        Form::Raw => vec![ipc::share(elements)],
        Form::Encoded => return Err(cannot("an array", form)),
    };
    Ok(Encoded {
        form,
        content_type,
        metadata,
        parts,
    })
}

/// Reads a value back from a body: the reader's side of [`encode`], for every form.
///
/// `header` looks an answer's header up by lower-case name. What the value is, an image rather than a u8 tensor
/// say, comes with it: the expected kind need not be known. An npy or safetensors file without such headers is
/// a tensor with layout `flat`; a body of any other type is bytes.
///
/// # Errors
/// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a body that is not what it says it is;
/// [`TooLarge`](crate::ErrorKind::TooLarge) past `limits`.
pub fn decode<'a>(
    content_type: &str,
    header: impl Fn(&str) -> Option<&'a str>,
    body: Bytes,
    limits: &Limits,
) -> Result<Sample> {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let kind = header(header::KIND);
    match essence.as_str() {
        _ if kind == Some("bytes") => bytes(body, limits),
        "application/x-npy" => npy::decode(header, body, limits),
        "application/vnd.apache.arrow.stream" if kind == Some("table") => {
            table::decode(body, limits).map(Sample::Table)
        }
        "application/vnd.apache.arrow.stream" => arrow::decode(body, limits),
        "application/vnd.safetensors" => safetensors::decode(body, limits),
        "application/octet-stream" if kind.is_some() => raw::decode(header, body, limits),
        _ if kind.is_some() => Err(Error::wire(format!(
            "found an array as {essence:?}, expected one of the forms for arrays"
        ))),
        _ => bytes(body, limits),
    }
}

fn bytes(body: Bytes, limits: &Limits) -> Result<Sample> {
    let limit = limits.max_object_bytes.max(limits.max_value_bytes);
    if body.len() as u64 > limit {
        return Err(Error::too_large(format!(
            "a value of {} bytes is more than the limit of {limit}",
            body.len()
        )));
    }
    Ok(Sample::Bytes(body))
}

fn cannot(value: &str, form: Form) -> Error {
    Error::wire(format!("{value} cannot be written in the form {form:?}"))
}
