//! A part of a shard while the store sends it: entries are taken out of it, and bytes between them are skipped.

use std::ops::Range;

use bytes::Bytes;
use futures::{Stream, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown::shard::{EntryCursor, Listed, MemberRange};
use pushdown_s3::ContentRange;
use tokio::time::Instant;

use super::{OriginObject, joined_reads::EntryTicket, next_bytes};
use crate::{
    body::{self, Body, BoxError},
    error::{Error, ErrorKind, Result},
};

/// The store's answer with a part of a shard, read up to some byte.
#[derive(Debug)]
pub(super) struct ShardStream {
    headers: HeaderMap,
    asked_at: Option<Instant>,
    body: Body,
    cursor: EntryCursor<Listed>,
    /// Offset in the shard after the last byte of the answer; `None` if the store does not say.
    end: Option<u64>,
}

impl ShardStream {
    /// The part in an answer to a request for bytes from `requested.start` on, with the status 206 or 200. A store without ranges
    /// sends the whole shard, of which at most `max_skipped_bytes` are skipped.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`] for another part; [`ErrorKind::EntityTooLarge`] if too much would be skipped.
    pub(super) fn new(answer: OriginObject, requested: &Range<u64>, max_skipped_bytes: u64) -> Result<Self> {
        let (position, end) = if answer.status == StatusCode::PARTIAL_CONTENT {
            let part = ContentRange::from_headers(&answer.headers)
                .filter(|part| part.range.start == requested.start)
                .filter(|part| answer.content_length.is_none_or(|length| length == part.length()));
            let part = part.ok_or_else(|| {
                Error::new(
                    ErrorKind::OriginUnavailable,
                    "invalid answer of the store: Content-Range does not match the requested range",
                )
            })?;
            (part.range.start, Some(part.range.end))
        } else if requested.start <= max_skipped_bytes {
            (0, answer.content_length)
        } else {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the store sends whole shards only: expected a member in the first {max_skipped_bytes} bytes, found one at \
                     byte {}",
                    requested.start
                ),
            ));
        };
        Ok(Self {
            headers: answer.headers,
            asked_at: answer.asked_at,
            body: answer.body,
            cursor: EntryCursor::listed(position),
            end,
        })
    }

    /// Whether the rest of the part has all of an entry, as far as the store says.
    pub(super) fn has(&self, entry: &Range<u64>) -> bool {
        self.cursor.position() <= entry.start && self.end.is_none_or(|end| entry.end <= end)
    }

    /// Whether it has all of an entry, which begins within the next bytes, as far as the store says.
    pub(super) fn has_within(&self, entry: &Range<u64>, max_skipped_bytes: u64) -> bool {
        self.has(entry) && entry.start - self.cursor.position() <= max_skipped_bytes
    }

    /// The store's headers.
    pub(super) const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Skips to an entry, and reads the bytes before its content.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`] if the answer ends earlier, and those of its body.
    pub(super) async fn read_header(&mut self, range: &MemberRange) -> Result<Bytes> {
        self.cursor.go_to(range);
        loop {
            if let Some(header) = self.cursor.header() {
                return Ok(header);
            }
            self.receive().await?;
        }
    }

    /// The content after the [header](Self::read_header) as an object that the store has sent. What follows it is left to the next reader after
    /// `ticket`.
    pub(super) fn into_object(self, ticket: Option<EntryTicket>) -> OriginObject {
        let bytes = self.cursor.content_bytes();
        let mut headers = self.headers.clone();
        headers.remove(header::CONTENT_RANGE);
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
        let asked_at = self.asked_at;
        let body = if bytes == 0 {
            self.end(ticket);
            body::empty()
        } else {
            StreamBody::new(self.into_content(ticket)).boxed_unsync()
        };
        OriginObject {
            status: StatusCode::OK,
            headers,
            content_length: Some(bytes),
            body,
            asked_at,
            extensions: http::Extensions::new(),
        }
    }

    /// The frames of a content that is not empty. With the last one, the rest is left to the next reader.
    fn into_content(
        self,
        ticket: Option<EntryTicket>,
    ) -> impl Stream<Item = Result<Frame<Bytes>, BoxError>> + Send + 'static {
        stream::try_unfold(Some((self, ticket)), async |rest| {
            let Some((mut stream, ticket)) = rest else {
                return Ok(None);
            };
            let piece = stream.read_content().await?;
            let frame = Frame::data(piece);
            if stream.cursor.content_bytes() > 0 {
                return Ok(Some((frame, Some((stream, ticket)))));
            }
            stream.end(ticket);
            Ok::<_, BoxError>(Some((frame, None)))
        })
    }

    /// Ends a content, and leaves the rest to the next reader.
    fn end(self, ticket: Option<EntryTicket>) {
        if let Some(ticket) = ticket {
            ticket.pass_on(self);
        }
    }

    /// Waits for a piece.
    async fn receive(&mut self) -> Result<()> {
        let piece = next_bytes(&mut self.body).await?.ok_or_else(|| {
            Error::new(
                ErrorKind::OriginUnavailable,
                format!(
                    "the store's answer ended early: expected more of the shard after byte {}",
                    self.cursor.position()
                ),
            )
        })?;
        self.cursor.push(piece);
        Ok(())
    }

    /// The next piece of the content.
    async fn read_content(&mut self) -> Result<Bytes> {
        loop {
            if let Some(piece) = self.cursor.next_content() {
                return Ok(piece);
            }
            self.receive().await?;
        }
    }
}

#[cfg(test)]
mod tests;
