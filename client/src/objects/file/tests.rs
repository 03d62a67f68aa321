//! Files that are read again, and files that are not what `save` wrote.

use std::{fs::File, path::PathBuf};

use arrow_array::{LargeStringArray, StringArray};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{
    super::tests::{members::shards, photos},
    *,
};

/// A folder with a saved list.
fn saved(objects: &Objects) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("photos.arrow");
    objects.save(&path).unwrap();
    (folder, path)
}

/// An Arrow file with these metadata in schema and footer.
fn arrow_file(batches: &[&RecordBatch], schema: &[(&str, &str)], footer: &[(&str, &str)]) -> Vec<u8> {
    let metadata = schema
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let schema = Schema::new_with_metadata(batches[0].schema().fields().clone(), metadata.collect());
    let file = ChecksumWriter::new(Vec::new());
    let mut writer = FileWriter::try_new(file, &schema).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    let checksum = writer.get_ref().checksum();
    for (name, value) in footer {
        let value = if *name == CHECKSUM {
            checksum.as_str()
        } else {
            *value
        };
        writer.write_metadata(*name, value);
    }
    writer.into_inner().unwrap().into_inner()
}

const FOOTER: &[(&str, &str)] = &[(VERSION_NAME, "1"), (CHECKSUM, "")];

fn fault(file: Vec<u8>) -> String {
    decode(file).unwrap_err().to_string()
}

#[test]
fn a_saved_list_is_loaded() {
    let empty = photos().select([]);
    for objects in [
        photos(),
        photos().select([2, 1]),
        Objects::from_keys("b", ["k"]),
        empty,
        shards(),
        shards().select([2]),
        shards().select([]),
    ] {
        let (folder, path) = saved(&objects);
        let loaded = Objects::load(&path).unwrap();
        assert_eq!(loaded, objects);
        assert_eq!(loaded.0.digest.get().map(String::as_str), Some(objects.digest()));
        let again = photos();
        again.save(&path).unwrap();
        assert_eq!(Objects::load(&path).unwrap(), again, "a file is replaced");
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }
}

#[test]
fn other_tools_read_a_saved_list() {
    let (_folder, path) = saved(&photos());
    let mut reader = arrow_ipc::reader::FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let batch = reader.next().unwrap().unwrap();
    assert_eq!(batch.columns(), photos().to_record_batch().unwrap().columns());
}

#[test]
fn a_file_that_cannot_be_written_or_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/photos.arrow");
    for error in [
        photos().save(&path).unwrap_err(),
        Objects::load(&path).unwrap_err(),
    ] {
        assert_eq!(error.kind(), crate::ErrorKind::Config);
        assert!(error.to_string().contains("missing/photos.arrow: "), "{error}");
    }
}

#[test]
fn a_truncated_file_is_damaged() {
    let (_folder, path) = saved(&photos());
    let file = fs::read(path).unwrap();
    for length in (0..file.len()).step_by(64).chain(file.len() - 11..file.len()) {
        let fault = fault(file[..length].to_vec());
        let is_expected = fault.starts_with("the file is damaged: ")
            || (length < MAGIC.len() && fault.contains("another format"));
        assert!(is_expected, "{length} bytes: {fault}");
    }
}

#[test]
fn a_changed_bit_is_found_or_changes_nothing() {
    for list in [photos(), shards()] {
        let (_folder, path) = saved(&list);
        let file = fs::read(path).unwrap();
        let content_bytes = Footer::read(&file).unwrap().content_bytes;
        for byte in 0..file.len() {
            let mut changed = file.clone();
            changed[byte] ^= 1;
            if let Ok(objects) = decode(changed) {
                assert_eq!(objects, list, "byte {byte}");
                assert_eq!(objects.digest(), list.digest(), "byte {byte}");
                assert!(byte >= content_bytes, "byte {byte} is not of the footer");
            }
        }
    }
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let digest = "0".repeat(64);
    let metadata = [(BUCKET, "b"), (DIGEST, digest.as_str())];
    let batch = photos().to_record_batch().unwrap();
    let keys = StringArray::from(vec!["a"]);
    let other = RecordBatch::try_from_iter([("path", Arc::new(keys) as _)]).unwrap();
    let nulls = LargeStringArray::from(vec![Some("a"), None]);
    let nulls = RecordBatch::try_from_iter([("key", Arc::new(nulls) as _)]).unwrap();
    let list = |batch: &RecordBatch| fault(arrow_file(&[batch], &metadata, FOOTER));
    insta::assert_snapshot!(
        [
            fault(b"bucket,key\n".to_vec()),
            fault(arrow_file(&[&batch], &metadata, &[])),
            fault(arrow_file(
                &[&batch],
                &metadata,
                &[(VERSION_NAME, "3"), (CHECKSUM, "")]
            )),
            fault(arrow_file(&[&batch], &metadata[..1], FOOTER)),
            fault(arrow_file(&[&batch], &[(BUCKET, "b"), (DIGEST, "XY")], FOOTER)),
            fault(arrow_file(&[&batch, &batch], &metadata, FOOTER)),
            list(&other),
            list(&nulls),
        ]
        .join("\n")
    );
    assert!(decode(arrow_file(&[&batch], &metadata, FOOTER)).is_ok());
}

proptest! {
    /// Without the protection of a checksum: whatever the bytes, the result is a list or an error.
    #[test]
    fn hostile_files_are_errors(
        has_members: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let digest = "0".repeat(64);
        let list = if has_members { shards() } else { photos() };
        let (batch, version) = list.saved_batch().unwrap();
        let footer = [(VERSION_NAME, version), (CHECKSUM, "")];
        let mut file = arrow_file(&[&batch], &[(BUCKET, "b"), (DIGEST, &digest)], &footer);
        let content_bytes = Footer::read(&file).unwrap().content_bytes;
        let before = checksum(&file[..content_bytes]);
        for (index, byte) in changes {
            let index = index.index(content_bytes);
            file[index] = byte;
        }
        let after = checksum(&file[..content_bytes]);
        let at = file.windows(before.len()).rposition(|window| window == before.as_bytes()).unwrap();
        file[at..at + after.len()].copy_from_slice(after.as_bytes());
        if let Ok(objects) = decode(file) {
            prop_assert_eq!(objects.iter().count(), objects.len());
        }
    }
}

#[test]
fn a_million_objects_are_saved_and_loaded() {
    let key = |index: usize| format!("train/n{:08}/photo_{index:010}.jpeg", index / 1000);
    let mut builder = crate::objects::ObjectsBuilder::default();
    for index in 0..1_000_000 {
        builder.push(crate::objects::Object {
            key: &key(index),
            bytes: Some(110_000),
            etag: Some("\"d41d8cd98f00b204e9800998ecf8427e\""),
            member: None,
        });
    }
    let objects = builder.finish("photos".into());
    let (_folder, path) = saved(&objects);
    assert_eq!(Objects::load(&path).unwrap().digest(), objects.digest());
}
