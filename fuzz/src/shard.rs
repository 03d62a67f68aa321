//! Any bytes as a shard: its members, and what is left out, or the error, do not depend on the pieces in which it is read. The header in
//! front of each content is that of its member, and of no other.

use std::collections::HashSet;

use pushdown::shard::{
    LeftOut, Member, MemberRange, ShardError, ShardFormat, ShardLimits, TarWalker, ZipDirectory, check_entry,
    check_name,
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
    let size = usize::from(size) * 7 + 1;
    let (format, whole, pieces) = if choice & ZIP == 0 {
        let whole = walk(&shard, shard.len(), false);
        assert!(
            whole == walk(&shard, size, false),
            "pieces of {size} bytes have other members"
        );
        (ShardFormat::Tar, whole, walk(&shard, size, true))
    } else {
        let zip = |more| read_zip(&shard, more).map(|members| (members, LeftOut::default()));
        (ShardFormat::Zip, zip(0), zip(size))
    };
    assert!(whole == pieces, "whole {whole:?}, pieces {pieces:?}");
    match whole {
        Ok((members, left_out)) => {
            check_members(format, &shard, &members);
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

/// The members of a tar that is read in pieces of `size` bytes. With `skips`, only what cannot be skipped is read.
fn walk(shard: &[u8], size: usize, skips: bool) -> Found {
    let mut walker = TarWalker::new(LIMITS);
    let mut members = Vec::new();
    while !walker.is_at_end() {
        if skips {
            walker.skip(walker.skippable())?;
        }
        let rest = usize::try_from(walker.position())
            .ok()
            .and_then(|start| shard.get(start..));
        match rest {
            Some(rest) if !rest.is_empty() => walker.push(&rest[..rest.len().min(size)])?,
            _ => break,
        }
        members.append(&mut walker.take_members());
    }
    let left_out = walker.left_out().clone();
    members.append(&mut walker.finish(shard.len() as u64)?);
    Ok((members, left_out))
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
