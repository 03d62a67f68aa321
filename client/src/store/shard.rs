//! Reads members of a shard: entries that follow each other by one GET of a range, in the version that the list states.

use std::{fmt, ops::Range};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ETAG, IF_MATCH, InvalidHeaderValue, RANGE},
};
use pushdown::{
    Limits,
    shard::{MemberRange, ShardFormat, check_entry},
    wire::RowError,
};
use pushdown_s3::ContentRange;

use super::{Failure, Store};
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Object},
    sample_name::SampleName,
    sign::object_path,
    transport::Answer,
};

/// The code of a row whose shard is another version than that of the list. The same as a gateway's.
pub(super) const SHARD_REPLACED: &str = "ShardReplaced";
/// The code of a row whose entry is not that of the list.
const INVALID_SHARD: &str = "InvalidShard";
/// The most bytes of a body that the buffer has room for in advance.
const MAX_CAPACITY: u64 = 8 << 20;

/// The bytes of a shard from a position on, as they arrive.
#[derive(Debug)]
pub(crate) struct ShardBody {
    answer: Answer,
    /// The bytes that have arrived and were not taken.
    buffer: BytesMut,
    /// Where the buffer begins in the shard.
    position: u64,
    /// The last entry that was taken.
    last: Option<(MemberRange, Bytes)>,
}

impl Store {
    /// Requests a range of a shard, and waits for the head of the answer. If the store does not support ranges, the answer is the whole
    /// shard, whose bytes before the range are not kept.
    pub(crate) async fn open_shard(
        &self,
        bucket: &str,
        shard: Object<'_>,
        range: &Range<u64>,
        limits: &Limits,
    ) -> Result<ShardBody, Failure> {
        let invalid_header = |error: InvalidHeaderValue| {
            Error::config("the ETag of a shard is not a valid header value").with_source(error)
        };
        let etag = HeaderValue::from_str(shard.etag.unwrap_or_default()).map_err(invalid_header)?;
        let last = range.end.saturating_sub(1);
        let bytes =
            HeaderValue::from_str(&format!("bytes={}-{last}", range.start)).map_err(invalid_header)?;
        let headers = HeaderMap::from_iter([(IF_MATCH, etag.clone()), (RANGE, bytes)]);
        let path = object_path(bucket, shard.key);
        let answer = self.send_get(&path, headers).await?;
        let position = match answer.status {
            StatusCode::PARTIAL_CONTENT => ContentRange::from_headers(&answer.headers)
                .filter(|found| found.range.start == range.start)
                .map(|found| found.range.start)
                .ok_or_else(|| {
                    Error::protocol(
                        "invalid answer from the endpoint: Content-Range does not match the requested range",
                    )
                })?,
            StatusCode::OK if range.end > limits.max_object_bytes => {
                return Err(Failure::TooLarge(limits.max_object_bytes));
            }
            StatusCode::OK => 0,
            status => {
                let refusal = answer.refusal().await;
                return Err(match status {
                    StatusCode::PRECONDITION_FAILED => Failure::Unusable(replaced()),
                    StatusCode::RANGE_NOT_SATISFIABLE => Failure::Unusable(invalid(format_args!(
                        "expected an entry at byte {}, found the end of the shard",
                        range.start
                    ))),
                    _ => Failure::Refused(refusal),
                });
            }
        };
        // Not every store evaluates `If-Match`.
        if answer.headers.get(ETAG) != Some(&etag) {
            return Err(Failure::Unusable(replaced()));
        }
        let length = answer.length().unwrap_or_default();
        let length = length.min(range.end - range.start).min(MAX_CAPACITY);
        Ok(ShardBody {
            answer,
            buffer: BytesMut::with_capacity(usize::try_from(length).unwrap_or_default()),
            position,
            last: None,
        })
    }

    /// Reads a sample as stored: a whole object, or a member of a shard.
    ///
    /// # Errors
    /// If the store refuses it, the retries are exhausted, or the shard is not the one of the list.
    pub async fn get_sample(&self, bucket: &str, object: Object<'_>, limits: &Limits) -> Result<Bytes> {
        let Some(member) = object.member else {
            return self.get(bucket, object.key, limits).await;
        };
        let about = format!("s3://{bucket}/{}", SampleName::from(object));
        self.with_retries(&about, || self.get_member(bucket, object, member, limits))
            .await
    }

    async fn get_member(
        &self,
        bucket: &str,
        shard: Object<'_>,
        member: MemberRef<'_>,
        limits: &Limits,
    ) -> Result<Bytes, Failure> {
        if member.range.size() > limits.max_object_bytes {
            return Err(Failure::TooLarge(limits.max_object_bytes));
        }
        let range = member.range.entry();
        let mut body = self.open_shard(bucket, shard, &range, limits).await?;
        let content = body.content(shard.key, member).await?;
        content.map_err(Failure::Unusable)
    }
}

impl ShardBody {
    /// The length of the body in bytes, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        self.answer.length()
    }

    /// The content of a member. Its entry is the same as that of the last member, or after it. The inner error is one of this member:
    /// its entry is not that of the list.
    ///
    /// # Errors
    /// If the answer breaks off.
    pub(crate) async fn content(
        &mut self,
        key: &str,
        member: MemberRef<'_>,
    ) -> Result<Result<Bytes, RowError>> {
        let entry = self.entry(&member.range).await?;
        Ok(match entry {
            Some(entry) => check(key, member, entry),
            None => Err(invalid(format_args!(
                "expected an entry that ends at byte {}, found the end of the shard before",
                member.range.entry().end
            ))),
        })
    }

    /// The bytes of an entry; `None` if the body ends before them.
    async fn entry(&mut self, range: &MemberRange) -> Result<Option<Bytes>> {
        if let Some((last, entry)) = &self.last
            && last == range
        {
            return Ok(Some(entry.clone()));
        }
        let entry = range.entry();
        let Ok(length) = usize::try_from(entry.end - entry.start) else {
            return Ok(None);
        };
        loop {
            self.skip_to(entry.start);
            if self.position == entry.start && self.buffer.len() >= length {
                self.position = entry.end;
                let entry = self.buffer.split_to(length).freeze();
                self.last = Some((*range, entry.clone()));
                return Ok(Some(entry));
            }
            match self.answer.chunk().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// Drops bytes before a position, as far as they have arrived.
    fn skip_to(&mut self, position: u64) {
        let unwanted = position.saturating_sub(self.position);
        let unwanted = usize::try_from(unwanted).unwrap_or(usize::MAX);
        let unwanted = unwanted.min(self.buffer.len());
        self.buffer.advance(unwanted);
        self.position += unwanted as u64;
    }
}

/// The content of an entry whose headers are those of the member.
fn check(key: &str, member: MemberRef<'_>, mut entry: Bytes) -> Result<Bytes, RowError> {
    let format =
        ShardFormat::from_key(key).ok_or_else(|| invalid("expected a key that ends in `.tar` or `.zip`"))?;
    let content = entry.split_off((member.range.header_bytes() as usize).min(entry.len()));
    match check_entry(format, &entry, member.name, &member.range) {
        Ok(()) => Ok(content),
        Err(error) => Err(invalid(error)),
    }
}

fn replaced() -> RowError {
    let message = "the shard was replaced after it was indexed: run `pushdown index` again";
    RowError::new(SHARD_REPLACED, message)
}

fn invalid(reason: impl fmt::Display) -> RowError {
    let message = format!(
        "the shard does not have this member where the list has it: {reason}; run `pushdown index` again"
    );
    RowError::new(INVALID_SHARD, message)
}
