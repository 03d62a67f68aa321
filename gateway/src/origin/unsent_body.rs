//! A body that can be sent again as long as none of it has been sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

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
    /// Counts revocations. A request has the body until the next one.
    revocations: u64,
    /// Of the connection that waits for the body.
    waker: Option<Waker>,
}

/// The body of one request. It ends with an error once it is revoked.
///
/// It observes no body that it owns: the attempts of a request share one, which is locked for each poll.
#[derive(Debug)]
pub(super) struct RequestBody {
    state: Arc<Mutex<State>>,
    /// The number of revocations when it was handed out.
    revocations: u64,
}

impl UnsentBody {
    pub(super) fn new(body: Body) -> Self {
        Self(Arc::new(Mutex::new(State {
            body,
            is_started: false,
            revocations: 0,
            waker: None,
        })))
    }

    /// The body of the next request. Revokes it from the one before. `None` once a part of it has been sent.
    pub(super) fn next_request(&self) -> Option<RequestBody> {
        self.revoke();
        let state = self.0.lock();
        (!state.is_started).then(|| RequestBody {
            state: Arc::clone(&self.0),
            revocations: state.revocations,
        })
    }

    /// Takes the body from the request that has it, at once: its connection may wait for the client's bytes.
    pub(super) fn revoke(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.revocations += 1;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl RequestBody {
    fn is_revoked(&self, state: &State) -> bool {
        state.revocations != self.revocations
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let mut state = self.state.lock();
        if self.is_revoked(&state) {
            let revoked = io::Error::new(io::ErrorKind::ConnectionAborted, "the store refused the request");
            return Poll::Ready(Some(Err(revoked.into())));
        }
        let polled = Pin::new(&mut state.body).poll_frame(cx);
        if polled.is_ready() {
            state.is_started = true;
        } else {
            state.waker = Some(cx.waker().clone());
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state.lock();
        !self.is_revoked(&state) && state.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.state.lock().body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::channel::mpsc;
    use http_body::Body as _;
    use http_body_util::{BodyExt as _, StreamBody};

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

    /// The connection of a refused request waits for bytes that the client sends later.
    #[tokio::test(start_paused = true)]
    async fn a_revoked_request_ends_at_once_and_takes_nothing() {
        let (client, received) = mpsc::unbounded::<Result<Frame<Bytes>, BoxError>>();
        let body = UnsentBody::new(StreamBody::new(received).boxed_unsync());
        let refused = tokio::spawn(body.next_request().unwrap().collect());
        tokio::task::yield_now().await;
        body.revoke();
        let ended = tokio::time::timeout(Duration::from_secs(1), refused).await;
        assert!(ended.unwrap().unwrap().is_err());
        let content = Frame::data(Bytes::from_static(b"content"));
        client.unbounded_send(Ok(content)).unwrap();
        drop(client);
        let request = body.next_request().unwrap();
        assert_eq!(request.collect().await.unwrap().to_bytes(), "content");
    }
}
