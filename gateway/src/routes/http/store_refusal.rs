//! Reads the store's error answers.

use bytes::BytesMut;
use http::StatusCode;
use pushdown_s3::ErrorDocument;

use crate::{
    error::{Error, ErrorKind},
    origin::{OriginObject, next_bytes},
};

/// Maximum bytes that are read of an error document.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// A refusal by the store, with its code and message.
#[derive(Debug)]
pub(in crate::routes) struct StoreRefusal {
    status: StatusCode,
    pub(in crate::routes) code: String,
    pub(in crate::routes) message: String,
}

impl StoreRefusal {
    /// Reads the code and the message from an error answer.
    pub(in crate::routes) async fn read(answer: OriginObject) -> Self {
        let status = answer.status;
        let (mut body, mut document) = (answer.body, BytesMut::new());
        while document.len() < MAX_DOCUMENT_BYTES
            && let Ok(Some(data)) = next_bytes(&mut body).await
        {
            document.extend_from_slice(&data);
        }
        let ErrorDocument { code, message, .. } = ErrorDocument::parse(&document);
        let message = message.as_deref().or_else(|| status.canonical_reason());
        Self {
            message: format!(
                "the store answered {}: {}",
                status.as_u16(),
                message.unwrap_or("no reason given")
            ),
            code: code.unwrap_or_else(|| format!("Http{}", status.as_u16())),
            status,
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
