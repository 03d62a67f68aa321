//! The GETs of an object that is read by ranges.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use pushdown_s3::{AnswerBody, AnswerHead, RangeTransport};

use super::{Failure, VersionedObject};
use crate::{error::Error, measure::PendingRange, transport::Answer};

/// Sends signed GETs of an object.
#[derive(Debug)]
pub(super) struct RangeGet<'a> {
    pub(super) object: &'a VersionedObject,
    /// Whether the rate at which the answer arrives is measured.
    pub(super) is_measured: bool,
}

/// An answer, and the measurement of its rate, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct RangeAnswer<'a> {
    pub(super) answer: Answer,
    pub(super) pending: Option<PendingRange<'a>>,
}

impl<'a> RangeTransport for RangeGet<'a> {
    type Answer = RangeAnswer<'a>;
    type Error = Failure;

    async fn get(&self, headers: HeaderMap) -> Result<RangeAnswer<'a>, Failure> {
        let VersionedObject {
            store,
            bucket,
            key,
            rate,
            ..
        } = self.object;
        let mut pending = self.is_measured.then(|| rate.begin_read(store.traffic()));
        let answer = store.send_get(bucket, key, headers).await?;
        if let Some(pending) = &mut pending {
            pending.on_headers(answer.length());
        }
        Ok(RangeAnswer { answer, pending })
    }
}

impl AnswerHead for RangeAnswer<'_> {
    fn status(&self) -> StatusCode {
        self.answer.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.answer.headers
    }

    fn content_length(&self) -> Option<u64> {
        self.answer.length()
    }
}

impl AnswerBody for RangeAnswer<'_> {
    type Error = Error;

    async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        self.answer.chunk().await
    }
}
