//! Late refusals: error documents in answers that began with 200.
//!
//! The store begins to answer a copy, or the completion of an upload, before it has carried it out. Until then it sends the XML
//! declaration and white space, so that the connection does not time out.

mod document_start;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Method, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::{MAX_DOCUMENT_BYTES, codes, element, too_long, unreadable};
use crate::{
    access::Upstream,
    body::{Body, BoxError},
    error::Result,
};
use document_start::DocumentStart;

/// The body of an answer with 200. An error document in it does not show the gateway's identity or signature. All other bodies
/// pass unchanged, as they arrive.
#[derive(Debug)]
struct LateRefusal {
    body: Body,
    signer: Upstream,
    phase: Phase,
    /// What has arrived and cannot be sent yet.
    held: BytesMut,
    /// The trailers, which follow `held`.
    trailers: Option<Frame<Bytes>>,
}

/// What is known about the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its root element has not arrived.
    BeforeRoot,
    /// It is an error, which is held until its end.
    Error,
    /// It is something else.
    Passing,
    /// It has ended.
    Ended,
}

/// Whether the store can begin to answer a request with this method before it refuses it. Reads are left alone: an object can be
/// an error document.
pub fn can_be_late(method: &Method) -> bool {
    *method == Method::PUT || *method == Method::POST
}

/// Masks a refusal in the body of an answer with 200.
pub(super) fn mask(answer: Response<Body>, signer: Upstream) -> Response<Body> {
    if answer.body().is_end_stream() {
        return answer;
    }
    answer.map(|body| {
        let body = LateRefusal {
            body,
            signer,
            phase: Phase::BeforeRoot,
            held: BytesMut::new(),
            trailers: None,
        };
        body.boxed_unsync()
    })
}

impl LateRefusal {
    /// What can be sent once these bytes have arrived.
    fn push(&mut self, bytes: &Bytes) -> Result<Bytes> {
        self.held.extend_from_slice(bytes);
        let mut sendable = 0;
        while self.phase == Phase::BeforeRoot {
            match DocumentStart::read(&self.held[sendable..]) {
                DocumentStart::Prolog(length) => sendable += length,
                DocumentStart::Incomplete => break,
                DocumentStart::Error => self.phase = Phase::Error,
                DocumentStart::Other => {
                    self.phase = Phase::Passing;
                    sendable = self.held.len();
                }
            }
        }
        let sendable = self.held.split_to(sendable).freeze();
        if self.held.len() > MAX_DOCUMENT_BYTES {
            return Err(too_long());
        }
        Ok(sendable)
    }

    /// The rest, once all bytes have arrived.
    fn finish(&mut self, next: Phase) -> Result<Bytes> {
        let rest = self.held.split().freeze();
        let is_error = self.phase == Phase::Error;
        self.phase = next;
        if is_error {
            mask_document(rest, self.signer)
        } else {
            Ok(rest)
        }
    }
}

impl http_body::Body for LateRefusal {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            if self.phase == Phase::Ended {
                return Poll::Ready(None);
            }
            if let Some(trailers) = self.trailers.take() {
                return Poll::Ready(Some(Ok(trailers)));
            }
            let frame = ready!(Pin::new(&mut self.body).poll_frame(cx)?);
            if self.phase == Phase::Passing {
                return Poll::Ready(frame.map(Ok));
            }
            let sendable = match frame.map(Frame::into_data) {
                Some(Ok(bytes)) => self.push(&bytes)?,
                Some(Err(trailers)) => {
                    self.trailers = Some(trailers);
                    self.finish(Phase::Passing)?
                }
                None => self.finish(Phase::Ended)?,
            };
            if !sendable.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(sendable))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.phase == Phase::Ended
            || (self.held.is_empty() && self.trailers.is_none() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, held) = (self.body.size_hint(), self.held.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }
}

/// An error document without what callers must not see. White space at its end keeps its length, which `Content-Length` may have
/// named.
fn mask_document(document: Bytes, signer: Upstream) -> Result<Bytes> {
    let code = element(&document, "Code").ok_or_else(unreadable)?;
    let Some(error) = codes::replacement(&code, signer) else {
        return Ok(document);
    };
    tracing::info!(
        code = code.as_str(),
        "the store refuses a request within its answer"
    );
    let tagged = |name: &str, content: &str| format!("<{name}>{content}</{name}>");
    let ids: String = ["RequestId", "HostId"]
        .into_iter()
        .filter_map(|name| Some(tagged(name, &element(&document, name)?)))
        .collect();
    let (code, message) = (tagged("Code", &code), tagged("Message", error.message()));
    let with_message = format!("<Error>{code}{message}{ids}</Error>");
    let mut masked = if with_message.len() <= document.len() {
        with_message
    } else {
        format!("<Error>{code}{ids}</Error>")
    };
    let Some(padding) = document.len().checked_sub(masked.len()) else {
        return Err(unreadable());
    };
    masked.push_str(&" ".repeat(padding));
    Ok(masked.into())
}

#[cfg(test)]
mod tests;
