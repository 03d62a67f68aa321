//! A body that can be sent again as long as none of it has been sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;

use crate::body::{Body, BoxError};

/// A body, handed out to one request at a time.
#[derive(Debug)]
pub(super) struct UnsentBody(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    body: Body,
    is_started: bool,
    /// Counts the requests that it was handed out to.
    requests: u64,
}

/// The body of one request. It ends with an error once the body was handed out again.
#[derive(Debug)]
pub(super) struct RequestBody {
    state: Arc<Mutex<State>>,
    request: u64,
}

// === impl UnsentBody ===

impl UnsentBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(State {
            body,
            is_started: false,
            requests: 0,
        })))
    }

    /// The body of the next request. `None` once a part of it has been sent.
    pub(super) fn next_request(&self) -> Option<RequestBody> {
        let mut state = self.0.lock();
        if state.is_started {
            return None;
        }
        state.requests += 1;
        Some(RequestBody {
            state: Arc::clone(&self.0),
            request: state.requests,
        })
    }
}

// === impl RequestBody ===

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut state = self.state.lock();
        if state.requests != self.request {
            let sent_again = io::Error::new(io::ErrorKind::ConnectionAborted, "the request is sent again");
            return Poll::Ready(Some(Err(sent_again.into())));
        }
        let polled = Pin::new(&mut state.body).poll_frame(cx);
        state.is_started |= polled.is_ready();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.state.lock().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.state.lock().body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;
    use http_body_util::BodyExt as _;

    use super::*;
    use crate::body;

    #[tokio::test]
    async fn a_body_is_sent_once() {
        let body = UnsentBody::new(body::full("content"));
        let refused = body.next_request().unwrap();
        let request = body.next_request().unwrap();
        assert_eq!(request.size_hint().exact(), Some(7));
        assert!(refused.collect().await.is_err());
        let sent = request.collect().await.unwrap().to_bytes();
        assert_eq!(sent, "content");
        assert!(body.next_request().is_none());
    }
}
