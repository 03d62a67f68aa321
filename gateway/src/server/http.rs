//! Serves the requests of one connection.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use pushdown::wire::header;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Handler;
use super::connection::Connection;
use super::opening::Opened;
use super::refusal_rewriter::RefusalRewriter;
use super::requests::{RequestStream, Requests};
use crate::body::BUFFER;

/// How the requests of a connection are served.
#[derive(Debug)]
pub(super) struct Service<H> {
    /// Answers them.
    pub(super) handler: Arc<H>,
    /// Largest request line and headers together.
    pub(super) max_header_bytes: u64,
    /// Longest wait for the next head.
    pub(super) header_read_timeout: Duration,
    /// When it is cancelled, the answer in flight is the last one. `None` if the first answer is.
    pub(super) drain: Option<CancellationToken>,
}

impl<H: Handler> Service<H> {
    /// Serves the requests of one connection until it ends.
    pub(super) async fn serve(self, opened: Opened, connection: Connection, requests: Arc<Requests>) {
        let Self { handler, drain, .. } = self;
        let io = RequestStream::new(opened.stream, opened.first, Arc::clone(&requests));
        let closes = drain.is_none();
        let service = service_fn(|mut request: Request<Incoming>| {
            let (handler, connection, requests) = (&handler, &connection, &requests);
            async move {
                let begun = requests.begin().await;
                let connection = connection.for_request(begun.is_ambiguous);
                request.extensions_mut().insert(connection);
                let mut answer = handler.handle(request).await;
                // After an ambiguous request nobody knows where the next one begins.
                if closes || begun.is_ambiguous {
                    answer
                        .headers_mut()
                        .insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(answer.map(|body| requests.answer(body)))
            }
        });
        let http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.header_read_timeout)
            .max_header_size(usize::try_from(self.max_header_bytes).unwrap_or(usize::MAX))
            .max_headers(header::MAX_COUNT)
            .max_buf_size(BUFFER)
            // Off, because the store's Date is forwarded, and the gateway's own answers set one.
            .auto_date_header(false)
            .preserve_header_case(true)
            .serve_connection(
                TokioIo::new(RefusalRewriter::new(io, Arc::clone(&handler))),
                service,
            );
        let mut http = std::pin::pin!(http);
        let mut aborted = std::pin::pin!(connection.aborted());
        let mut draining = std::pin::pin!(async {
            match &drain {
                Some(drain) => drain.cancelled().await,
                None => std::future::pending().await,
            }
        });
        let mut is_draining = false;
        loop {
            tokio::select! {
                end = http.as_mut() => {
                    if let Err(error) = end {
                        debug!(error = %crate::error::ErrorChain(&error), peer = %connection.peer(), "connection ended early");
                    }
                    return;
                }
                () = aborted.as_mut() => return,
                () = draining.as_mut(), if !is_draining => {
                    is_draining = true;
                    http.as_mut().graceful_shutdown();
                }
            }
        }
    }
}
