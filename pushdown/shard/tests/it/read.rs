//! Reads shards in one piece and in many.

use std::ops::Range;

use bytes::Bytes;
use pushdown_shard::{
    EntryCursor, Member, MemberRange, ShardError, ShardFormat, ShardLimits, Walked, ZipDirectory,
};

pub(crate) type Members = Result<Vec<Member>, ShardError>;

/// The members of a tar that is passed whole.
pub(crate) fn walk(shard: &[u8]) -> Members {
    walk_within(ShardLimits::default(), shard)
}

/// The same, within limits.
pub(crate) fn walk_within(limits: ShardLimits, shard: &[u8]) -> Members {
    let mut cursor = EntryCursor::walk(limits);
    cursor.push(Bytes::copy_from_slice(shard));
    let members = arrived_members(&mut cursor)?;
    cursor.finish(shard.len() as u64)?;
    Ok(members)
}

/// The next members, whose headers have arrived.
pub(crate) fn arrived_members(cursor: &mut EntryCursor<Walked>) -> Members {
    std::iter::from_fn(|| cursor.next_member().transpose()).collect()
}

/// What is left out of a tar, as a text. Empty for nothing.
pub(crate) fn left_out(shard: &[u8]) -> String {
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(Bytes::copy_from_slice(shard));
    arrived_members(&mut cursor).unwrap();
    let left_out = cursor.left_out();
    if left_out.is_empty() {
        String::new()
    } else {
        format!("; left out: {left_out}")
    }
}

/// The members of a tar that is passed in pieces of the given sizes, again and again. If one is 0, all that can be skipped is.
pub(crate) fn walk_in_pieces(shard: &[u8], sizes: &[usize]) -> Members {
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    let mut members = Vec::new();
    let mut sizes = sizes.iter().copied().cycle();
    while !cursor.is_at_end() && cursor.position() < shard.len() as u64 {
        match sizes.next() {
            None | Some(0) if cursor.skippable() > 0 => cursor.skip(cursor.skippable())?,
            size => {
                let start = usize::try_from(cursor.position()).unwrap();
                let size = size.unwrap_or(usize::MAX).max(1);
                let end = start.saturating_add(size).min(shard.len());
                cursor.push(Bytes::copy_from_slice(&shard[start..end]));
            }
        }
        members.extend(arrived_members(&mut cursor)?);
    }
    cursor.finish(shard.len() as u64)?;
    Ok(members)
}

/// The members of a zip whose bytes are read as they are needed, and `more` bytes after them.
pub(crate) fn directory(shard: &[u8], more: usize) -> Members {
    let mut directory = ZipDirectory::new(shard.len() as u64, ShardLimits::default())?;
    while let Some(range) = directory.needs() {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        assert!(range.start < range.end && range.end <= shard.len(), "{range:?}");
        directory.push(&shard[range.start..(range.end + more).min(shard.len())])?;
    }
    directory.finish()
}

/// The members of a shard.
pub(crate) fn members(format: ShardFormat, shard: &[u8]) -> Members {
    match format {
        ShardFormat::Tar => walk(shard),
        ShardFormat::Zip => directory(shard, 0),
    }
}

/// The bytes of a shard in a range.
pub(crate) fn bytes(shard: &[u8], range: Range<u64>) -> &[u8] {
    &shard[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
}

/// The bytes before the content of a member.
pub(crate) fn header<'a>(shard: &'a [u8], range: &MemberRange) -> &'a [u8] {
    bytes(shard, range.offset()..range.content().start)
}
