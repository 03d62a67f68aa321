//! Late refusals: error documents in answers that began with 200.
//!
//! The store begins to answer a copy, or the completion of an upload, before it has carried it out. Until then it sends the XML
//! declaration and white space, so that the connection does not time out.

mod document_start;

use bytes::{Bytes, BytesMut};
use http::{Method, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;

use super::{MAX_DOCUMENT_BYTES, codes, element, too_long, unreadable};
use crate::{
    access::Upstream,
    body::{Body, BoxError, Observer},
    error::Result,
};
use document_start::DocumentStart;

/// Observes the body of an answer with 200. An error document in it does not show the gateway's identity or signature. All other
/// bodies pass unchanged, as they arrive.
#[derive(Debug)]
struct LateRefusal {
    signer: Upstream,
    phase: Phase,
    /// What has arrived and cannot be sent yet.
    held: BytesMut,
    /// What follows the last frame: the trailers, or the rest of a body that has ended.
    next: Option<Frame<Bytes>>,
}

/// What is known about the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its root element has not arrived.
    BeforeRoot,
    /// It is an error, which is held until its end.
    Error,
    /// It is something else, or nothing of it is held any more.
    Passing,
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
    let refusal = LateRefusal {
        signer,
        phase: Phase::BeforeRoot,
        held: BytesMut::new(),
        next: None,
    };
    answer.map(|body| refusal.observe(body).boxed_unsync())
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

    /// The rest, once all bytes have arrived. `None` if nothing is left.
    fn finish(&mut self) -> Result<Option<Frame<Bytes>>> {
        let rest = self.held.split().freeze();
        let is_error = self.phase == Phase::Error;
        self.phase = Phase::Passing;
        let rest = if is_error {
            mask_document(rest, self.signer)?
        } else {
            rest
        };
        Ok(data_frame(rest))
    }
}

impl Observer<BoxError> for LateRefusal {
    type Error = BoxError;

    fn on_frame(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, BoxError> {
        if self.phase == Phase::Passing {
            return Ok(Some(frame));
        }
        match frame.into_data() {
            Ok(bytes) => Ok(data_frame(self.push(&bytes)?)),
            Err(trailers) => Ok(match self.finish()? {
                None => Some(trailers),
                rest => {
                    self.next = Some(trailers);
                    rest
                }
            }),
        }
    }

    fn on_error(&mut self, error: BoxError) -> BoxError {
        error
    }

    fn on_end(&mut self) -> Result<(), BoxError> {
        self.next = self.finish()?;
        Ok(())
    }

    fn next_held(&mut self) -> Option<Frame<Bytes>> {
        self.next.take()
    }

    fn size_hint(&self, rest: SizeHint) -> SizeHint {
        let held = self.held.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(held));
        }
        hint
    }

    fn is_end_stream(&self, has_body_ended: bool) -> bool {
        self.held.is_empty() && self.next.is_none() && has_body_ended
    }
}

/// A frame with these bytes; `None` without any.
fn data_frame(bytes: Bytes) -> Option<Frame<Bytes>> {
    (!bytes.is_empty()).then(|| Frame::data(bytes))
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
