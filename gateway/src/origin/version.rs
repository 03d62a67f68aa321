//! An object that is read in parts, all of them of one version.
//!
//! Each part is the caller's own signed GET with an unsigned `Range`, and with the first answer's ETag as `If-Match`.
//! Not every store heeds `If-Match`, so that the ETag and the size of each answer are compared as well.

use std::ops::Range;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_RANGE, ETAG, IF_MATCH, RANGE},
};

use super::{Origin, OriginObject, OriginRequest, frames};
use crate::error::{Error, ErrorKind, Result};

/// What the store gave of an object whose end was asked for.
#[derive(Debug)]
pub enum End {
    /// The end, and how to read the rest.
    Part(Box<Part>),
    /// The whole object, its body unread: the store knows no ranges, or the object is empty.
    Whole(OriginObject),
}

/// The end of an object.
#[derive(Debug)]
pub struct Part {
    /// The store's headers.
    pub headers: HeaderMap,
    /// The last bytes.
    pub bytes: Bytes,
    /// The object they are of.
    pub version: Version,
}

/// One version of an object. Clones share connections.
#[derive(Debug, Clone)]
pub struct Version {
    origin: Origin,
    request: OriginRequest,
    etag: HeaderValue,
    total: u64,
}

impl Origin {
    /// Reads the last `length` bytes of an object, or all of it where it is shorter. No HEAD comes first: its signature
    /// would be another. Anything but 200 and 206 is the store's answer to the caller.
    pub async fn end(&self, request: OriginRequest, length: u64) -> Result<Result<End, OriginObject>> {
        let mut suffix = request.clone();
        suffix.add(RANGE, range_value(&format!("-{length}"))?);
        let mut answer = self.read(suffix).await?;
        match answer.status {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::OK => return Ok(Ok(End::Whole(answer))),
            // Nothing has no end.
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let answer = self.read(request).await?;
                return Ok(match answer.status {
                    StatusCode::OK => Ok(End::Whole(answer)),
                    _ => Err(answer),
                });
            }
            _ => return Ok(Err(answer)),
        }
        let (range, total) = content_range(&answer.headers)
            .filter(|(range, total)| range.end == *total && range.end - range.start <= length)
            .ok_or_else(|| malformed("a range with a Content-Range that does not fit it"))?;
        let etag = answer
            .headers
            .get(ETAG)
            .cloned()
            .ok_or_else(|| malformed("a range without an ETag: a table is read in parts only by it"))?;
        let bytes = frames::whole(&[], &mut answer.body, range.end - range.start).await?;
        let version = Version {
            origin: self.clone(),
            request,
            etag,
            total,
        };
        Ok(Ok(End::Part(Box::new(Part {
            headers: answer.headers,
            bytes,
            version,
        }))))
    }
}

impl Version {
    /// Size of the object in bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Reads a part, which lies within the object.
    ///
    /// # Errors
    /// [`ErrorKind::Replaced`] when the object is another by now; [`ErrorKind::AccessDenied`] when the signature has
    /// expired; and what reading fails with.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let mut request = self.matched();
        let last = range.end.saturating_sub(1);
        request.add(RANGE, range_value(&format!("{}-{last}", range.start))?);
        let mut answer = self.origin.read(request).await?;
        if answer.status == StatusCode::OK {
            return Err(malformed("a range with the whole object, after it gave a part"));
        }
        self.check(&answer, StatusCode::PARTIAL_CONTENT)?;
        match content_range(&answer.headers) {
            Some((found, total)) if total == self.total && found == range => {}
            Some((_, total)) if total != self.total => return Err(replaced()),
            _ => return Err(malformed("a range with another range")),
        }
        frames::whole(&[], &mut answer.body, range.end - range.start).await
    }

    /// Reads the object from its start: the answer, its body unread.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_all(&self) -> Result<OriginObject> {
        let answer = self.origin.read(self.matched()).await?;
        self.check(&answer, StatusCode::OK)?;
        match answer.content_length {
            Some(length) if length == self.total => Ok(answer),
            _ => Err(replaced()),
        }
    }

    fn matched(&self) -> OriginRequest {
        let mut request = self.request.clone();
        request.add(IF_MATCH, self.etag.clone());
        request
    }

    /// Whether an answer is of this version.
    fn check(&self, answer: &OriginObject, expected: StatusCode) -> Result<()> {
        let status = answer.status;
        if status == expected {
            let same = answer.headers.get(ETAG) == Some(&self.etag);
            return if same { Ok(()) } else { Err(replaced()) };
        }
        Err(match status {
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => replaced(),
            StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => Error::new(
                ErrorKind::AccessDenied,
                "the store accepted the signature and refused it in the middle of the scan: it has expired, or the \
                 right was taken away; sign anew and ask again",
            ),
            StatusCode::NOT_FOUND => {
                Error::new(ErrorKind::NotFound, "the object was deleted while it was read")
            }
            status => Error::new(
                ErrorKind::OriginUnavailable,
                format!("the store answered {} in the middle of the scan", status.as_u16()),
            ),
        })
    }
}

fn replaced() -> Error {
    Error::new(
        ErrorKind::Replaced,
        "the object was replaced while it was read; ask again for the new one",
    )
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::OriginUnavailable, format!("the store answered {what}"))
}

fn range_value(range: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(&format!("bytes={range}"))
        .map_err(|error| Error::new(ErrorKind::Internal, "a range is no header value").with_source(error))
}

/// The range that an answer has, and the size of the whole.
fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, u64)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last, total): (u64, u64, u64) =
        (first.parse().ok()?, last.parse().ok()?, total.parse().ok()?);
    (first <= last && last < total).then(|| (first..last + 1, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges() {
        let read = |text: &'static str| {
            content_range(&HeaderMap::from_iter([(
                CONTENT_RANGE,
                HeaderValue::from_static(text),
            )]))
        };
        assert_eq!(read("bytes 5-9/10"), Some((5..10, 10)));
        assert_eq!(read("bytes 0-0/1"), Some((0..1, 1)));
        for wrong in [
            "",
            "bytes */10",
            "bytes 5-9/*",
            "bytes 9-5/10",
            "bytes 5-10/10",
            "5-9/10",
            "bytes 5/10",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
