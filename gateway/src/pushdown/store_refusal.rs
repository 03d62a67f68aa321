//! Reads the store's error answers.

use bytes::BytesMut;
use http::StatusCode;

use crate::{
    error::{Error, ErrorKind},
    origin::{OriginObject, next_bytes},
};

/// Maximum bytes that are read of an error document.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// A refusal by the store, with its code and message.
#[derive(Debug)]
pub(super) struct StoreRefusal {
    status: StatusCode,
    pub(super) code: String,
    pub(super) message: String,
}

impl StoreRefusal {
    /// Reads the code and the message from an error answer.
    pub(super) async fn read(answer: OriginObject) -> Self {
        let status = answer.status;
        let (mut body, mut document) = (answer.body, BytesMut::new());
        while document.len() < MAX_DOCUMENT_BYTES
            && let Ok(Some(data)) = next_bytes(&mut body).await
        {
            document.extend_from_slice(&data);
        }
        let document = String::from_utf8_lossy(&document);
        let code =
            element(&document, "Code").map_or_else(|| format!("Http{}", status.as_u16()), str::to_owned);
        let message = element(&document, "Message")
            .unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason given"));
        Self {
            message: format!("the store answered {}: {message}", status.as_u16()),
            status,
            code,
        }
    }
}

/// The error of a request that fails because of this refusal.
impl From<StoreRefusal> for Error {
    fn from(refused: StoreRefusal) -> Self {
        let kind = match refused.status {
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => ErrorKind::AccessDenied,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            status if status.is_server_error() => ErrorKind::OriginUnavailable,
            _ => ErrorKind::InvalidRequest,
        };
        Self::new(kind, format!("{}: {}", refused.code, refused.message))
    }
}

/// The text of the first element `name` in an S3 error document.
fn element<'a>(document: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}
