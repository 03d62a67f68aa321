//! An object on another host: its ranges are not ready on the first poll, and its suffix is shorter than requested.

use std::ops::Range;

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use pushdown::{Result, Source, Suffix};

/// Bytes of a piece of the stream.
const PIECE_BYTES: usize = 1000;

#[derive(Debug)]
pub(super) struct RemoteObject(pub(super) Bytes);

impl Source for RemoteObject {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        let suffix = self.0.suffix(length.min(self.0.len() as u64 * 2 / 3));
        tokio::task::yield_now().then(|()| suffix).boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let parts = self.0.ranges(ranges);
        tokio::task::yield_now().then(|()| parts).boxed()
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let object = self.0.clone();
        let pieces = (0..object.len()).step_by(PIECE_BYTES);
        let piece = move |start: usize| Ok(object.slice(start..object.len().min(start + PIECE_BYTES)));
        stream::iter(pieces.map(piece).collect::<Vec<_>>()).boxed()
    }
}
