//! Reads of members of shards: a range of the object, whose answer looks like that of a whole object.

use std::{fmt, ops::Range, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use pushdown::{
    pipeline::Digest,
    shard::{MemberRange, ShardFormat, check_entry},
};

use super::{
    Origin, OriginObject, OriginRequest, drain, joined_reads::EntryTicket, shard_stream::ShardStream,
};
use crate::error::{Error, ErrorKind, Result};

/// A member of a shard, to read instead of the whole object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardMember {
    name: Arc<str>,
    range: MemberRange,
    format: ShardFormat,
    /// The version of the shard in which the member has this place, if the caller knows it.
    etag: Option<HeaderValue>,
}

impl ShardMember {
    /// The member with this name at this place of a shard, in any version or in the version `etag`.
    pub fn new(name: &str, range: MemberRange, format: ShardFormat, etag: Option<HeaderValue>) -> Self {
        Self {
            name: name.into(),
            range,
            format,
            etag,
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it is.
    pub const fn range(&self) -> &MemberRange {
        &self.range
    }

    /// The version of the shard that it requires, if any.
    pub const fn etag(&self) -> Option<&HeaderValue> {
        self.etag.as_ref()
    }

    /// Digest of its name and its place.
    pub fn digest(&self) -> Digest {
        let range = &self.range;
        let place = [range.offset(), range.header_bytes().into(), range.size()];
        let place = place.map(u64::to_le_bytes).concat();
        Digest::from_parts([self.name.as_bytes(), place.as_slice()])
    }

    /// Checks that an answer is about the required version.
    fn check_version(&self, headers: &HeaderMap) -> Result<()> {
        let Some(expected) = &self.etag else {
            return Ok(());
        };
        match headers.get(header::ETAG) {
            Some(found) if found == expected => Ok(()),
            Some(_) => Err(self.replaced()),
            None => Err(Error::new(
                ErrorKind::OriginUnavailable,
                "invalid answer of the store: expected an ETag with a part of a shard, found none",
            )),
        }
    }

    fn replaced(&self) -> Error {
        let message = format!(
            "the shard was replaced after it was indexed, so that member `{}` may be elsewhere: run `pushdown index` again",
            self.name
        );
        Error::new(ErrorKind::ShardReplaced, message)
    }

    fn invalid(&self, reason: impl fmt::Display) -> Error {
        let message = format!(
            "the shard does not have member `{}` where the list has it: {reason}; run `pushdown index` again",
            self.name
        );
        Error::new(ErrorKind::InvalidShard, message)
    }
}

impl OriginRequest {
    /// The same request for a member of the object, or for all of it.
    #[must_use]
    pub fn with_member(mut self, member: Option<ShardMember>) -> Self {
        self.member = member.map(Arc::new);
        self
    }

    /// The member to read. What is left reads all of the object.
    pub(super) fn take_member(&mut self) -> Option<Arc<ShardMember>> {
        self.member.take()
    }

    /// Whether it reads a member of the object.
    pub const fn has_member(&self) -> bool {
        self.member.is_some()
    }

    /// The version of the object that it requires: that of the shard in which a member has its place, or that of the whole object.
    pub fn required_version(&self) -> Option<&HeaderValue> {
        match &self.member {
            Some(member) => member.etag(),
            None => self.version.as_ref(),
        }
    }
}

impl Origin {
    /// Reads a member. The answer has the status and the length of a whole object, which is the content of the member. Refusals by
    /// the store, and 304, stay as they are. With a ticket, the entries of the readers after it are requested, too.
    ///
    /// # Errors
    /// [`ErrorKind::ShardReplaced`] if the shard has another version than the member requires; [`ErrorKind::InvalidShard`] if the
    /// entry is not the member's; and those of any read.
    pub(super) async fn read_member(
        &self,
        mut request: OriginRequest,
        member: Arc<ShardMember>,
        ticket: Option<EntryTicket>,
    ) -> Result<OriginObject> {
        let mut requested = member.range.entry();
        if let Some(ticket) = &ticket {
            requested.end = ticket.end();
        }
        let rest = match &ticket {
            Some(ticket) => ticket.wait(&member.range.entry()).await,
            None => None,
        };
        if let Some(rest) = rest {
            match open(rest, &member).await {
                // The connection was lost while nobody read.
                Err(error) if error.retry_after().is_some() => {}
                opened => return Ok(opened?.into_object(ticket)),
            }
        }
        let is_head = request.method == Method::HEAD;
        if !is_head {
            request.add(header::RANGE, range_value(&requested)?);
        }
        let is_conditional = request.headers().contains_key(header::IF_NONE_MATCH);
        let condition = member.etag().filter(|_| !is_conditional).cloned();
        let has_condition = condition.is_some();
        if let Some(etag) = condition {
            request.add(header::IF_MATCH, etag);
        }
        let answer = self.read_object(request).await?;
        match answer.status {
            StatusCode::OK if is_head => member.check_version(&answer.headers).map(|()| answer),
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {
                let stream = ShardStream::new(answer, &requested, self.max_object_bytes)?;
                let stream = open(stream, &member).await?;
                Ok(stream.into_object(ticket))
            }
            StatusCode::PRECONDITION_FAILED if has_condition => {
                drain(answer).await;
                Err(member.replaced())
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                drain(answer).await;
                Err(member.invalid(format_args!(
                    "expected an entry at byte {}, found the end of the shard",
                    requested.start
                )))
            }
            _ => Ok(answer),
        }
    }
}

/// Reads the headers of the member's entry, and checks them. The content stays at the store.
async fn open(mut stream: ShardStream, member: &ShardMember) -> Result<ShardStream> {
    let entry = member.range.entry();
    member.check_version(stream.headers())?;
    if !stream.has(&entry) {
        return Err(member.invalid(format_args!(
            "expected an entry that ends at byte {}, found the end of the shard before",
            entry.end
        )));
    }
    let header = stream.read_header(&member.range).await?;
    check_entry(member.format, &header, &member.name, &member.range)
        .map_err(|error| member.invalid(error))?;
    Ok(stream)
}

fn range_value(range: &Range<u64>) -> Result<HeaderValue> {
    let text = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
    HeaderValue::from_str(&text).map_err(|error| {
        Error::new(ErrorKind::Internal, "cannot write a range as a header value").with_source(error)
    })
}
