//! Entries that are taken out of a shard whose bytes arrive in pieces: their contents, whole and in pieces, and what is passed over.

use bytes::Bytes;
use proptest::prelude::*;
use pushdown_shard::{
    EntryCursor, Listed, Member, MemberRange, ShardError, ShardFormat, ShardLimits, TarWriter, check_entry,
};

use crate::{
    properties::{tar, zip},
    read::{bytes, members, walk},
    write::{END, pax, tar_entry, tar_header, with_content},
};

/// How a content is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Whole,
    InPieces,
    /// Its first bytes are taken, and the others dropped.
    Begun,
    Not,
}

/// A member, and what was taken of its content.
type Found = (Member, Option<Vec<u8>>);

/// The pieces of a shard, of these sizes again and again.
fn pieces(shard: &[u8], sizes: &[usize]) -> Vec<Bytes> {
    let (mut rest, mut pieces) = (shard, Vec::new());
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at(rest.len().min(*size));
        pieces.push(Bytes::copy_from_slice(piece));
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    pieces
}

/// The members of a tar that arrives in pieces. Contents that have not arrived are `None`.
fn walk_contents(shard: &[u8], pieces: Vec<Bytes>, taken: &[Taken]) -> (Vec<Found>, Result<(), ShardError>) {
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    let (mut found, mut ways) = (Vec::<Found>::new(), taken.iter().copied().cycle());
    let mut wanted: Option<(Taken, Vec<u8>)> = None;
    let read = || {
        for piece in pieces {
            cursor.push(piece);
            loop {
                if let Some((way, arrived)) = &mut wanted {
                    let content = match way {
                        Taken::Whole => cursor.content().map(|content| content.to_vec()),
                        Taken::Begun => Some(cursor.next_content().unwrap_or_default().to_vec()),
                        Taken::Not => None,
                        Taken::InPieces => {
                            while let Some(piece) = cursor.next_content() {
                                arrived.extend_from_slice(&piece);
                            }
                            (cursor.content_bytes() == 0).then(|| arrived.clone())
                        }
                    };
                    if content.is_none() && *way != Taken::Not {
                        break;
                    }
                    if let Some((_, place)) = found.last_mut() {
                        *place = content;
                    }
                    wanted = None;
                }
                let Some(member) = cursor.next_member()? else {
                    break;
                };
                found.push((member, None));
                wanted = ways.next().map(|way| (way, Vec::new()));
            }
        }
        Ok::<(), ShardError>(())
    };
    let result = read().and_then(|()| cursor.finish(shard.len() as u64));
    (found, result)
}

/// The header and the content of a member, if they have arrived.
fn entry(
    cursor: &mut EntryCursor<Listed>,
    pieces: &mut impl Iterator<Item = Bytes>,
    range: &MemberRange,
) -> Option<(Bytes, Bytes)> {
    cursor.go_to(range);
    loop {
        if let Some(header) = cursor.header()
            && let Some(content) = cursor.content()
        {
            return Some((header, content));
        }
        cursor.push(pieces.next()?);
    }
}

fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = TarWriter::new(Vec::new());
    for (name, content) in files {
        writer.append(name, content).unwrap();
    }
    writer.finish().unwrap()
}

fn content_of(shard: &[u8], member: &Member) -> Vec<u8> {
    bytes(shard, member.range.content()).to_vec()
}

fn check_listed(
    format: ShardFormat,
    shard: &[u8],
    sizes: &[usize],
    every: usize,
) -> Result<(), TestCaseError> {
    let mut pieces = pieces(shard, sizes).into_iter();
    let mut cursor = EntryCursor::listed(0);
    for member in members(format, shard).unwrap().iter().step_by(every) {
        let Member { name, range } = member;
        let (header, content) = entry(&mut cursor, &mut pieces, range).unwrap();
        prop_assert_eq!(check_entry(format, &header, name, range), Ok(()));
        prop_assert_eq!(content, content_of(shard, member));
        prop_assert_eq!(cursor.position(), range.content().end);
    }
    Ok(())
}

fn ways() -> impl Strategy<Value = Vec<Taken>> {
    let way = prop::sample::select(vec![Taken::Whole, Taken::InPieces, Taken::Begun, Taken::Not]);
    prop::collection::vec(way, 1..4)
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1..9_usize, 1..2000_usize, Just(512_usize)], 1..20)
}

proptest! {
    #[test]
    fn contents_are_the_same_in_any_pieces((shard, files) in tar(), sizes in sizes(), ways in ways()) {
        let (found, result) = walk_contents(&shard, pieces(&shard, &sizes), &ways);
        prop_assert_eq!(result, Ok(()));
        let names = found.iter().map(|(member, _)| (member.name.clone(), member.range.size()));
        prop_assert_eq!(names.collect::<Vec<_>>(), files);
        for ((member, content), way) in found.iter().zip(ways.iter().cycle()) {
            let expected = content_of(&shard, member);
            match (way, content) {
                (Taken::Begun, Some(first)) => prop_assert!(expected.starts_with(first)),
                (Taken::Not, content) => prop_assert_eq!(content, &None),
                (_, content) => prop_assert_eq!(content.as_ref(), Some(&expected)),
            }
        }
    }

    #[test]
    fn listed_entries_are_taken_in_any_pieces((tar, _) in tar(), zip in zip(), sizes in sizes(), every in 1..4_usize) {
        check_listed(ShardFormat::Tar, &tar, &sizes, every)?;
        check_listed(ShardFormat::Zip, &zip, &sizes, every)?;
    }
}

/// Long names of both kinds, a folder, links, a comment, and contents at the edges of blocks.
fn of_all_kinds() -> Vec<u8> {
    let (pax_name, gnu_name) = ("p".repeat(150), "g".repeat(200));
    let long = with_content(&tar_header(b"short", b'0', 0), &[5; 700]);
    [
        tar_entry("folder", b'5', b""),
        pax(b'x', &[("path", &pax_name), ("size", "700")]),
        long,
        tar_entry("././@LongLink", b'L', format!("{gnu_name}\0").as_bytes()),
        tar_entry("short", b'0', &[6; 512]),
        tar_entry("link", b'2', b""),
        tar_entry("other", b'1', b""),
        pax(b'g', &[("comment", "a")]),
        tar_entry("empty.txt", b'0', b""),
        tar_entry("/absolute", b'0', &[7; 513]),
        tar_entry("last.txt", b'0', b"x"),
    ]
    .concat()
}

#[test]
fn contents_are_the_same_wherever_a_shard_is_cut() {
    let shard = [of_all_kinds(), END.to_vec()].concat();
    let expected: Vec<Found> = walk(&shard)
        .unwrap()
        .into_iter()
        .map(|member| {
            let content = content_of(&shard, &member);
            (member, Some(content))
        })
        .collect();
    let sizes: Vec<_> = expected.iter().map(|(member, _)| member.range.size()).collect();
    assert_eq!(sizes, [700, 512, 0, 1]);
    for cut in 0..=shard.len() {
        let (first, second) = shard.split_at(cut);
        let pieces = vec![Bytes::copy_from_slice(first), Bytes::copy_from_slice(second)];
        for way in [Taken::Whole, Taken::InPieces] {
            let found = walk_contents(&shard, pieces.clone(), &[way]);
            assert_eq!(found, (expected.clone(), Ok(())), "cut at byte {cut}, {way:?}");
        }
        let mut cursor = EntryCursor::listed(0);
        let mut pieces = pieces.into_iter();
        for (member, content) in &expected {
            let (_, found) = entry(&mut cursor, &mut pieces, &member.range).unwrap();
            assert_eq!(Some(found.as_ref()), content.as_deref(), "cut at byte {cut}");
        }
    }
}

#[test]
fn an_end_marker_may_be_missing_and_ends_the_shard() {
    let entries = of_all_kinds();
    for end in [&b""[..], &END[..512], &END, &[&END[..512], &[1; 700]].concat()] {
        let shard = [&entries, end].concat();
        let (found, result) = walk_contents(&shard, pieces(&shard, &[100]), &[Taken::Whole]);
        assert_eq!((found.len(), result), (4, Ok(())), "{} bytes", end.len());
        assert!(found.iter().all(|(_, content)| content.is_some()));
    }
}

#[test]
fn a_truncated_content_is_not_taken() {
    let shard = tar_of(&[("a", &[1; 600]), ("b", &[2; 900])]);
    // Within the header, the content and the padding of the second entry.
    for (length, contents) in [
        (1536, [true, false]),
        (1700, [true, false]),
        (2048, [true, false]),
        (2947, [true, false]),
        (2948, [true, true]),
        (3071, [true, true]),
    ] {
        let shard = &shard[..length];
        for size in [1, 512, 4000] {
            let (found, result) = walk_contents(shard, pieces(shard, &[size]), &[Taken::Whole]);
            let arrived: Vec<_> = found.iter().map(|(_, content)| content.is_some()).collect();
            assert_eq!(arrived, contents[..arrived.len()], "{length} bytes");
            assert_eq!(result.is_ok(), length == 1536, "{length} bytes");
        }
    }
    let second = &walk(&shard).unwrap()[1].range;
    let mut cursor = EntryCursor::listed(0);
    let mut pieces = pieces(&shard[..2900], &[700]).into_iter();
    assert_eq!(entry(&mut cursor, &mut pieces, second), None);
    assert_eq!((cursor.position(), cursor.content_bytes()), (2900, 48));
    // The rest arrives later.
    cursor.push(Bytes::copy_from_slice(&shard[2900..]));
    assert_eq!(cursor.content().as_deref(), Some(&[2; 900][..]));
    assert_eq!(cursor.content(), None, "it was returned");
}

#[test]
fn sparse_files_are_refused_after_the_members_before_them() {
    let shard = [
        tar_entry("a", b'0', &[1; 9]),
        pax(b'x', &[("GNU.sparse.major", "1"), ("path", "s")]),
        tar_entry("b", b'0', &[2; 9]),
    ]
    .concat();
    for size in [1, 100, 4000] {
        let (found, result) = walk_contents(&shard, pieces(&shard, &[size]), &[Taken::Whole]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1.as_deref(), Some(&[1; 9][..]));
        assert!(matches!(
            result,
            Err(ShardError::Unsupported { offset: 1024, .. })
        ));
    }
}

#[test]
fn bytes_before_a_listed_entry_can_be_skipped() {
    let shard = tar_of(&[("a", &[1; 600]), ("b", &[2; 900]), ("c", b"c")]);
    let members = walk(&shard).unwrap();
    let mut cursor = EntryCursor::listed(0);
    cursor.push(Bytes::copy_from_slice(&shard[..1000]));
    cursor.go_to(&members[2].range);
    assert_eq!(cursor.header(), None);
    assert_eq!((cursor.position(), cursor.skippable()), (1000, 2072));
    // Some of them arrive, and others are not requested.
    cursor.push(Bytes::copy_from_slice(&shard[1000..2000]));
    cursor.go_to(&members[2].range);
    cursor.skip(cursor.skippable()).unwrap();
    assert_eq!(cursor.position(), members[2].range.offset());
    cursor.push(Bytes::copy_from_slice(&shard[3072..]));
    assert!(cursor.header().is_some());
    assert_eq!(cursor.content().as_deref(), Some(&b"c"[..]));
}

#[test]
fn a_whole_content_has_memory_of_its_own_and_pieces_are_not_copied() {
    let shard = Bytes::from(tar_of(&[("a", &[1; 600]), ("b", &[2; 600])]));
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(shard.clone());
    let is_in_shard = |content: &Bytes| shard.as_ptr_range().contains(&content.as_ptr());
    cursor.next_member().unwrap();
    let whole = cursor.content().unwrap();
    assert!(whole == [1; 600][..] && !is_in_shard(&whole));
    cursor.next_member().unwrap();
    let piece = cursor.next_content().unwrap();
    assert!(piece == [2; 600][..] && is_in_shard(&piece));
}

#[test]
fn a_piece_that_is_pushed_too_early_is_kept() {
    let shard = tar_of(&[("a", &[1; 600])]);
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    for piece in shard.chunks(100) {
        cursor.push(Bytes::copy_from_slice(piece));
    }
    assert_eq!(cursor.next_member().unwrap().unwrap().name, "a");
    assert_eq!(cursor.content().as_deref(), Some(&[1; 600][..]));
}

/// A header may claim any size: memory grows with what arrives.
#[test]
fn a_wrong_size_takes_no_memory() {
    let shard = tar_header(b"a", b'0', 1 << 32);
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    cursor.push(Bytes::copy_from_slice(shard.as_bytes()));
    assert_eq!(cursor.next_member().unwrap().unwrap().range.size(), 1 << 32);
    let piece = Bytes::from(vec![1; 3 << 20]);
    for _ in 0..3 {
        cursor.push(piece.clone());
        assert_eq!(cursor.content(), None);
    }
    assert_eq!(
        (cursor.position(), cursor.content_bytes()),
        (512 + (9 << 20), (1 << 32) - (9 << 20))
    );
    // Dropped, with the bytes that were gathered.
    assert_eq!(cursor.next_member(), Ok(None));
    assert_eq!(cursor.skippable(), (1 << 32) - (9 << 20));
}
