//! The bare elements; dtype, shape and the rest stand in headers.

use arrow_buffer::Buffer;
use bytes::Bytes;

use super::{
    header,
    shape::{MAX_AXES, Shape, parse},
};
use crate::{Error, Limits, Result, Sample};

/// Reads elements as the headers describe them.
pub(super) fn decode<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    body: Bytes,
    limits: &Limits,
) -> Result<Sample> {
    let required =
        |name: &'static str| header(name).ok_or_else(|| Error::wire(format!("the header {name} is missing")));
    let dtype = parse(header::DTYPE, required(header::DTYPE)?)?;
    let extents = extents(required(header::SHAPE)?)?;
    Shape::described(dtype, extents, &header)?.give(Buffer::from(body), limits)
}

fn extents(text: &str) -> Result<Vec<usize>> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    // One more than is allowed shows that there are too many.
    text.split(',')
        .take(MAX_AXES + 1)
        .map(|extent| parse(header::SHAPE, extent.trim()))
        .collect()
}
