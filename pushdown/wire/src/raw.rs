//! Raw elements, described by headers.

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::{
    header,
    shape::{MAX_AXES, Shape, parse},
};
use pushdown_core::{Error, Limits, Result, Sample};

/// Decodes elements that are described by headers.
pub(super) fn decode<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    body: Bytes,
    limits: &Limits,
) -> Result<Sample> {
    let required =
        |name: &'static str| header(name).ok_or_else(|| Error::wire(format!("missing header {name}")));
    let dtype = parse(header::DTYPE, required(header::DTYPE)?)?;
    let extents = extents(required(header::SHAPE)?)?;
    Shape::from_metadata(dtype, extents, &header)?.into_sample(Buffer::from(body), limits)
}

fn extents(text: &str) -> Result<Vec<usize>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // One more than the maximum is enough for the error.
    text.split(',')
        .take(MAX_AXES + 1)
        .map(|extent| parse(header::SHAPE, extent.trim()))
        .collect()
}
