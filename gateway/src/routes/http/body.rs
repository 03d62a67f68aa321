//! The body of a derived answer: frames of the value, with the guards that must live until the last frame is sent.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::wire::Encoded;

use super::{
    headers::{insert, respond},
    range,
};
use crate::{
    body::{Body, BoxError},
    error::Result,
    routes::value::ValueMemory,
    server::StallGuard,
};

/// Maximum size of a frame. Small enough that the progress of a slow client is visible, and frames are not copied.
const FRAME_BYTES: usize = 64 << 10;

/// The frames of a value that is being sent to the client. Its memory and the stall guard are dropped with it.
#[derive(Debug)]
pub(in crate::routes) struct ValueBody {
    parts: VecDeque<Bytes>,
    _memory: ValueMemory,
    _guard: Option<StallGuard>,
}

impl ValueBody {
    /// The answer with a whole value, or with the range of it that `request` asks for.
    ///
    /// # Errors
    /// [`InvalidRange`](crate::error::ErrorKind::InvalidRange) for a range outside the value.
    pub(in crate::routes) fn respond(
        request: &HeaderMap,
        mut headers: HeaderMap,
        value: Encoded,
        memory: ValueMemory,
        guard: Option<StallGuard>,
    ) -> Result<Response<Body>> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value.content_type));
        for (name, value) in &value.metadata {
            insert(&mut headers, name, value);
        }
        let (status, range) = range::select(request, &mut headers, value.len())?;
        let content = if status == StatusCode::OK {
            value.parts
        } else {
            slice(&value.parts, range)
        };
        let frames = Self {
            parts: content.into(),
            _memory: memory,
            _guard: guard,
        };
        let body = StreamBody::new(stream::iter(frames));
        Ok(respond(status, headers, body.boxed_unsync()))
    }
}

impl Iterator for ValueBody {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn next(&mut self) -> Option<Self::Item> {
        next_frame(&mut self.parts).map(Ok)
    }
}

/// Removes a frame from the front of `parts`.
pub(in crate::routes) fn next_frame(parts: &mut VecDeque<Bytes>) -> Option<Frame<Bytes>> {
    while parts.front().is_some_and(Bytes::is_empty) {
        parts.pop_front();
    }
    let part = parts.front_mut()?;
    Some(Frame::data(part.split_to(part.len().min(FRAME_BYTES))))
}

/// The byte range `range` of the concatenated `parts`, without copying.
fn slice(parts: &[Bytes], range: Range<u64>) -> Vec<Bytes> {
    let mut start = 0;
    let mut sliced = Vec::new();
    for part in parts {
        let end = start + part.len() as u64;
        let (from, to) = (range.start.clamp(start, end), range.end.clamp(start, end));
        if from < to {
            let index = |position: u64| usize::try_from(position - start).unwrap_or(part.len());
            sliced.push(part.slice(index(from)..index(to)));
        }
        start = end;
    }
    sliced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_can_span_parts() {
        let parts = [
            Bytes::from_static(b"head"),
            Bytes::new(),
            Bytes::from_static(b"payload"),
        ];
        assert_eq!(slice(&parts, 2..6).concat(), b"adpa");
        assert_eq!(slice(&parts, 0..11).concat(), b"headpayload");
        assert_eq!(slice(&parts, 4..5).concat(), b"p");
        assert!(slice(&parts, 11..11).is_empty());
    }
}
