//! What table steps read an object through: its end, ranges of it, or all of it from the start.
//!
//! Who implements it knows the model; who reads through it does not.

use std::{fmt, ops::Range};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};

use crate::{Error, ErrorKind, Result};

/// An object that can be read in parts. All parts are of one version of it: a source whose object was replaced between
/// two reads fails the second.
///
/// Reads start when their future or stream is first polled, and none is waited for that was not polled again: dropping
/// one ends it. An error is of the kind [`Source`](ErrorKind::Source) and comes out of the scan as it went in.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Reads the last `length` bytes, or all of the object where it is shorter.
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>>;

    /// Reads `ranges`, which are not empty, ascend and do not overlap; the answer has as many parts. They may be read side
    /// by side.
    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>>;

    /// Reads the object from its start to its end.
    fn stream(&self) -> BoxStream<'static, Result<Bytes>>;
}

/// The end of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suffix {
    /// The last bytes of the object.
    pub bytes: Bytes,
    /// Size of the whole object in bytes.
    pub total: u64,
}

/// An object that is in memory.
impl Source for Bytes {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.len());
        let suffix = Suffix {
            bytes: self.slice(self.len() - length..),
            total: self.len() as u64,
        };
        future::ready(Ok(suffix)).boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let part = |range: Range<u64>| {
            let (start, end) = (
                usize::try_from(range.start).ok()?,
                usize::try_from(range.end).ok()?,
            );
            (start <= end && end <= self.len()).then(|| self.slice(start..end))
        };
        let parts = ranges.into_iter().map(part).collect::<Option<Vec<_>>>();
        let beyond = || Error::new(ErrorKind::Source, "a range beyond the end of the object");
        future::ready(parts.ok_or_else(beyond)).boxed()
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        stream::iter([Ok(self.clone())]).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().unwrap()
    }

    #[test]
    fn bytes_are_a_source() {
        let object = Bytes::from_static(b"0123456789");
        let suffix = now(object.suffix(4)).unwrap();
        assert_eq!((suffix.bytes.as_ref(), suffix.total), (&b"6789"[..], 10));
        assert_eq!(now(object.suffix(u64::MAX)).unwrap().bytes, object);
        assert_eq!(now(object.ranges(vec![0..2, 9..10])).unwrap(), ["01", "9"]);
        let whole: Vec<_> = now(object.stream().collect::<Vec<_>>());
        assert_eq!(whole, [Ok(object)]);
    }

    #[test]
    fn what_lies_beyond_the_end_is_an_error() {
        let object = Bytes::from_static(b"0123456789");
        for range in [9..11, 11..12, u64::MAX - 1..u64::MAX] {
            let error = now(object.ranges(vec![range])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Source);
        }
    }
}
