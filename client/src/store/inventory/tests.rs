//! Inventories in either format of the same objects.

use std::{io::Write as _, sync::Arc};

use ::csv::{QuoteStyle, Terminator, WriterBuilder};
use ::parquet::arrow::ArrowWriter;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use md5::{Digest as _, Md5};
use proptest::{collection::btree_map, option, prelude::*};
use pushdown_s3::escapes::encode_component;

use super::{csv::CsvColumns, manifest::FileFormat, *};
use crate::objects::Object;

const BUCKET: &str = "photos";

/// A row: key, size, and ETag without quotation marks.
type Row = (String, u32, Option<String>);

fn csv_file(rows: &[Row]) -> (FileFormat, Vec<u8>) {
    let gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Always)
        .terminator(Terminator::Any(b'\n'))
        .from_writer(gzip);
    for (number, (key, size, etag)) in rows.iter().enumerate() {
        let mut key = encode_component(key.as_bytes());
        if number % 2 == 0 {
            key = key.replace("%20", "+");
        }
        let size = size.to_string();
        let etag = etag.as_deref().unwrap_or_default();
        writer.write_record([BUCKET, &key, &size, etag]).unwrap();
    }
    let mut gzip = writer.into_inner().unwrap();
    gzip.flush().unwrap();
    let columns = CsvColumns::parse("Bucket, Key, Size, ETag").unwrap();
    (FileFormat::Csv(columns), gzip.finish().unwrap())
}

fn parquet_file(rows: &[Row]) -> (FileFormat, Vec<u8>) {
    let column = |values: Vec<Option<&str>>| Arc::new(StringArray::from(values)) as ArrayRef;
    let keys = column(rows.iter().map(|(key, ..)| Some(&**key)).collect());
    let sizes = rows.iter().map(|(_, size, _)| Some(i64::from(*size)));
    let sizes: ArrayRef = Arc::new(sizes.collect::<Int64Array>());
    let etags = column(rows.iter().map(|(.., etag)| etag.as_deref()).collect());
    let columns = [
        ("key", keys, false),
        ("size", sizes, true),
        ("e_tag", etags, true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    (FileFormat::Parquet, writer.into_inner().unwrap())
}

/// Pieces that have arrived.
fn arriving(bytes: &[u8], piece_bytes: usize) -> mpsc::Receiver<Bytes> {
    let (sender, pieces) = mpsc::channel(bytes.len().max(1));
    for piece in bytes.chunks(piece_bytes) {
        sender.try_send(Bytes::copy_from_slice(piece)).unwrap();
    }
    pieces
}

/// Decodes a file that arrives in pieces.
fn decode(
    format: FileFormat,
    bytes: &[u8],
    piece_bytes: usize,
    file: &DataFile,
    rows: &mut InventoryRows,
) -> Result<(), Fault> {
    ArrivingFile::new(arriving(bytes, piece_bytes)).decode(format, file, rows)
}

fn data_file(bytes: &[u8]) -> DataFile {
    DataFile {
        key: "data".to_owned(),
        size: bytes.len() as u64,
        md5: hex::encode(Md5::digest(bytes)).to_uppercase(),
    }
}

fn inventory_rows(prefix: &str) -> InventoryRows {
    InventoryRows::new(prefix, HiddenObjects::LeftOut, Arc::default())
}

/// Any text, with characters that CSV or escapes treat in their own way more often.
fn key() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        prop::sample::select(vec![
            '+', '%', '"', '\'', ',', '\n', '\r', ' ', '/', '\\', '\0', '2', 'B', '\u{e9}'
        ]),
        any::<char>(),
    ];
    let text = prop::collection::vec(character, 0..12);
    // Neither empty nor hidden.
    text.prop_map(|text| format!("{}.jpg", text.into_iter().collect::<String>()))
        .prop_filter("hidden", |key| !HiddenObjects::LeftOut.leave_out(key, Some(1)))
}

proptest! {
    /// Both formats have each key as it is, and the list is that of the objects in the order of their keys.
    #[test]
    fn an_inventory_is_the_list_of_its_objects(
        objects in btree_map(key(), (any::<u32>(), option::of("[0-9a-f]{1,8}(-[0-9])?")), 0..20),
        reversed in any::<bool>(),
        piece_bytes in 1_usize..64,
        split in 0_usize..20,
    ) {
        let quoted: Vec<Option<String>> =
            objects.values().map(|(_, etag)| etag.as_ref().map(|etag| format!("\"{etag}\""))).collect();
        let expected = objects.iter().zip(&quoted).map(|((key, (size, _)), etag)| Object {
            key,
            bytes: Some(u64::from(*size)),
            etag: etag.as_deref(),
            member: None,
        });
        let expected = Objects::from_objects(BUCKET, expected);
        let rows = objects.iter().map(|(key, (size, etag))| (key.clone(), *size, etag.clone()));
        let mut rows: Vec<Row> = rows.collect();
        if reversed {
            rows.reverse();
        }
        let (first, second) = rows.split_at(split.min(rows.len()));
        for write in [csv_file, parquet_file] {
            let mut collected = inventory_rows("");
            for part in [first, second] {
                let (format, bytes) = write(part);
                decode(format, &bytes, piece_bytes, &data_file(&bytes), &mut collected).unwrap();
            }
            let (listed, left_out) = collected.finish(BUCKET);
            prop_assert_eq!(left_out.count, 0);
            prop_assert_eq!(sorted(listed), expected.clone());
        }
    }

    /// Each byte of an object is requested once.
    #[test]
    fn ranges_cover_an_object(total in 0..5 * PIECE_BYTES) {
        let mut position = 0;
        for range in ranges(total) {
            prop_assert_eq!(range.start, position);
            prop_assert!(!range.is_empty() && range.end - range.start <= PIECE_BYTES);
            position = range.end;
        }
        prop_assert_eq!(position, total);
    }
}

/// A file that does not decode is reported as another one than that of the manifest, if it is.
#[test]
fn a_file_with_another_sum_is_refused() {
    let row = ("a.jpg".to_owned(), 5, Some("e".to_owned()));
    for write in [csv_file, parquet_file] {
        let (format, bytes) = write(std::slice::from_ref(&row));
        let file = data_file(&bytes);
        let mut damaged = bytes.clone();
        *damaged.last_mut().unwrap() ^= 1;
        for other in [
            &damaged,
            &bytes[..bytes.len() - 1],
            &[],
            &[&*bytes, b"\0"].concat(),
        ] {
            let fault = decode(format, other, 7, &file, &mut inventory_rows("")).unwrap_err();
            let text = fault.to_string();
            let expected = format!("expected the MD5 sum {} of the manifest, found ", file.md5);
            assert!(text.starts_with(&expected), "{text}");
        }
        decode(format, &bytes, 7, &file, &mut inventory_rows("")).unwrap();
        let unlike = data_file(&damaged);
        let fault = decode(format, &damaged, 7, &unlike, &mut inventory_rows("")).unwrap_err();
        assert!(matches!(fault, Fault::Damaged(_)), "{fault}");
    }
}
