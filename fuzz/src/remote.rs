//! An object over a link: its parts come late, and its end is short at first.

use std::ops::Range;

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use pushdown::{Result, Source, Suffix};

/// Bytes of a stream that come at once.
const PIECE: usize = 1000;

#[derive(Debug)]
pub(super) struct Remote(pub(super) Bytes);

impl Source for Remote {
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
        let pieces = (0..object.len()).step_by(PIECE);
        let piece = move |from: usize| Ok(object.slice(from..object.len().min(from + PIECE)));
        stream::iter(pieces.map(piece).collect::<Vec<_>>()).boxed()
    }
}
