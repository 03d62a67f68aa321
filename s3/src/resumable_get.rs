//! A GET that is continued where its body broke off.

use std::ops::Range;

use bytes::{Buf as _, Bytes};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, RANGE},
};

use crate::{
    AnswerBody, AnswerHead, ContentRange, ObjectVersion, RangeTransport, ReadError, ReadResult,
    transport::{range_value, send},
};

/// The bytes of an object or of a range of it, all of one version, over as many answers as it takes.
///
/// After an error the next call sends another request for the bytes that are missing. To decide whether and when there is one is up to the
/// caller: [`RetryContext`](crate::RetryContext). A future of it that is dropped loses no bytes.
#[derive(Debug)]
pub struct ResumableGet<A> {
    missing: Missing,
    open: Option<OpenAnswer<A>>,
}

/// What is still to be requested, and of which version.
#[derive(Debug)]
struct Missing {
    /// The version: known before, or from the first answer.
    etag: Option<HeaderValue>,
    /// Size of the object, if it is known before.
    total_bytes: Option<u64>,
    /// Where the next byte is in the object.
    position: u64,
    /// Where the range ends; `None` for the end of the object.
    end: Option<u64>,
    /// Where the range may end at most if the store sends the whole object.
    max_whole_bytes: u64,
}

/// An answer whose body is being read.
#[derive(Debug)]
struct OpenAnswer<A> {
    answer: A,
    /// Bytes before the position that have not arrived.
    unwanted_bytes: u64,
    /// Where the range ends, if the answer is the whole object in its place.
    end: Option<u64>,
}

impl<A> ResumableGet<A> {
    /// Reads a whole object. The version is the one with this ETag, or else that of the first answer.
    pub const fn whole(etag: Option<HeaderValue>) -> Self {
        let missing = Missing {
            etag,
            total_bytes: None,
            position: 0,
            end: None,
            max_whole_bytes: u64::MAX,
        };
        Self { missing, open: None }
    }

    /// Reads a range, which is not empty, of the version with this ETag.
    ///
    /// A store that does not support ranges sends the whole object. Its bytes before and after the range are discarded, but a range that does
    /// not end within the first `max_whole_bytes` is an error.
    pub const fn range(etag: HeaderValue, range: Range<u64>, max_whole_bytes: u64) -> Self {
        let missing = Missing {
            etag: Some(etag),
            total_bytes: None,
            position: range.start,
            end: Some(range.end),
            max_whole_bytes,
        };
        Self { missing, open: None }
    }

    /// Reads a range, which is not empty, of this version. Its size is compared too, and no whole object is accepted.
    pub(crate) fn of_version(version: &ObjectVersion, range: Range<u64>) -> Self {
        let mut get = Self::range(version.etag.clone(), range, 0);
        get.missing.total_bytes = Some(version.total_bytes);
        get
    }

    /// The ETag of the version, if it is known.
    pub const fn etag(&self) -> Option<&HeaderValue> {
        self.missing.etag.as_ref()
    }

    /// Where the next byte is in the object.
    pub const fn position(&self) -> u64 {
        self.missing.position
    }

    /// The answer that is being read. `None` before the first one, and after an error.
    pub const fn answer(&self) -> Option<&A> {
        match &self.open {
            Some(open) => Some(&open.answer),
            None => None,
        }
    }

    /// Leaves out the bytes before a position.
    pub fn skip_to(&mut self, position: u64) {
        let skipped = position.saturating_sub(self.missing.position);
        self.missing.position += skipped;
        if let Some(open) = &mut self.open {
            open.unwanted_bytes += skipped;
        }
    }
}

impl<A: AnswerHead> ResumableGet<A> {
    /// Requests what is missing, unless an answer is being read. Returns the answer.
    ///
    /// # Errors
    /// [`ReadError::Replaced`] for another version; [`ReadError::MissingEtag`] if the first answer broke off and states no version;
    /// [`ReadError::Mismatch`] for another range; [`ReadError::UnexpectedStatus`] for any status but those of the range and of the object.
    pub async fn open<T: RangeTransport<Answer = A>>(&mut self, transport: &T) -> ReadResult<&mut A, T> {
        let open = self.opened(transport).await?;
        Ok(&mut open.answer)
    }

    /// Requests what is missing, and returns the answer.
    pub(crate) async fn into_answer<T: RangeTransport<Answer = A>>(self, transport: &T) -> ReadResult<A, T> {
        let Self { missing, .. } = self;
        Ok(missing.request(transport).await?.answer)
    }

    async fn opened<T: RangeTransport<Answer = A>>(
        &mut self,
        transport: &T,
    ) -> ReadResult<&mut OpenAnswer<A>, T> {
        let open = match self.open.take() {
            Some(open) => open,
            None => self.missing.request(transport).await?,
        };
        if self.missing.etag.is_none() {
            self.missing.etag = open.answer.headers().get(ETAG).cloned();
        }
        Ok(self.open.insert(open))
    }
}

impl<A: AnswerBody> ResumableGet<A> {
    /// The next piece, of a new answer if none is being read; `None` at the end of the object or range.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`ReadError::Transport`] also if the body breaks off.
    pub async fn chunk<T>(&mut self, transport: &T) -> ReadResult<Option<Bytes>, T>
    where
        T: RangeTransport<Answer = A>,
        T::Error: From<A::Error>,
    {
        // A store without ranges may have sent what follows the range.
        if self.open.is_none() && self.missing.end.is_some_and(|end| self.missing.position >= end) {
            return Ok(None);
        }
        let position = self.missing.position;
        let open = self.opened(transport).await?;
        let wanted = open.end.map_or(u64::MAX, |end| end.saturating_sub(position));
        if wanted == 0 {
            return Ok(None);
        }
        loop {
            match open.answer.chunk().await {
                Ok(Some(mut chunk)) => {
                    let unwanted = usize::try_from(open.unwanted_bytes).unwrap_or(usize::MAX);
                    let unwanted = unwanted.min(chunk.len());
                    chunk.advance(unwanted);
                    open.unwanted_bytes -= unwanted as u64;
                    chunk.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
                    if !chunk.is_empty() {
                        self.missing.position += chunk.len() as u64;
                        return Ok(Some(chunk));
                    }
                }
                Ok(None) => return Ok(None),
                Err(error) => {
                    self.open = None;
                    return Err(ReadError::Transport(error.into()));
                }
            }
        }
    }
}

impl Missing {
    async fn request<T: RangeTransport>(&self, transport: &T) -> ReadResult<OpenAnswer<T::Answer>, T> {
        let mut headers = HeaderMap::new();
        if let Some(etag) = &self.etag {
            headers.insert(IF_MATCH, etag.clone());
        } else if self.position > 0 {
            return Err(ReadError::MissingEtag);
        }
        if let Some(end) = self.end {
            let last = end.saturating_sub(1);
            headers.insert(RANGE, range_value(&format!("{}-{last}", self.position))?);
        } else if self.position > 0 {
            headers.insert(RANGE, range_value(&format!("{}-", self.position))?);
        }
        let answer = send(transport, headers).await?;
        let (unwanted_bytes, end) = match answer.status() {
            StatusCode::PARTIAL_CONTENT => (0, None),
            StatusCode::OK if self.end.is_none_or(|end| end <= self.max_whole_bytes) => {
                (self.position, self.end)
            }
            StatusCode::PRECONDITION_FAILED => return Err(ReadError::Replaced),
            // The size was another one before.
            StatusCode::RANGE_NOT_SATISFIABLE if self.total_bytes.is_some() => {
                return Err(ReadError::Replaced);
            }
            _ => return Err(ReadError::UnexpectedStatus(answer)),
        };
        // Not every store evaluates `If-Match`.
        if self.etag.is_some() && answer.headers().get(ETAG) != self.etag.as_ref() {
            return Err(ReadError::Replaced);
        }
        if answer.status() == StatusCode::PARTIAL_CONTENT {
            self.check_range(answer.headers())?;
        }
        Ok(OpenAnswer {
            answer,
            unwanted_bytes,
            end,
        })
    }

    /// Checks that a part begins at the position; if the size of the object is known, that it has the whole range.
    fn check_range<A, E>(&self, headers: &HeaderMap) -> Result<(), ReadError<A, E>> {
        let mismatch = ReadError::Mismatch("Content-Range does not match the requested range");
        let Some(found) = ContentRange::from_headers(headers) else {
            return Err(mismatch);
        };
        match self.total_bytes {
            Some(total) if found.total_bytes != total => Err(ReadError::Replaced),
            Some(_) if Some(found.range.end) != self.end => Err(mismatch),
            _ if found.range.start != self.position => Err(mismatch),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
