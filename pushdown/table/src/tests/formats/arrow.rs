//! Arrow IPC.

use std::slice;

use arrow_array::NullArray;
use arrow_ipc::writer::{DictionaryHandling, IpcWriteOptions, StreamWriter};

use super::*;

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn arrow_files_and_streams_are_detected_by_their_magic_bytes() {
    let words: DictionaryArray<Int8Type> = (0..2000)
        .map(|row| if row % 3 == 0 { Some("a") } else { None })
        .collect();
    let mut columns = numbers(2000).columns().to_vec();
    columns.push(Arc::new(words));
    let names = ["n", "m", "text", "word"].into_iter().zip(columns);
    let batch = RecordBatch::try_from_iter(names).unwrap();
    let batches = [batch.slice(0, 700), batch.slice(700, 1300)];
    let expected = Table::new(batch.schema(), vec![batch]).unwrap();
    for object in [
        arrow_file(&batches, None),
        arrow_file(&batches, Some(arrow_ipc::CompressionType::ZSTD)),
        arrow_file(&batches, Some(arrow_ipc::CompressionType::LZ4_FRAME)),
        arrow_stream(&batches).into(),
    ] {
        assert_eq!(read("no name", "select", object.clone()).unwrap(), expected);
        let text = "select(columns=[word, n], where=\"n % 2 = 0\")";
        assert_eq!(read("x", text, object.clone()).unwrap().rows(), 1000);
        for length in [4, 9, 300, object.len() / 2] {
            assert!(
                read_with(
                    "x",
                    "select(format=arrow)",
                    object.slice(..length),
                    Limits::default()
                )
                .is_err()
            );
        }
    }
}

#[test]
fn large_arrow_batches_are_split() {
    let object = arrow_file(&[numbers(20_000)], None);
    let table = read_with("x", "select", object, Limits::default()).unwrap();
    let rows: Vec<_> = table.batches().iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [8192, 8192, 3616]);
}

/// A compressed buffer can announce any decompressed size.
#[test]
fn arrow_with_a_false_buffer_size_is_an_error() {
    let object = arrow_file(&[numbers(5000)], Some(arrow_ipc::CompressionType::ZSTD));
    let position = memchr::memmem::find(&object, &40_000_i64.to_le_bytes()).unwrap();
    let mut changed = object.to_vec();
    changed[position..position + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
    let error = read_with("x", "select", Bytes::from(changed), Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

/// An LZ4 frame is decompressed to its end, even if the buffer announces fewer bytes.
#[test]
fn an_lz4_buffer_of_another_size_than_announced_is_an_error() {
    let object = arrow_file(&[numbers(2_000_000)], Some(arrow_ipc::CompressionType::LZ4_FRAME));
    for announced in [1, 1_000_000, 7_000_000] {
        let changed = with_numbers(&object, 16_000_000, announced);
        let error = read_with("x", "select", changed, Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Undecodable, "{announced}: {error}");
        let message = format!("expected one LZ4 frame of {announced} decompressed bytes");
        assert!(error.to_string().contains(&message), "{error}");
    }
    let table = read_with("x", "select", object, Limits::default()).unwrap();
    assert_eq!(table.rows(), 2_000_000);
}

#[test]
fn a_buffer_outside_its_message_is_an_error() {
    let object = arrow_stream(&[numbers(5000)]);
    let far = with_numbers(&object, 40_000, 1 << 40);
    let error = read_with("x", "select", far, Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    assert!(
        error
            .to_string()
            .contains("expected each buffer within its message"),
        "{error}"
    );
    // Overlapping buffers would multiply the work.
    let shared = with_numbers(&object, 40_000, 70_000);
    let error = read_with("x", "select", shared, Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    assert!(
        error.to_string().contains("bytes in the message, found"),
        "{error}"
    );
}

/// Arrow and Parquet allow duplicate names, but queries cannot distinguish the columns.
#[test]
fn an_object_with_duplicate_column_names_is_an_error() {
    let fields = ["n", "m", "n"].map(|name| Field::new(name, DataType::Int64, true));
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let batch = RecordBatch::try_new(schema, vec![column; 3]).unwrap();
    for object in [
        arrow_file(slice::from_ref(&batch), None),
        parquet_file(&batch, 10),
    ] {
        for text in ["select", "select(columns=[m])", COUNT] {
            let error = read_with("x", text, object.clone(), Limits::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsuitable, "{text}: {error}");
            assert!(
                error.to_string().contains("two columns named `n`"),
                "{text}: {error}"
            );
        }
    }
}

const COUNT: &str = "sql(\"select count(*) as c from object\")";

/// The object with each 64-bit number `from` replaced by `to`.
pub(super) fn with_numbers(object: &[u8], from: i64, to: i64) -> Bytes {
    let (from, to) = (from.to_le_bytes(), to.to_le_bytes());
    let positions: Vec<_> = memchr::memmem::find_iter(object, &from).collect();
    assert!(!positions.is_empty());
    let mut changed = object.to_vec();
    for position in positions {
        changed[position..position + 8].copy_from_slice(&to);
    }
    changed.into()
}

/// Columns of nulls have no bytes, and if no column is read, only the message has the number of rows.
#[test]
fn a_batch_with_too_many_claimed_rows_is_an_error() {
    let rows = 12_345_678;
    let nulls: ArrayRef = Arc::new(NullArray::new(rows));
    let object = arrow_stream(&[RecordBatch::try_from_iter([("nothing", nulls)]).unwrap()]);
    let rows = i64::try_from(rows).unwrap();
    let table = read_with("x", COUNT, Bytes::from(object.clone()), Limits::default()).unwrap();
    assert_eq!(int64s(&table, 0), [rows]);
    let nulls = with_numbers(&object, rows, 1 << 50);
    let numbers = arrow_stream(&[numbers(5000)]);
    let far = with_numbers(&numbers, 5000, 1 << 50);
    let negative = with_numbers(&numbers, 5000, -1);
    for (text, object) in [
        ("select", &nulls),
        (COUNT, &nulls),
        (COUNT, &far),
        (COUNT, &negative),
    ] {
        let error = read_with("x", text, object.clone(), Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{text}: {error}");
        assert!(error.to_string().contains("found a claim of"), "{text}: {error}");
    }
    let near = with_numbers(&numbers, 5000, 6000);
    let error = read_with("x", COUNT, near, Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    let table = read_with("x", COUNT, Bytes::from(numbers), Limits::default()).unwrap();
    assert_eq!(int64s(&table, 0), [5000]);
}

/// Each dictionary and each delta is below the limit.
#[test]
fn the_total_size_of_dictionaries_is_limited() {
    let words = |count: usize, letter: char| -> ArrayRef {
        let words: Vec<_> = (0..count)
            .map(|word| format!("{word}{}", letter.to_string().repeat(6000)))
            .collect();
        let words = words.iter().map(|word| Some(word.as_str()));
        Arc::new(words.collect::<DictionaryArray<Int8Type>>())
    };
    let options = IpcWriteOptions::default().with_dictionary_handling(DictionaryHandling::Delta);
    let two_columns = RecordBatch::try_from_iter([("a", words(50, 'a')), ("b", words(50, 'b'))]).unwrap();
    let deltas = [30, 60, 90].map(|count| RecordBatch::try_from_iter([("a", words(count, 'a'))]).unwrap());
    for batches in [&[two_columns][..], &deltas[..]] {
        let schema = batches[0].schema();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options.clone()).unwrap();
        for batch in batches {
            writer.write(batch).unwrap();
        }
        let object = Bytes::from(writer.into_inner().unwrap());
        let read_within = |max_batch_bytes| {
            let tables = TableLimits {
                max_batch_bytes,
                ..TableLimits::default()
            };
            let limits = Limits {
                tables,
                ..Limits::default()
            };
            read_with("x", COUNT, object.clone(), limits)
        };
        let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>();
        assert_eq!(
            int64s(&read_within(1 << 20).unwrap(), 0),
            [i64::try_from(rows).unwrap()]
        );
        let error = read_within(400_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(
            error.to_string().contains("Arrow dictionaries too large"),
            "{error}"
        );
    }
}
