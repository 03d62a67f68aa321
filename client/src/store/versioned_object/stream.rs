//! An object streamed from its start to its end.

use std::sync::Arc;

use bytes::Bytes;
use futures::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use pushdown_s3::ObjectVersion;

use super::{Failure, Version, VersionedObject};
use crate::{
    error::{Error, Result},
    transport::Answer,
};

impl VersionedObject {
    /// Streams the whole object, in the version that is already known. The request is retried until an answer begins.
    pub(in crate::store) async fn stream(
        self: &Arc<Self>,
    ) -> Result<BoxStream<'static, pushdown::Result<Bytes>>> {
        let version = self.version.lock().clone();
        let version = match version {
            Some(Version::Whole(bytes)) => return Ok(stream::iter([Ok(bytes)]).boxed()),
            Some(Version::Ranges(end)) => end.version,
            None => return Err(Error::internal("the end of a table must be read first")),
        };
        let open = || self.open_whole(&version);
        let answer = self.store.with_retries(&self.name, open).await?;
        let pieces = stream::try_unfold(answer, |mut answer| async move {
            let piece = answer.chunk().await?;
            Ok(piece.map(|piece| (piece, answer)))
        });
        Ok(pieces.boxed())
    }

    async fn open_whole(&self, version: &ObjectVersion) -> Result<Answer, Failure> {
        match version.read_whole(&self.get()).await {
            Ok(answer) => Ok(answer.answer),
            Err(error) => Err(self.failure(error).await),
        }
    }
}
