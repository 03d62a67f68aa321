//! Access to an object for table steps: its end, ranges of it, or all of it from the start.
//!
//! Implementations do the network I/O; this crate does none.

use std::{fmt, ops::Range};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};

use crate::{Error, ErrorKind, Result};

/// An object that can be read in parts. All parts belong to one version: if the object is replaced between two reads, the
/// second read fails.
///
/// A read starts when its future or stream is first polled. Dropping the future or stream cancels the read. Errors have the kind
/// [`Source`](ErrorKind::Source); the scan returns them unchanged.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Reads the last `length` bytes, or the whole object if it is shorter.
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>>;

    /// Reads `ranges`, which are not empty, ascending and disjoint. Returns one part per range. Ranges may be read concurrently.
    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>>;

    /// Reads the object from its start to its end.
    fn stream(&self) -> BoxStream<'static, Result<Bytes>>;

    /// Reserves memory for `bytes` that a scan holds before it is planned. The first reads of the end and the start of an object need
    /// no reservation.
    ///
    /// # Errors
    /// [`Source`](ErrorKind::Source) if there is not enough memory.
    fn reserve(&self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}

/// The end of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suffix {
    /// The last bytes of the object.
    pub bytes: Bytes,
    /// Size of the whole object in bytes.
    pub total: u64,
}

/// An object in memory.
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
        let out_of_bounds = || Error::new(ErrorKind::Source, "the range exceeds the size of the object");
        future::ready(parts.ok_or_else(out_of_bounds)).boxed()
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        stream::iter([Ok(self.clone())]).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve<T>(future: impl Future<Output = T>) -> T {
        future.now_or_never().unwrap()
    }

    #[test]
    fn bytes_are_a_source() {
        let object = Bytes::from_static(b"0123456789");
        let suffix = resolve(object.suffix(4)).unwrap();
        assert_eq!((suffix.bytes.as_ref(), suffix.total), (&b"6789"[..], 10));
        assert_eq!(resolve(object.suffix(u64::MAX)).unwrap().bytes, object);
        assert_eq!(resolve(object.ranges(vec![0..2, 9..10])).unwrap(), ["01", "9"]);
        let whole: Vec<_> = resolve(object.stream().collect::<Vec<_>>());
        assert_eq!(whole, [Ok(object)]);
    }

    #[test]
    fn ranges_past_the_end_are_an_error() {
        let object = Bytes::from_static(b"0123456789");
        for range in [9..11, 11..12, u64::MAX - 1..u64::MAX] {
            let error = resolve(object.ranges(vec![range])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Source);
        }
    }
}
