//! Reads the store's answers, piece by piece or as a whole.

use bytes::Bytes;
use http_body_util::BodyExt as _;

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
fn origin_error(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::new(
            ErrorKind::OriginUnavailable,
            "the store closed the connection within its answer",
        )
        .with_source(error),
    }
}
