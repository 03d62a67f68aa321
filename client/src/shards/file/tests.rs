//! Files that are read again, and files that are not what `save` wrote.

use std::{fs, path::PathBuf, sync::Arc};

use arrow_array::{ArrayRef, StringArray, UInt32Array, UInt64Array};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{
    super::tests::{index, photos},
    *,
};

/// A folder with a saved index.
fn saved(index: &ShardIndex) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.parquet");
    index.save(&path).unwrap();
    (folder, path)
}

/// The fault of a file with these rows and metadata.
fn fault(batch: &RecordBatch, metadata: &[(&str, &str)]) -> String {
    let file = write(Vec::new(), batch, metadata).unwrap();
    decode(file).unwrap_err().to_string()
}

/// Rows of two shards.
fn rows() -> Vec<(&'static str, ArrayRef)> {
    let strings = |strings: [&str; 3]| Arc::new(StringArray::from(strings.to_vec())) as ArrayRef;
    vec![
        ("shard", strings(["a.tar", "a.tar", "b.tar"])),
        ("etag", strings(["1", "1", "2"])),
        ("member", strings(["1.jpg", "2.jpg", "1.jpg"])),
        ("offset", Arc::new(UInt64Array::from(vec![0, 1024, 0]))),
        ("header_bytes", Arc::new(UInt32Array::from(vec![512; 3]))),
        ("size", Arc::new(UInt64Array::from(vec![5, 6, 7]))),
    ]
}

#[test]
fn the_number_of_members_that_are_left_out_is_saved() {
    let members = photos();
    let keys: Vec<String> = members.shards().map(|(key, _)| key.to_owned()).collect();
    let counts = [
        (keys[0].clone(), 2),
        (keys[1].clone(), 3),
        ("without.tar".to_owned(), 4),
    ];
    let index = members.with_left_out(counts.into());
    let (_folder, path) = saved(&index);
    let loaded = ShardIndex::load(path).unwrap();
    assert_eq!(loaded, index);
    assert_eq!(loaded.left_out(), 9);
    let selected = loaded.select_shards(&keys[1..2]).unwrap();
    assert_eq!(selected.left_out(), 3);
    // As the first files, which do not have it.
    let batch = to_record_batch(&index.members).unwrap();
    let checksum = checksum(&index.members);
    let metadata = [
        (BUCKET, index.bucket()),
        (VERSION_NAME, VERSION),
        (CHECKSUM, checksum.as_str()),
    ];
    let file = |more: &[(&str, &str)]| write(Vec::new(), &batch, &[&metadata[..], more].concat()).unwrap();
    assert_eq!(decode(file(&[])).unwrap().left_out(), 0);
    assert!(
        decode(file(&[(LEFT_OUT, "[]")]))
            .unwrap_err()
            .to_string()
            .contains("the file is damaged")
    );
}

#[test]
fn a_saved_index_is_loaded() {
    let empty = index(&[]);
    for index in [photos(), empty] {
        let (folder, path) = saved(&index);
        assert_eq!(ShardIndex::load(&path).unwrap(), index);
        photos().save(&path).unwrap();
        assert_eq!(ShardIndex::load(&path).unwrap(), photos(), "a file is replaced");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn other_tools_read_a_saved_index() {
    let (_folder, path) = saved(&photos());
    let file = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let metadata = file.metadata().file_metadata();
    let columns: Vec<_> = metadata
        .schema()
        .get_fields()
        .iter()
        .map(|field| field.name().to_owned())
        .collect();
    assert_eq!(
        columns,
        ["shard", "etag", "member", "offset", "header_bytes", "size"]
    );
    assert_eq!(metadata.num_rows(), 9);
}

#[test]
fn a_long_index_is_a_small_file() {
    const COUNT: usize = 100_000;
    let members: Vec<_> = (0..COUNT)
        .map(|number| {
            (
                format!("train-{:06}.tar", number / 1000),
                format!("{number:08}.jpg"),
            )
        })
        .collect();
    let members: Vec<_> = members.iter().map(|(key, name)| (&**key, &**name)).collect();
    let index = index(&members);
    let (_folder, path) = saved(&index);
    let bytes = fs::metadata(&path).unwrap().len();
    assert!(bytes < 10 * COUNT as u64, "{bytes} bytes");
    assert_eq!(ShardIndex::load(&path).unwrap(), index);
}

#[test]
fn a_file_that_cannot_be_written_or_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/list.parquet");
    for error in [
        photos().save(&path).unwrap_err(),
        ShardIndex::load(&path).unwrap_err(),
    ] {
        assert_eq!(error.kind(), crate::ErrorKind::Config);
        assert!(error.to_string().contains("missing/list.parquet: "), "{error}");
    }
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let batch = RecordBatch::try_from_iter(rows()).unwrap();
    let of_index = [(BUCKET, "b"), (VERSION_NAME, "1"), (CHECKSUM, "00000000")];
    let newer = [(BUCKET, "b"), (VERSION_NAME, "2"), (CHECKSUM, "00000000")];
    let faults = [
        decode(b"ARROW1".to_vec()).unwrap_err().to_string(),
        fault(&batch, &[]),
        fault(&batch, &of_index[..2]),
        fault(&batch, &newer),
    ];
    assert_eq!(
        faults,
        [
            "expected a file that `pushdown index` wrote, found another format",
            "expected a file that `pushdown index` wrote, found another Parquet file",
            "expected a file that `pushdown index` wrote, found another Parquet file",
            "expected format version 1, found `2`: load it with the version of pushdown that wrote it, or index the shards again",
        ]
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.parquet");
    fs::write(&path, b"PAR1").unwrap();
    let error = ShardIndex::load(&path).unwrap_err().to_string();
    assert!(error.contains("list.parquet: the file is damaged: "), "{error}");
}

#[test]
fn invalid_rows_are_refused() {
    let refused = |name: &'static str, column: Option<ArrayRef>| {
        let mut columns = rows();
        columns.retain(|(known, _)| *known != name);
        columns.extend(column.map(|column| (name, column)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        fault(
            &batch,
            &[(BUCKET, "b"), (VERSION_NAME, "1"), (CHECKSUM, "00000000")],
        )
    };
    let strings = |strings: [&str; 3]| Some(Arc::new(StringArray::from(strings.to_vec())) as ArrayRef);
    let numbers = |numbers: [u64; 3]| Some(Arc::new(UInt64Array::from(numbers.to_vec())) as ArrayRef);
    for (found, expected) in [
        (
            refused("size", None),
            "expected the columns of an index without nulls, found ",
        ),
        (
            refused("header_bytes", strings(["0", "1", "2"])),
            "expected the columns of an index without nulls, found ",
        ),
        (
            refused("shard", strings(["a.tar", "b.tar", "a.tar"])),
            "expected the members of the shard `a.tar` one after the other",
        ),
        (
            refused("etag", strings(["1", "2", "2"])),
            "expected one version of the shard `a.tar`, found two",
        ),
        (
            refused("offset", numbers([0, 516, 0])),
            "expected the members of the shard `a.tar` in the order of their offsets, found `2.jpg` at 516",
        ),
        (
            refused("size", numbers([u64::MAX, 1, 1])),
            "expected valid members, found: ",
        ),
        (
            refused("member", strings(["a.jpg", "/etc/passwd", "b"])),
            "expected valid members, found: ",
        ),
        (refused("none", None), "expected the checksum 00000000, found "),
    ] {
        let expected = format!("the file is damaged: {expected}");
        assert!(found.starts_with(&expected), "{found}");
        assert!(found.ends_with("; index the shards again"), "{found}");
    }
}

proptest! {
    /// Whatever is damaged, the result is the same index or an error.
    #[test]
    fn a_damaged_file_is_an_error_or_the_same_index(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        length in any::<Option<prop::sample::Index>>(),
    ) {
        let (_folder, path) = saved(&photos());
        let mut file = fs::read(&path).unwrap();
        for (index, byte) in changes {
            let index = index.index(file.len());
            file[index] = byte;
        }
        if let Some(length) = length {
            file.truncate(length.index(file.len()));
        }
        fs::write(&path, file).unwrap();
        if let Ok(loaded) = ShardIndex::load(&path) {
            prop_assert_eq!(loaded, photos());
        }
    }
}
