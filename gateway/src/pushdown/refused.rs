//! What the store says of an object that it does not give.

use bytes::BytesMut;
use http::StatusCode;

use crate::{
    error::{Error, ErrorKind},
    origin::{OriginObject, next},
};

/// The most of a store's error document that is read for its code.
const ERROR_BYTES: usize = 64 << 10;

/// The store's own code and message.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
}

impl Refused {
    /// Reads an answer that is none of an object.
    pub(super) async fn read(answer: OriginObject) -> Self {
        let status = answer.status;
        let (mut body, mut document) = (answer.body, BytesMut::new());
        while document.len() < ERROR_BYTES
            && let Ok(Some(data)) = next(&mut body).await
        {
            document.extend_from_slice(&data);
        }
        let document = String::from_utf8_lossy(&document);
        let code =
            element(&document, "Code").map_or_else(|| format!("Http{}", status.as_u16()), str::to_owned);
        let message =
            element(&document, "Message").unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason"));
        Self {
            message: format!("the store answered {}: {message}", status.as_u16()),
            status,
            code,
        }
    }
}

/// As the answer to a request that fails with this object.
impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        let kind = match refused.status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => ErrorKind::AccessDenied,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            status if status.is_server_error() => ErrorKind::OriginUnavailable,
            _ => ErrorKind::InvalidRequest,
        };
        Self::new(kind, format!("{}: {}", refused.code, refused.message))
    }
}

/// The text of the first element of that name in an S3 error document.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}
