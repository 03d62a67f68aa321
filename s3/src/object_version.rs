//! Reads of ranges of one version of an object.
//!
//! Each read after the first has the ETag of the first answer as `If-Match`. Not every store evaluates `If-Match`, so the ETag
//! and the object size of each answer are compared too.

use std::ops::Range;

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, RANGE},
};

use crate::{
    AnswerHead, ContentRange, RangeTransport, ReadError, ReadResult, ResumableGet,
    transport::{range_value, send},
};

/// One version of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    /// The ETag of the first answer.
    pub etag: HeaderValue,
    /// Size of the object in bytes.
    pub total_bytes: u64,
}

/// The answer to a request for the end of an object.
#[derive(Debug)]
pub enum SuffixAnswer<A> {
    /// The end of the object.
    Part {
        /// The version that the end belongs to.
        version: ObjectVersion,
        /// Where the end begins. Some stores send more bytes than were requested.
        range: ContentRange,
        /// The answer, whose body has the length of the range.
        answer: A,
    },
    /// Any other answer: the whole object, if the store does not support ranges or the object is empty; or a refusal.
    Other(A),
}

/// Requests the last `length` bytes of an object, or the whole object if it is shorter. The answer determines the version of all
/// later reads.
///
/// # Errors
/// [`ReadError::Mismatch`] if the answer does not end with the object; [`ReadError::MissingEtag`].
pub async fn read_suffix<T: RangeTransport>(
    transport: &T,
    length: u64,
) -> ReadResult<SuffixAnswer<T::Answer>, T> {
    let headers = HeaderMap::from_iter([(RANGE, range_value(&format!("-{length}"))?)]);
    let answer = send(transport, headers).await?;
    match answer.status() {
        StatusCode::PARTIAL_CONTENT => {}
        // No range of an empty object is satisfiable.
        StatusCode::RANGE_NOT_SATISFIABLE => {
            return Ok(SuffixAnswer::Other(send(transport, HeaderMap::new()).await?));
        }
        _ => return Ok(SuffixAnswer::Other(answer)),
    }
    let range = ContentRange::from_headers(answer.headers())
        .filter(ContentRange::is_suffix)
        .ok_or(ReadError::Mismatch(
            "Content-Range does not match the requested suffix",
        ))?;
    let etag = answer
        .headers()
        .get(ETAG)
        .cloned()
        .ok_or(ReadError::MissingEtag)?;
    let version = ObjectVersion {
        etag,
        total_bytes: range.total_bytes,
    };
    Ok(SuffixAnswer::Part {
        version,
        range,
        answer,
    })
}

impl ObjectVersion {
    /// A GET of a range within the object, which is not empty. Its answers must state exactly this version and range.
    pub fn get<A>(&self, range: Range<u64>) -> ResumableGet<A> {
        ResumableGet::of_version(self, range)
    }

    /// Requests a range within the object, which is not empty. Returns the answer, whose body has the length of the range.
    ///
    /// # Errors
    /// [`ReadError::Replaced`], [`ReadError::UnexpectedStatus`], and [`ReadError::Mismatch`] for another range.
    pub async fn read_range<T: RangeTransport>(
        &self,
        transport: &T,
        range: &Range<u64>,
    ) -> ReadResult<T::Answer, T> {
        self.get(range.clone()).into_answer(transport).await
    }

    /// Requests the whole object. Returns the answer, whose body has the length of the object.
    ///
    /// # Errors
    /// [`ReadError::Replaced`] and [`ReadError::UnexpectedStatus`].
    pub async fn read_whole<T: RangeTransport>(&self, transport: &T) -> ReadResult<T::Answer, T> {
        let answer = send(transport, self.condition()).await?;
        let answer = self.check(answer, StatusCode::OK)?;
        if answer.content_length() == Some(self.total_bytes) {
            Ok(answer)
        } else {
            Err(ReadError::Replaced)
        }
    }

    fn condition(&self) -> HeaderMap {
        HeaderMap::from_iter([(IF_MATCH, self.etag.clone())])
    }

    /// Checks that an answer has the status `expected` and is of this version.
    fn check<A: AnswerHead, E>(&self, answer: A, expected: StatusCode) -> Result<A, ReadError<A, E>> {
        match answer.status() {
            status if status == expected => {}
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(ReadError::Replaced);
            }
            _ => return Err(ReadError::UnexpectedStatus(answer)),
        }
        if answer.headers().get(ETAG) == Some(&self.etag) {
            Ok(answer)
        } else {
            Err(ReadError::Replaced)
        }
    }
}

#[cfg(test)]
mod tests;
