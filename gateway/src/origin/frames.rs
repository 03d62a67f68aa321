//! Reads the store's answers, piece by piece or as a whole.

use bytes::Bytes;
use http_body_util::BodyExt as _;

use super::OriginObject;
use crate::{
    body::{Body, BoxError},
    error::{Error, ErrorKind, Result},
};

/// The next bytes of a body; `None` at its end.
pub async fn next_bytes(body: &mut Body) -> Result<Option<Bytes>> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(origin_error(error)),
        }
    }
}

/// The longest answer that is read to its end only for its connection.
pub const MAX_DRAINED_BYTES: u64 = 64 << 10;

/// Reads the rest of a small answer that is not needed, so that its connection can be used again. A larger one is dropped with
/// its connection.
pub async fn drain(answer: OriginObject) {
    let mut body = answer.body;
    if answer
        .content_length
        .is_none_or(|length| length <= MAX_DRAINED_BYTES)
    {
        let mut read = 0;
        while read <= MAX_DRAINED_BYTES
            && let Ok(Some(data)) = next_bytes(&mut body).await
        {
            read += data.len() as u64;
        }
    }
}

/// Reads a body of `length` bytes whose first bytes, `head`, were already read.
pub async fn read_to_end(head: &[u8], body: &mut Body, length: u64) -> Result<Bytes> {
    let capacity = usize::try_from(length).unwrap_or(usize::MAX);
    let wrong_length = |found: usize| {
        Error::new(
            ErrorKind::OriginUnavailable,
            format!("invalid answer of the store: expected {length} bytes, found {found}"),
        )
    };
    let mut bytes = Vec::with_capacity(capacity);
    bytes.extend_from_slice(head);
    while let Some(data) = next_bytes(body).await? {
        let received = bytes.len() + data.len();
        if received > capacity {
            return Err(wrong_length(received));
        }
        bytes.extend_from_slice(&data);
    }
    if bytes.len() == capacity {
        Ok(bytes.into())
    } else {
        Err(wrong_length(bytes.len()))
    }
}

/// Unboxes an error of the origin's body. Any other error is one of the connection to the store.
pub(super) fn origin_error(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::new(
            ErrorKind::OriginUnavailable,
            "the store closed the connection within its answer",
        )
        .with_source(error),
    }
}
