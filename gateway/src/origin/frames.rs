//! The bytes of the store's answers, as they come and whole.

use bytes::Bytes;
use http_body_util::BodyExt as _;

use crate::{
    body::{Body, BoxError},
    error::{Error, ErrorKind, Result},
};

/// The next bytes of a body; `None` at its end.
pub async fn next(body: &mut Body) -> Result<Option<Bytes>> {
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

/// All of a body, which begins with `head` and has `length` bytes.
pub async fn whole(head: &[u8], body: &mut Body, length: u64) -> Result<Bytes> {
    let capacity = usize::try_from(length).unwrap_or(usize::MAX);
    let wrong = |found: usize| {
        Error::new(
            ErrorKind::OriginUnavailable,
            format!("the store sent {found} bytes where it promised {length}"),
        )
    };
    let mut bytes = Vec::with_capacity(capacity);
    bytes.extend_from_slice(head);
    while let Some(data) = next(body).await? {
        let so_far = bytes.len() + data.len();
        if so_far > capacity {
            return Err(wrong(so_far));
        }
        bytes.extend_from_slice(&data);
    }
    if bytes.len() == capacity {
        Ok(bytes.into())
    } else {
        Err(wrong(bytes.len()))
    }
}

/// The origin's body reports its own errors boxed; anything else is the connection to it.
fn origin_error(error: BoxError) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::new(
            ErrorKind::OriginUnavailable,
            "the store ended its answer too early",
        )
        .with_source(error),
    }
}
