//! An object that is read from its start to its end.

use std::sync::Arc;

use bytes::Bytes;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use http::{HeaderValue, StatusCode, header::ETAG};

use super::{Failure, Parts, Version};
use crate::{
    error::{Error, Result},
    transport::Answer,
};

impl Parts {
    /// All of the object, once it is known which version that is. It is asked for again until an answer begins.
    pub(in crate::store) async fn flow(
        self: &Arc<Self>,
    ) -> Result<BoxStream<'static, pushdown::Result<Bytes>>> {
        let version = self.version.lock().clone();
        let (etag, total) = match version {
            Some(Version::Whole(bytes)) => return Ok(stream::iter([Ok(bytes)]).boxed()),
            Some(Version::Parts { etag, total, .. }) => (etag, total),
            None => return Err(Error::internal("a table is read from its end")),
        };
        let mut backoff = self.store.backoff();
        let answer = loop {
            match self.all(&etag, total).await {
                Ok(answer) => break answer,
                Err(failure) => self.pause(failure, &mut backoff).await?,
            }
        };
        backoff.succeeded();
        let parts = Arc::clone(self);
        let pieces = stream::try_unfold(answer, move |mut answer| {
            let parts = Arc::clone(&parts);
            async move {
                let piece = answer.chunk().await.map_err(|error| parts.keep(error))?;
                Ok(piece.map(|piece| (piece, answer)))
            }
        });
        Ok(pieces.boxed())
    }

    async fn all(&self, etag: &HeaderValue, total: u64) -> Result<Answer, Failure> {
        let answer = self.ask(None, Some(etag)).await?;
        if answer.status != StatusCode::OK {
            return Err(self.not_this(answer).await);
        }
        if answer.headers.get(ETAG) != Some(etag) || answer.length() != Some(total) {
            return Err(self.replaced().into());
        }
        Ok(answer)
    }
}
