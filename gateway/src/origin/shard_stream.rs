//! A part of a shard while the store sends it: entries are taken out of it, and bytes between them are skipped.

use std::{
    future::poll_fn,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use pushdown::shard::{EntryCursor, Listed, MemberRange};
use pushdown_s3::ContentRange;
use tokio::time::Instant;

use super::{OriginObject, frames::origin_error, joined_reads::EntryTicket};
use crate::{
    body::{Body, BoxError},
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

/// The content of a member.
#[derive(Debug)]
struct MemberContent {
    /// `None` after the end of the content, and after an error.
    stream: Option<ShardStream>,
    /// If others read further entries of the same answer.
    ticket: Option<EntryTicket>,
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
            poll_fn(|cx| self.poll_arrive(cx)).await?;
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
        let mut content = MemberContent {
            stream: Some(self),
            ticket,
        };
        if bytes == 0 {
            content.end();
        }
        OriginObject {
            status: StatusCode::OK,
            headers,
            content_length: Some(bytes),
            body: content.boxed_unsync(),
            asked_at,
            extensions: http::Extensions::new(),
        }
    }

    /// Waits for a piece.
    fn poll_arrive(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        loop {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        self.cursor.push(piece);
                        return Poll::Ready(Ok(()));
                    }
                }
                Some(Err(error)) => return Poll::Ready(Err(origin_error(error))),
                None => {
                    return Poll::Ready(Err(Error::new(
                        ErrorKind::OriginUnavailable,
                        format!(
                            "the store's answer ended early: expected more of the shard after byte {}",
                            self.cursor.position()
                        ),
                    )));
                }
            }
        }
    }

    /// The next piece of the content.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes>> {
        loop {
            if let Some(piece) = self.cursor.next_content() {
                return Poll::Ready(Ok(piece));
            }
            ready!(self.poll_arrive(cx))?;
        }
    }
}

impl MemberContent {
    /// Ends the content, and leaves the rest to the next reader.
    fn end(&mut self) {
        if let (Some(stream), Some(ticket)) = (self.stream.take(), self.ticket.take()) {
            ticket.pass_on(stream);
        }
    }
}

impl http_body::Body for MemberContent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let Some(stream) = &mut this.stream else {
            return Poll::Ready(None);
        };
        match ready!(stream.poll_content(cx)) {
            Ok(piece) => {
                if stream.cursor.content_bytes() == 0 {
                    this.end();
                }
                Poll::Ready(Some(Ok(Frame::data(piece))))
            }
            Err(error) => {
                (this.stream, this.ticket) = (None, None);
                Poll::Ready(Some(Err(error.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let left = self
            .stream
            .as_ref()
            .map_or(0, |stream| stream.cursor.content_bytes());
        SizeHint::with_exact(left)
    }
}

#[cfg(test)]
mod tests;
