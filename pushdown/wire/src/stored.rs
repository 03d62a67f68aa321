//! The form of stored values, which the client's value cache and the gateway's result cache have in common: bytes as they are,
//! images and tensors as safetensors files.
//!
//! A stored value does not state its kind: whoever looks it up knows the stage that it belongs to.

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::{Form, encode::bytes, safetensors};
use pushdown_core::{Error, Kind, Limits, Result, Sample};

/// Encodes a value in pieces, without a copy of its elements. Equal values have equal bytes.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a table, a cropped JPEG, and an array of more than 32 axes.
pub fn encode(value: &Sample) -> Result<Vec<Bytes>> {
    let form = match value {
        Sample::Bytes(_) => Form::Encoded,
        Sample::Image(_) | Sample::Tensor(_) => Form::Safetensors,
        // The name under which a value is stored is that of the object.
        Sample::CroppedJpeg(_) => return Err(Error::wire("a cropped JPEG is not stored")),
        Sample::Table(_) => return Err(table()),
    };
    Ok(super::encode(value.clone(), form, &Kind::from(value))?.parts)
}

/// Decodes a value of a stage whose values are of the kind `kind`: the inverse of [`encode`]. The value shares the memory of
/// `body`.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a body that is no value of this kind, and for tables;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
pub fn decode(kind: &Kind, body: Bytes, limits: &Limits) -> Result<Sample> {
    let value = match kind {
        Kind::Bytes(_) => return bytes(body, limits),
        Kind::Image(_) | Kind::Tensor(_) => safetensors::decode(body, limits)?,
        Kind::Table(_) => return Err(table()),
    };
    let found = Kind::from(&value);
    if found.name() == kind.name() {
        Ok(value)
    } else {
        Err(Error::wire(format!(
            "invalid stored value: expected {}, found {}",
            kind.name(),
            found.name()
        )))
    }
}

fn table() -> Error {
    Error::wire("invalid stored value: expected bytes, an image or a tensor, found a table")
}
