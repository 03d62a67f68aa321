//! Any bytes as a shard: its members, and what is left out, or the error, do not depend on the pieces in which it is read, nor on whether
//! contents are taken. The header in front of each content is that of its member, and of no other.

use std::collections::HashSet;

use bytes::Bytes;
use pushdown::shard::{
    EntryCursor, LeftOut, Member, MemberRange, ShardError, ShardFormat, ShardLimits, ZipDirectory,
    check_entry, check_name,
};

/// Bits of the first byte.
const ZIP: u8 = 1;
const MEND: u8 = 2;
/// Small enough for inputs to reach them.
const LIMITS: ShardLimits = ShardLimits {
    max_members: 50,
    max_total_name_bytes: 4 << 10,
};
/// Where a header of a tar has its checksum and its magic.
const BLOCK_BYTES: usize = 512;
const CHECKSUM: usize = 148;
const MAGIC: usize = 257;
/// Where a local header of a zip has its flags, and the one for sizes that follow the content.
const FLAGS: usize = 6;
const SIZES_AFTER_CONTENT: u8 = 1 << 3;

/// What is read of the contents of a tar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Taken,
    Dropped,
    Skipped,
}

/// Members, and what is left out of a tar.
type Found = Result<(Vec<Member>, LeftOut), ShardError>;

/// Checks a shard. The first byte chooses the format, and whether the checksums of a tar are mended; the second one the size of
/// the pieces in which the rest is read.
pub fn shard(input: &[u8]) {
    check(input);
}

/// Checks a shard. Returns the number of its members.
pub(crate) fn check(input: &[u8]) -> usize {
    let Some((&[choice, size], shard)) = input.split_first_chunk::<2>() else {
        return 0;
    };
    let mut shard = shard.to_vec();
    if choice & MEND != 0 {
        mend_checksums(&mut shard);
    }
    let shard = Bytes::from(shard);
    let size = usize::from(size) * 7 + 1;
    let (format, whole, pieces) = if choice & ZIP == 0 {
        let whole = walk(&shard, shard.len(), Contents::Dropped);
        for contents in [Contents::Dropped, Contents::Taken] {
            assert!(
                whole == walk(&shard, size, contents),
                "pieces of {size} bytes have other members: {contents:?}"
            );
        }
        (ShardFormat::Tar, whole, walk(&shard, size, Contents::Skipped))
    } else {
        let zip = |more| read_zip(&shard, more).map(|members| (members, LeftOut::default()));
        (ShardFormat::Zip, zip(0), zip(size))
    };
    assert!(whole == pieces, "whole {whole:?}, pieces {pieces:?}");
    match whole {
        Ok((members, left_out)) => {
            check_members(format, &shard, &members);
            check_contents(&shard, &members, size);
            // Ten names of 200 escaped bytes.
            assert!(left_out.to_string().len() < 30_000, "{left_out}");
            assert!(
                left_out.count() <= (shard.len() / BLOCK_BYTES) as u64,
                "{left_out}"
            );
            members.len()
        }
        Err(error) => {
            // Its text is written.
            assert!(error.to_string().len() < 4000, "{error}");
            0
        }
    }
}

/// The members of a tar that is read in pieces of `size` bytes. Contents that are skipped are not read.
fn walk(shard: &Bytes, size: usize, contents: Contents) -> Found {
    let mut cursor = EntryCursor::walk(LIMITS);
    let mut members: Vec<Member> = Vec::new();
    let mut is_content_missing = false;
    loop {
        loop {
            if let Some(member) = members.last().filter(|_| is_content_missing) {
                let Some(content) = cursor.content() else { break };
                assert!(content == slice(shard, member), "the content of {member:?}");
            }
            is_content_missing = false;
            let Some(member) = cursor.next_member()? else {
                break;
            };
            members.push(member);
            is_content_missing = contents == Contents::Taken;
        }
        if contents == Contents::Skipped && !cursor.is_at_end() {
            cursor.skip(cursor.skippable())?;
        }
        let rest = usize::try_from(cursor.position())
            .ok()
            .and_then(|start| shard.get(start..));
        match rest {
            Some(rest) if !rest.is_empty() && !cursor.is_at_end() => {
                cursor.push(shard.slice_ref(&rest[..rest.len().min(size)]));
            }
            _ => break,
        }
    }
    let left_out = cursor.left_out().clone();
    cursor.finish(shard.len() as u64)?;
    Ok((members, left_out))
}

/// The content of a member.
fn slice<'a>(shard: &'a [u8], member: &Member) -> &'a [u8] {
    let content = member.range.content();
    let place = usize::try_from(content.start)
        .ok()
        .zip(usize::try_from(content.end).ok())
        .and_then(|(start, end)| shard.get(start..end));
    place.unwrap_or_else(|| panic!("{member:?} is not in the {} bytes of the shard", shard.len()))
}

/// The members of a zip. With each range, `more` bytes after it are read.
fn read_zip(shard: &[u8], more: usize) -> Result<Vec<Member>, ShardError> {
    let mut directory = ZipDirectory::new(shard.len() as u64, LIMITS)?;
    while let Some(range) = directory.needs() {
        let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end)) else {
            panic!("a zip of {} bytes needs {range:?}", shard.len());
        };
        assert!(
            start < end && end <= shard.len(),
            "a zip of {} bytes needs {range:?}",
            shard.len()
        );
        directory.push(&shard[start..(end + more).min(shard.len())])?;
    }
    directory.finish()
}

/// Members are in order, apart, in the shard and within the limits, and have the headers that are in front of them.
fn check_members(format: ShardFormat, shard: &[u8], members: &[Member]) {
    let mut names = HashSet::new();
    let mut end = 0;
    assert!(members.len() <= LIMITS.max_members, "{} members", members.len());
    for Member { name, range } in members {
        assert!(check_name(name).is_ok() && names.insert(name), "{name:?}");
        assert!(
            end <= range.offset(),
            "{name:?} begins at {range:?}, before {end}"
        );
        end = range.entry().end;
        let header = usize::try_from(range.offset())
            .ok()
            .zip(usize::try_from(range.content().start).ok())
            .and_then(|(start, end)| shard.get(start..end));
        let Some(header) = header.filter(|_| end <= shard.len() as u64) else {
            panic!("{name:?} is at {range:?} of {} bytes", shard.len());
        };
        let check = |name: &str, size| {
            let range = MemberRange::new(range.offset(), range.header_bytes(), size)?;
            check_entry(format, header, name, &range)
        };
        assert_eq!(check(name, range.size()), Ok(()));
        // A zip may leave the size to its directory.
        let has_size = format == ShardFormat::Tar || header[FLAGS] & SIZES_AFTER_CONTENT == 0;
        assert!(
            !has_size || check(name, range.size() + 1).is_err(),
            "{name:?} of another size"
        );
        assert!(
            check(&format!("{name}x"), range.size()).is_err(),
            "another name than {name:?}"
        );
    }
}

/// A cursor that goes to the members, one after the other, takes their contents out of pieces of `size` bytes.
fn check_contents(shard: &Bytes, members: &[Member], size: usize) {
    let mut pieces = shard.chunks(size).map(|piece| shard.slice_ref(piece));
    let mut cursor = EntryCursor::listed(0);
    for member in members {
        cursor.go_to(&member.range);
        let content = loop {
            if let Some(content) = cursor.header().and_then(|_| cursor.content()) {
                break content;
            }
            let piece = pieces.next();
            cursor.push(piece.unwrap_or_else(|| panic!("the content of {member:?} is missing")));
        };
        assert!(content == slice(shard, member), "the content of {member:?}");
    }
}

/// Writes the checksum that each header of a tar should have.
fn mend_checksums(shard: &mut [u8]) {
    for block in shard.chunks_exact_mut(BLOCK_BYTES) {
        if block[MAGIC..].starts_with(b"ustar") {
            block[CHECKSUM..CHECKSUM + 8].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[CHECKSUM..CHECKSUM + 7].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        }
    }
}
