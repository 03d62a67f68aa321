//! Properties of any archive: pieces, skipped contents, and comparing of headers.

use proptest::{prelude::*, sample::Index};
use pushdown_shard::{Member, MemberRange, ShardFormat, check_entry};

use crate::{
    read::{directory, header, members, walk, walk_in_pieces},
    write::{END, Zip, ZipFile, pax, tar_entry, tar_header, with_content},
};

/// Names of every length class: in the header, in prefix and header, and only in an extension.
pub(crate) fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z0-9ö]{1,8}(/[a-z]{1,8}){0,2}\\.[a-z]{3}",
        1 => "[a-z]{60,150}/[a-z]{60,99}\\.jpg",
        1 => "[a-zö]{101,400}\\.jpg",
    ]
}

pub(crate) fn contents() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop_oneof![0..20_usize, 500..530_usize, 1000..3000_usize];
    (sizes, any::<u8>()).prop_map(|(size, byte)| vec![byte; size])
}

/// How an entry of a tar is written.
#[derive(Debug, Clone, Copy)]
enum Form {
    Ustar,
    Gnu,
    Pax,
    PaxWithSize,
    AfterFolder,
    AfterComment,
}

fn form() -> impl Strategy<Value = Form> {
    prop_oneof![
        Just(Form::Ustar),
        Just(Form::Gnu),
        Just(Form::Pax),
        Just(Form::PaxWithSize),
        Just(Form::AfterFolder),
        Just(Form::AfterComment),
    ]
}

fn entry(form: Form, name: &str, content: &[u8]) -> Vec<u8> {
    let size = content.len().to_string();
    let short = &name[..name.floor_char_boundary(100)];
    let file = tar_entry(short, b'0', content);
    match form {
        Form::Ustar | Form::AfterFolder | Form::AfterComment if short.len() < name.len() => {
            entry(Form::Pax, name, content)
        }
        Form::Ustar => file,
        Form::Gnu => [
            tar_entry("././@LongLink", b'L', format!("{name}\0").as_bytes()),
            file,
        ]
        .concat(),
        Form::Pax => [pax(b'x', &[("mtime", "1.5"), ("path", name)]), file].concat(),
        Form::PaxWithSize => {
            let file = with_content(&tar_header(b"short", b'0', 0), content);
            [pax(b'x', &[("path", name), ("size", &size)]), file].concat()
        }
        Form::AfterFolder => [tar_entry("folder", b'5', b""), file].concat(),
        Form::AfterComment => [pax(b'g', &[("comment", "a")]), file].concat(),
    }
}

/// A tar, with the names and sizes of its members.
pub(crate) fn tar() -> impl Strategy<Value = (Vec<u8>, Vec<(String, u64)>)> {
    prop::collection::btree_map(name(), (form(), contents()), 0..8).prop_map(|files| {
        let mut shard: Vec<u8> = files
            .iter()
            .flat_map(|(name, (form, content))| entry(*form, name, content))
            .collect();
        shard.extend(END);
        let names = files
            .into_iter()
            .map(|(name, (_, content))| (name, content.len() as u64));
        (shard, names.collect())
    })
}

/// A zip.
pub(crate) fn zip() -> impl Strategy<Value = Vec<u8>> {
    // An unknown extra field of any length.
    let extra = prop::collection::vec(Just(0_u8), 0..200).prop_map(|bytes| {
        let length = u16::try_from(bytes.len()).unwrap().to_le_bytes();
        [&[0xff_u8, 0xff][..], &length, &bytes].concat()
    });
    prop::collection::btree_map(name(), (contents(), prop::option::of(extra)), 0..8).prop_map(|files| {
        let files: Vec<_> = files
            .into_iter()
            .map(|(name, (content, extra))| ZipFile {
                // The name is UTF-8.
                flags: 1 << 11,
                extra: extra.unwrap_or_default(),
                ..ZipFile::new(&name, &content)
            })
            .collect();
        Zip::new(&files).bytes
    })
}

/// A shard with members that `check_entry` accepts, and one of them.
fn one_member(format: ShardFormat, shard: &[u8], index: Index) -> Option<(Member, Vec<u8>)> {
    let found = members(format, shard).unwrap();
    for member in &found {
        let header = header(shard, &member.range);
        check_entry(format, header, &member.name, &member.range).unwrap();
    }
    let member = found.get(index.index(found.len().max(1)))?.clone();
    let header = header(shard, &member.range).to_vec();
    Some((member, header))
}

fn check_changes(format: ShardFormat, shard: &[u8], index: Index, change: u64) -> Result<(), TestCaseError> {
    let Some((Member { name, range }, head)) = one_member(format, shard, index) else {
        return Ok(());
    };
    let check = |header: &[u8], name: &str, range| check_entry(format, header, name, &range);
    // Another name or size.
    let longer = format!("{name}x");
    prop_assert!(check(&head, &longer, range).is_err());
    prop_assert!(check(&head, &name.chars().skip(1).collect::<String>(), range).is_err());
    for size in [range.size() + change, range.size().wrapping_sub(change)] {
        if let Ok(range) = MemberRange::new(range.offset(), range.header_bytes(), size) {
            prop_assert!(check(&head, &name, range).is_err());
        }
    }
    // Another offset, or another length of the headers, with the bytes that are there.
    let last = shard.len() as u64;
    for offset in [range.offset() + change, range.offset().wrapping_sub(change)] {
        let range = MemberRange::new(offset, range.header_bytes(), range.size());
        if let Some(range) = range.ok().filter(|range| range.content().start <= last) {
            prop_assert!(check(header(shard, &range), &name, range).is_err());
        }
    }
    let changed = u32::try_from(change).unwrap();
    for header_bytes in [
        range.header_bytes() + changed,
        range.header_bytes().wrapping_sub(changed),
    ] {
        let range = MemberRange::new(range.offset(), header_bytes, range.size());
        if let Some(range) = range.ok().filter(|range| range.content().start <= last) {
            prop_assert!(check(header(shard, &range), &name, range).is_err());
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn tars_are_walked_equally_in_any_pieces((shard, files) in tar(), sizes in prop::collection::vec(0..2000_usize, 0..20)) {
        let members = walk(&shard).unwrap();
        let found = members.iter().map(|member| (member.name.clone(), member.range.size()));
        prop_assert_eq!(found.collect::<Vec<_>>(), files);
        prop_assert_eq!(walk_in_pieces(&shard, &sizes).unwrap(), members);
    }

    #[test]
    fn damaged_tars_are_refused_equally_in_any_pieces(
        (mut shard, _) in tar(),
        sizes in prop::collection::vec(0..2000_usize, 0..20),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4),
        cut in prop::option::weighted(0.2, any::<Index>()),
    ) {
        for (index, value) in changes {
            let index = index.index(shard.len());
            shard[index] = value;
        }
        shard.truncate(cut.map_or(shard.len(), |cut| cut.index(shard.len())));
        let members = walk(&shard);
        prop_assert_eq!(&walk_in_pieces(&shard, &sizes), &members);
        for member in members.unwrap_or_default() {
            let header = header(&shard, &member.range);
            prop_assert_eq!(check_entry(ShardFormat::Tar, header, &member.name, &member.range), Ok(()));
        }
    }

    #[test]
    fn zips_are_read_equally_with_more_bytes_than_needed(shard in zip(), more in 0..3000_usize) {
        prop_assert_eq!(directory(&shard, more).unwrap(), directory(&shard, 0).unwrap());
    }

    #[test]
    fn damaged_zips_have_members_whose_headers_are_theirs(
        mut shard in zip(),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4),
        more in 0..3000_usize,
    ) {
        for (index, value) in changes {
            let index = index.index(shard.len());
            shard[index] = value;
        }
        let members = directory(&shard, 0);
        prop_assert_eq!(&directory(&shard, more), &members);
        for member in members.unwrap_or_default() {
            let header = header(&shard, &member.range);
            prop_assert_eq!(check_entry(ShardFormat::Zip, header, &member.name, &member.range), Ok(()));
        }
    }

    #[test]
    fn a_header_of_a_tar_is_that_of_one_member((shard, _) in tar(), index in any::<Index>(), change in 1..3000_u64) {
        check_changes(ShardFormat::Tar, &shard, index, change)?;
        check_changes(ShardFormat::Tar, &shard, index, 512)?;
    }

    #[test]
    fn a_header_of_a_zip_is_that_of_one_member(shard in zip(), index in any::<Index>(), change in 1..3000_u64) {
        check_changes(ShardFormat::Zip, &shard, index, change)?;
    }
}
