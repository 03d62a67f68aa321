//! Archives of `scripts/golden_shards.py`, which Python's tarfile and zipfile, GNU tar and Info-ZIP wrote. Expected are the
//! members that tarfile and zipfile read.

use std::{fs, path::PathBuf};

use pushdown_shard::{Member, MemberRange, ShardFormat, check_entry};
use serde::Deserialize;

use crate::read::{bytes, directory, header, members, walk_in_pieces};

/// An archive: either its members or a part of the error.
#[derive(Debug, Deserialize)]
struct Case {
    file: String,
    /// Name, offset, bytes of headers and size of each.
    members: Option<Vec<(String, u64, u32, u64)>>,
    error: Option<String>,
}

struct Golden {
    case: Case,
    format: ShardFormat,
    shard: Vec<u8>,
}

fn golden() -> Vec<Golden> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let cases: Vec<Case> = serde_json::from_slice(&fs::read(folder.join("members.json")).unwrap()).unwrap();
    assert_eq!(cases.len() + 1, fs::read_dir(&folder).unwrap().count());
    cases
        .into_iter()
        .map(|case| Golden {
            format: ShardFormat::from_key(&case.file).unwrap(),
            shard: fs::read(folder.join(&case.file)).unwrap(),
            case,
        })
        .collect()
}

#[test]
fn members_are_those_that_python_reads() {
    for Golden { case, format, shard } in golden() {
        let found = members(format, &shard);
        if let Some(error) = &case.error {
            let found = found.unwrap_err().to_string();
            assert!(found.contains(error), "{}: {found}", case.file);
            continue;
        }
        let expected = case.members.unwrap().into_iter();
        let expected = expected.map(|(name, offset, header_bytes, size)| Member {
            name,
            range: MemberRange::new(offset, header_bytes, size).unwrap(),
        });
        assert_eq!(found.unwrap(), expected.collect::<Vec<_>>(), "{}", case.file);
    }
}

#[test]
fn ranges_are_those_of_the_contents() {
    for Golden { case, format, shard } in golden() {
        for Member { name, range } in members(format, &shard).unwrap_or_default() {
            let stored_name = name.strip_prefix("./").unwrap_or(&name);
            let content: Vec<u8> = format!("{stored_name}|")
                .into_bytes()
                .into_iter()
                .cycle()
                .take(usize::try_from(range.size()).unwrap())
                .collect();
            assert_eq!(bytes(&shard, range.content()), content, "{} {name}", case.file);
            check_entry(format, header(&shard, &range), &name, &range).unwrap();
        }
    }
}

#[test]
fn pieces_have_the_members_of_the_whole() {
    for Golden { case, format, shard } in golden() {
        let expected = members(format, &shard);
        match format {
            ShardFormat::Tar => {
                for sizes in [&[1][..], &[0, 512], &[0, 1000], &[7, 0, 513], &[100_000]] {
                    assert_eq!(walk_in_pieces(&shard, sizes), expected, "{} {sizes:?}", case.file);
                }
            }
            ShardFormat::Zip => {
                for more in [1, 100, 1 << 20] {
                    assert_eq!(directory(&shard, more), expected, "{} {more}", case.file);
                }
            }
        }
    }
}

#[test]
fn truncated_archives_are_refused() {
    for Golden { case, format, shard } in golden() {
        if case.error.is_some() {
            continue;
        }
        let (lengths, end): (Vec<_>, _) = match format {
            // A tar may end after each entry, and needs no end marker.
            ShardFormat::Tar => {
                let last = shard.iter().rposition(|byte| *byte != 0).unwrap();
                let end = (last + 1).next_multiple_of(512);
                (
                    (0..end)
                        .filter(|length| [1, 511].contains(&(length % 512)))
                        .collect(),
                    end,
                )
            }
            ShardFormat::Zip => ((0..shard.len()).collect(), shard.len()),
        };
        for length in lengths {
            assert!(
                members(format, &shard[..length]).is_err(),
                "{} at byte {length}",
                case.file
            );
        }
        assert_eq!(
            members(format, &shard[..end]),
            members(format, &shard),
            "{}",
            case.file
        );
    }
}
