//! What bounds the reading of a directory: the end of the zip, and the bytes that are read at once.

use pushdown_shard::{ShardError, ShardLimits, ZipDirectory};

use super::zip;
use crate::{
    read::directory,
    write::{Zip, ZipFile},
};

#[test]
fn truncated_zips_are_refused_at_every_byte() {
    let shard = zip().bytes;
    for length in 0..shard.len() {
        assert!(directory(&shard[..length], 0).is_err(), "at byte {length}");
    }
}

#[test]
fn fewer_bytes_than_needed_are_refused() {
    let shard = zip().bytes;
    let length = shard.len() as u64;
    let mut directory = ZipDirectory::new(length, ShardLimits::default()).unwrap();
    assert_eq!(directory.needs(), Some(0..length));
    assert_eq!(
        directory.push(&shard[1..]),
        Err(ShardError::WrongLength {
            expected: length,
            found: length - 1
        })
    );
    assert!(matches!(
        directory.finish(),
        Err(ShardError::Truncated { position: 0, .. })
    ));
    assert!(matches!(
        ZipDirectory::new(21, ShardLimits::default()),
        Err(ShardError::Truncated { position: 21, .. })
    ));
}

#[test]
fn near_headers_are_read_at_once_and_far_ones_are_not() {
    let large = vec![1; 200_000];
    let near: Vec<_> = (0..20)
        .map(|index| ZipFile::new(&format!("{index}.cls"), b"7"))
        .collect();
    let far = ["y.jpg", "z.jpg"].map(|name| ZipFile::new(name, &large));
    let shard = Zip::new(&[&near[..], &far].concat()).bytes;
    let mut directory = ZipDirectory::new(shard.len() as u64, ShardLimits::default()).unwrap();
    let mut lengths = Vec::new();
    while let Some(range) = directory.needs() {
        lengths.push(range.end - range.start);
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        directory.push(&shard[range]).unwrap();
    }
    assert_eq!(directory.finish().unwrap().len(), 22);
    // The end, the directory, the headers of the small files and of the first large one, and that of the last.
    assert_eq!(lengths.len(), 4, "{lengths:?}");
    assert!(lengths[2] < 2000 && lengths[3] < 200, "{lengths:?}");
}
