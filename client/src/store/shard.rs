//! Reads members of a shard: entries that follow each other by one GET of a range, in the version that the list states.

use std::{fmt, ops::Range};

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use pushdown::{
    Limits,
    shard::{EntryCursor, Listed, MemberRange, ShardFormat, check_entry},
    wire::RowError,
};
use pushdown_s3::{Attempt, ReadError, ResumableGet};

use super::{Failure, Store, failure::NamedFailure, object_get::ObjectGet};
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Object},
    sample_name::SampleName,
    transport::Answer,
};

/// The code of a row whose shard is another version than that of the list. The same as a gateway's.
pub(super) const SHARD_REPLACED: &str = "ShardReplaced";
/// The code of a row whose entry is not that of the list.
const INVALID_SHARD: &str = "InvalidShard";

/// The bytes of a range of a shard as they arrive, over as many answers as it takes.
#[derive(Debug)]
pub(crate) struct ShardBody {
    transport: ObjectGet,
    get: ResumableGet<Answer>,
    /// The limit of a whole shard, which a store without ranges sends.
    max_whole_bytes: u64,
    cursor: EntryCursor<Listed>,
    /// The last entry that was taken.
    last: Option<(MemberRange, TakenEntry)>,
}

/// The bytes of an entry. The content is a copy, so that it keeps no neighbouring entries in memory.
#[derive(Debug, Clone)]
struct TakenEntry {
    header: Bytes,
    content: Bytes,
}

/// What a shard has where its list has a member.
#[derive(Debug)]
pub(crate) enum FoundEntry {
    /// The content of the member.
    Member(Bytes),
    /// Something else, which is an error of this member alone.
    Other(RowError),
}

impl Store {
    /// A range of a shard. Requests nothing yet. If the store does not support ranges, it sends the whole shard, whose bytes before the range
    /// are not kept.
    ///
    /// # Errors
    /// For an ETag that is no header value.
    pub(crate) fn shard_body(
        &self,
        bucket: &str,
        shard: Object<'_>,
        range: Range<u64>,
        limits: &Limits,
    ) -> Result<ShardBody> {
        let etag = HeaderValue::from_str(shard.etag.unwrap_or_default()).map_err(|error| {
            Error::config("the ETag of a shard is not a valid header value").with_source(error)
        })?;
        Ok(ShardBody {
            transport: ObjectGet {
                store: self.clone(),
                bucket: bucket.to_owned(),
                key: shard.key.to_owned(),
            },
            max_whole_bytes: limits.max_object_bytes,
            cursor: EntryCursor::listed(range.start),
            get: ResumableGet::range(etag, range, limits.max_object_bytes),
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
        let read = self.read_member(bucket, object, member, limits).await;
        read.map_err(|failure| failure.about(&about).error)
    }

    /// Reads a member of the shard that this object is, in the version of its ETag.
    pub(crate) async fn read_member(
        &self,
        bucket: &str,
        shard: Object<'_>,
        member: MemberRef<'_>,
        limits: &Limits,
    ) -> Result<Bytes, Failure> {
        if member.range.size() > limits.max_object_bytes {
            return Err(Failure::TooLarge(limits.max_object_bytes));
        }
        let mut read = MemberRead {
            bucket,
            body: self.shard_body(bucket, shard, member.range.entry(), limits)?,
            key: shard.key,
            member,
        };
        let read = self.retries().complete(&mut read).await;
        read.map_err(|named| named.failure)
    }
}

/// The attempts to read one member.
struct MemberRead<'a> {
    bucket: &'a str,
    body: ShardBody,
    key: &'a str,
    member: MemberRef<'a>,
}

impl Attempt for MemberRead<'_> {
    type Output = Bytes;
    type Error = NamedFailure;

    async fn run(&mut self) -> Result<Bytes, NamedFailure> {
        let found = self.body.entry_at(self.key, self.member).await;
        let content = found.and_then(|found| found.into_content().map_err(Failure::Unusable));
        content.map_err(|failure| {
            failure.named(format!(
                "s3://{}/{} member {}",
                self.bucket, self.key, self.member.name
            ))
        })
    }
}

impl ShardBody {
    /// Whether an answer is being read. Otherwise the next entry needs a request.
    pub(crate) const fn is_open(&self) -> bool {
        self.get.answer().is_some()
    }

    /// Requests what is missing from an entry on, and waits for the head of the answer. Returns the length of its body in bytes, if it is
    /// known.
    pub(crate) async fn open_at(&mut self, entry: &MemberRange) -> Result<Option<u64>, Failure> {
        self.go_to(entry)?;
        self.open().await
    }

    async fn open(&mut self) -> Result<Option<u64>, Failure> {
        let error = match self.get.open(&self.transport).await {
            Ok(answer) => return Ok(answer.length()),
            Err(error) => error,
        };
        Err(self.failure(error).await)
    }

    /// What the shard has in the place of a member. Its entry is the same as that of the last member, or after it.
    ///
    /// # Errors
    /// If the shard cannot be read. What has arrived of the entry is kept for the next attempt.
    pub(crate) async fn entry_at(&mut self, key: &str, member: MemberRef<'_>) -> Result<FoundEntry, Failure> {
        let content = match self.entry(&member.range).await? {
            Some(entry) => check(key, member, entry),
            None => Err(invalid(format_args!(
                "expected an entry that ends at byte {}, found the end of the shard before",
                member.range.entry().end
            ))),
        };
        Ok(content.map_or_else(FoundEntry::Other, FoundEntry::Member))
    }

    /// The bytes of an entry; `None` if the shard ends before them.
    async fn entry(&mut self, range: &MemberRange) -> Result<Option<TakenEntry>, Failure> {
        if let Some((last, entry)) = &self.last
            && last == range
        {
            return Ok(Some(entry.clone()));
        }
        self.go_to(range)?;
        loop {
            if let Some(header) = self.cursor.header()
                && let Some(content) = self.cursor.content()
            {
                let entry = TakenEntry { header, content };
                self.last = Some((*range, entry.clone()));
                return Ok(Some(entry));
            }
            if !self.is_open() {
                self.open().await?;
            }
            match self.get.chunk(&self.transport).await {
                Ok(Some(chunk)) => self.cursor.push(chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.failure(error).await),
            }
        }
    }

    /// Goes to an entry. What is before it and has not arrived is not requested.
    fn go_to(&mut self, range: &MemberRange) -> Result<(), Failure> {
        self.cursor.go_to(range);
        let skipped = self.cursor.skip(self.cursor.skippable());
        skipped.map_err(|error| Failure::Unusable(invalid(error)))?;
        self.get.skip_to(range.offset());
        Ok(())
    }

    async fn failure(&self, error: ReadError<Answer, Failure>) -> Failure {
        match error {
            ReadError::UnexpectedStatus(answer) if answer.status == StatusCode::OK => {
                Failure::TooLarge(self.max_whole_bytes)
            }
            ReadError::UnexpectedStatus(answer) if answer.status == StatusCode::RANGE_NOT_SATISFIABLE => {
                Failure::Unusable(invalid(format_args!(
                    "expected an entry at byte {}, found the end of the shard",
                    self.get.position()
                )))
            }
            error => Failure::of_read(error, || Failure::Unusable(replaced())).await,
        }
    }
}

impl FoundEntry {
    /// The content of the member.
    ///
    /// # Errors
    /// The error of this member, if the shard has something else there.
    pub(crate) fn into_content(self) -> Result<Bytes, RowError> {
        match self {
            Self::Member(content) => Ok(content),
            Self::Other(error) => Err(error),
        }
    }
}

/// The content of an entry whose headers are those of the member.
fn check(key: &str, member: MemberRef<'_>, entry: TakenEntry) -> Result<Bytes, RowError> {
    let format =
        ShardFormat::from_key(key).ok_or_else(|| invalid("expected a key that ends in `.tar` or `.zip`"))?;
    check_entry(format, &entry.header, member.name, &member.range).map_err(invalid)?;
    Ok(entry.content)
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
