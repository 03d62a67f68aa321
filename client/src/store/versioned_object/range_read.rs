//! The attempts to read one range.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use pushdown_s3::{Attempt, ObjectVersion, ResumableGet};

use super::{
    Failure, VersionedObject,
    range_get::{RangeAnswer, RangeGet},
};
use crate::store::{
    failure::{FailedAttempt, malformed},
    table::RangePart,
};

/// Reads a range. An answer that breaks off is continued where it ended.
pub(super) struct RangeRead<'a> {
    /// Called with each part.
    on_arrival: &'a (dyn Fn(RangePart) + Send + Sync),
    transport: RangeGet<'a>,
    get: ResumableGet<RangeAnswer<'a>>,
    length: u64,
    arrived: BytesMut,
}

impl<'a> RangeRead<'a> {
    pub(super) fn new(
        object: &'a VersionedObject,
        version: &ObjectVersion,
        range: &Range<u64>,
        on_arrival: &'a (dyn Fn(RangePart) + Send + Sync),
    ) -> Self {
        Self {
            on_arrival,
            transport: RangeGet {
                object,
                is_measured: true,
            },
            get: version.get(range.clone()),
            length: range.end - range.start,
            arrived: BytesMut::new(),
        }
    }

    async fn read(&mut self) -> Result<Bytes, Failure> {
        loop {
            let chunk = match self.get.chunk(&self.transport).await {
                Ok(chunk) => chunk,
                Err(error) => return Err(self.transport.object.failure(error).await),
            };
            let Some(chunk) = chunk else { break };
            (self.on_arrival)(RangePart::Received(chunk.len() as u64));
            if self.arrived.is_empty() {
                if chunk.len() as u64 == self.length {
                    return Ok(chunk);
                }
                self.arrived
                    .reserve(usize::try_from(self.length).unwrap_or_default());
            }
            self.arrived.extend_from_slice(&chunk);
            if self.arrived.len() as u64 > self.length {
                break;
            }
        }
        if self.arrived.len() as u64 == self.length {
            Ok(std::mem::take(&mut self.arrived).freeze())
        } else {
            Err(malformed("its length does not match its range").into())
        }
    }
}

impl Attempt for RangeRead<'_> {
    type Output = Bytes;
    type Error = FailedAttempt;

    async fn run(&mut self) -> Result<Bytes, FailedAttempt> {
        let read = self.read().await;
        read.map_err(|failure| failure.about(&self.transport.object.name))
    }
}
