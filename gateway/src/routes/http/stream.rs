//! Streamed bodies of groups of pieces.

use bytes::Bytes;
use futures::{Stream, StreamExt as _, stream};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};

use crate::{
    body::{Body, BoxError},
    error::Result,
};

/// A body that starts with `first`. If a group fails, the connection is cut, so that the truncated answer does not look
/// complete.
pub(in crate::routes) fn stream_body(
    first: Vec<Bytes>,
    rest: impl Stream<Item = Result<Vec<Bytes>>> + Send + 'static,
) -> Body {
    let groups = stream::once(async { Ok(first) }).chain(rest);
    let frames = groups.flat_map(|group| {
        let pieces: Vec<Result<_, BoxError>> = match group {
            Ok(pieces) => pieces.into_iter().map(|piece| Ok(Frame::data(piece))).collect(),
            Err(error) => vec![Err(error.into())],
        };
        stream::iter(pieces)
    });
    StreamBody::new(frames).boxed_unsync()
}
