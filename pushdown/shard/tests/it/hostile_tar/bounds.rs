//! What bounds a walk: the end of the tar, its limits, and the bytes that it skips.

use bytes::Bytes;
use pushdown_shard::{EntryCursor, ShardError, ShardLimits};

use super::{good, with_end};
use crate::{
    read::{arrived_members, walk, walk_in_pieces, walk_within},
    write::{pax, tar_entry},
};

#[test]
fn truncated_tars_are_refused_at_every_byte() {
    let shard = with_end(&[
        tar_entry("folder", b'5', b""),
        pax(b'x', &[("path", "a.jpg")]),
        tar_entry("short", b'0', &[1; 600]),
        tar_entry("long", b'L', b"b.jpg\0"),
        good(),
        tar_entry("empty", b'0', b""),
    ]);
    assert_eq!(walk(&shard).unwrap().len(), 3);
    // After the folder, each file, and a block of zeros.
    let ends = [512, 3072, 5120, 5632, 6144];
    for length in 0..shard.len() {
        if length > 6144 || ends.contains(&length) {
            let members = walk(&shard[..length]).unwrap();
            assert_eq!(members, walk_in_pieces(&shard[..length], &[0, 512]).unwrap());
            assert!(walk(&shard).unwrap().starts_with(&members), "at byte {length}");
            continue;
        }
        let error = walk(&shard[..length]).unwrap_err();
        match &error {
            ShardError::Truncated { position, .. } => assert_eq!(*position, length as u64),
            ShardError::BeyondEnd { object_bytes, .. } => assert_eq!(*object_bytes, length as u64),
            other => panic!("at byte {length}: {other}"),
        }
        assert_eq!(walk_in_pieces(&shard[..length], &[0, 512]).unwrap_err(), error);
    }
}

#[test]
fn limits_bound_members_and_names() {
    let shard = with_end(&[tar_entry("a", b'0', b""), tar_entry("b", b'0', b""), good()]);
    let walk = |max_members, max_total_name_bytes| {
        let limits = ShardLimits {
            max_members,
            max_total_name_bytes,
        };
        walk_within(limits, &shard)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(walk(3, 10), Ok(()));
    assert_eq!(
        walk(2, 10),
        Err("too large: expected at most 2 members, found more at byte 1024".to_owned())
    );
    assert_eq!(
        walk(3, 9),
        Err("too large: expected at most 9 bytes of names, found more at byte 1024".to_owned())
    );
}

#[test]
fn a_walk_counts_the_bytes_that_it_skips() {
    let shard = with_end(&[tar_entry("a", b'0', &[1; 1000]), good()]);
    let mut cursor = EntryCursor::walk(ShardLimits::default());
    assert_eq!(cursor.skippable(), 0);
    cursor.push(Bytes::copy_from_slice(&shard[..700]));
    let mut members = arrived_members(&mut cursor).unwrap();
    assert_eq!((cursor.position(), cursor.skippable()), (700, 836));
    assert_eq!(
        cursor.skip(837),
        Err(ShardError::WrongLength {
            expected: 836,
            found: 837
        })
    );
    cursor.skip(800).unwrap();
    cursor.skip(36).unwrap();
    assert_eq!((cursor.position(), cursor.skippable()), (1536, 0));
    cursor.push(Bytes::copy_from_slice(&shard[1536..]));
    members.extend(arrived_members(&mut cursor).unwrap());
    assert!(cursor.is_at_end());
    // What follows the end is of no interest.
    cursor.skip(cursor.skippable()).unwrap();
    cursor.finish(shard.len() as u64).unwrap();
    assert_eq!(members.len(), 2);
}
