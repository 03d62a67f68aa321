//! Encodes one value as a body, and decodes it.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{Form, arrow, crop_headers, header, ipc, npy, raw, safetensors, shape::Shape, table};
use pushdown_core::{Error, Kind, Limits, Result, Sample};

/// An encoded value: the body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Encoded {
    /// The form of the body.
    pub form: Form,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Headers that describe the value: kind, and for arrays dtype, shape, layout and scale.
    pub metadata: Vec<(&'static str, String)>,
    /// The body in pieces, without a copy of the elements.
    pub parts: Vec<Bytes>,
}

impl Encoded {
    /// Length of the body in bytes.
    pub fn len(&self) -> u64 {
        self.parts.iter().map(|part| part.len() as u64).sum()
    }

    /// Whether the body is empty, as that of an empty object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Encodes `sample` in `form`. `kind` is the kind that the form was chosen for; it determines the content type of bytes.
///
/// Deterministic: equal samples in the same form have equal bytes.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a form that does not support the value: bytes as an
/// array, bf16 as npy, more than 32 axes.
pub fn encode(sample: Sample, form: Form, kind: &Kind) -> Result<Encoded> {
    let content_type = form.content_type(kind);
    let (shape, elements) = match (Shape::split(sample), form) {
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
        (Err(Sample::Table(_)), form) => return Err(unsupported("a table", form)),
        (Err(Sample::Bytes(bytes)), Form::Encoded | Form::Raw) => {
            let metadata = vec![(header::KIND, "bytes".to_owned())];
            return Ok(Encoded {
                form,
                content_type,
                metadata,
                parts: vec![bytes],
            });
        }
        (Err(Sample::CroppedJpeg(crop)), Form::Encoded | Form::Raw) => {
            return Ok(Encoded {
                form,
                content_type,
                metadata: crop_headers::metadata(crop.position()),
                parts: vec![crop.into_bytes()],
            });
        }
        (Err(_), form) => return Err(unsupported("bytes", form)),
    };
    shape.check_axes()?;
    let metadata = shape.metadata();
    let parts = match form {
        Form::Npy => vec![npy::head(&shape)?, ipc::share(elements)],
        Form::ArrowStream => arrow::encode(&shape, elements)?,
        Form::Safetensors => vec![safetensors::head(&shape, elements.len())?, ipc::share(elements)],
        Form::Raw => vec![ipc::share(elements)],
        Form::Encoded => return Err(unsupported("an array", form)),
    };
    Ok(Encoded {
        form,
        content_type,
        metadata,
        parts,
    })
}

/// Decodes a value: the inverse of [`encode`] for every form.
///
/// `header` looks up a header of the answer by its lower-case name. The headers determine the kind of the value, such as an
/// image or a u8 tensor. An npy or safetensors file without these headers is a tensor with layout `flat`; a body of any
/// other content type is bytes.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a body that does not match its content type and headers;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
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
        _ if kind == Some("bytes") => crop_headers::with_position(bytes(body, limits)?, header),
        "application/x-npy" => npy::decode(header, body, limits),
        "application/vnd.apache.arrow.stream" if kind == Some("table") => {
            table::decode(body, limits).map(Sample::Table)
        }
        "application/vnd.apache.arrow.stream" => arrow::decode(body, limits),
        "application/vnd.safetensors" => safetensors::decode(body, limits),
        "application/octet-stream" if kind.is_some() => raw::decode(header, body, limits),
        _ if kind.is_some() => Err(Error::wire(format!(
            "invalid content type of an array: expected a form for arrays, found {essence:?}"
        ))),
        _ => bytes(body, limits),
    }
}

/// Decodes a value that is bytes.
pub(super) fn bytes(body: Bytes, limits: &Limits) -> Result<Sample> {
    let limit = limits.max_object_bytes.max(limits.max_value_bytes);
    if body.len() as u64 > limit {
        return Err(Error::too_large(format!(
            "the value is too large: expected at most {limit} bytes, found {}",
            body.len()
        )));
    }
    Ok(Sample::Bytes(body))
}

fn unsupported(value: &str, form: Form) -> Error {
    Error::wire(format!("{value} cannot be encoded in the form {form:?}"))
}
