//! Texts whose first row is longer than the bytes from which columns are inferred otherwise.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use pushdown_core::Error;

/// A value that is longer than a MiB.
const LONG: usize = 1_500_000;

fn json_rows(lengths: &[usize]) -> String {
    let row =
        |(id, length): (usize, &usize)| format!("{{\"id\": {id}, \"image\": \"{}\"}}\n", "A".repeat(*length));
    lengths.iter().enumerate().map(row).collect()
}

fn csv_rows(lengths: &[usize]) -> String {
    let row = |(id, length): (usize, &usize)| format!("{id},\"{},\n\"\n", "A".repeat(*length));
    lengths.iter().enumerate().map(row).collect()
}

fn read_chunks(name: &str, text: &str, object: &str, limits: Limits) -> Result<Table> {
    let source = ChunkedSource {
        object: Bytes::from(object.to_owned()),
        chunk_bytes: 100_000,
    };
    read_with(name, text, source, limits)
}

fn limits(max_batch_bytes: u64) -> Limits {
    let mut limits = Limits::default();
    limits.tables.max_batch_bytes = max_batch_bytes;
    limits
}

#[test]
fn a_first_row_of_more_than_a_mebibyte_is_read() {
    for lengths in [&[LONG, 10, LONG][..], &[3 * LONG, 10], &[LONG], &[10, LONG]] {
        let ids: Vec<_> = (0..lengths.len()).map(|id| i64::try_from(id).unwrap()).collect();
        let with_header = format!("id,image\n{}", csv_rows(lengths));
        for (name, text, object) in [
            ("a.jsonl", "select", json_rows(lengths)),
            ("a.jsonl", "select(columns=[id])", json_rows(lengths)),
            ("a.csv", "select", with_header.clone()),
            ("a.csv", "select(columns=[id])", with_header),
            ("a.csv", "select(header=false)", csv_rows(lengths)),
        ] {
            let table = read_chunks(name, text, &object, Limits::default()).unwrap();
            assert_eq!(int64s(&table, 0), ids, "{name}: {text} of {lengths:?}");
        }
    }
}

/// The names of columns, too, may be longer than a MiB.
#[test]
fn a_long_header_is_read() {
    let object = format!("id,{}\n7,1\n", "n".repeat(LONG));
    let table = read_chunks("a.csv", "select(columns=[id])", &object, Limits::default()).unwrap();
    assert_eq!(int64s(&table, 0), [7]);
}

/// Types follow from the first row alone if it is longer than a MiB.
#[test]
fn rows_after_a_long_first_one_must_fit_it() {
    let later = "{\"id\": 1.5, \"image\": \"\"}\n";
    let error = read_chunks(
        "a.jsonl",
        "select",
        &(json_rows(&[LONG]) + later),
        Limits::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("malformed JSON in line 2: "), "{error}");
    // A row that is within the first MiB counts.
    let table = read_chunks(
        "a.jsonl",
        "select",
        &(json_rows(&[10]) + later),
        Limits::default(),
    );
    assert_eq!(table.unwrap().schema().field(0).data_type(), &DataType::Float64);
}

#[test]
fn a_first_row_beyond_the_limit_of_a_record_batch_is_an_error() {
    let fits = json_rows(&[2 * LONG]).len() as u64;
    let rows = json_rows(&[2 * LONG, 10]);
    assert!(read_chunks("a.jsonl", "select", &rows, limits(fits + 1000)).is_ok());
    let error = read_chunks("a.jsonl", "select", &rows, limits(fits - 100)).unwrap_err();
    let message = format!("first JSON row too long: expected at most {} bytes", fits - 100);
    assert!(error.to_string().starts_with(&message), "{error}");

    let rows = csv_rows(&[2 * LONG, 10]);
    let error = read_chunks("a.csv", "select(header=false)", &rows, limits(2_500_000)).unwrap_err();
    let message = "first CSV row too long: expected at most 2500000 bytes";
    assert!(error.to_string().starts_with(message), "{error}");
    let error = read_chunks("a.csv", "select", &format!("id,image\n{rows}"), limits(2_500_000));
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

/// Memory for the bytes beyond the first MiB is reserved before they are read.
#[test]
fn long_first_rows_reserve_memory() {
    #[derive(Debug)]
    struct Bounded {
        object: ChunkedSource,
        reserved: Arc<AtomicU64>,
        memory: u64,
    }

    impl Source for Bounded {
        fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
            self.object.suffix(length)
        }

        fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
            self.object.ranges(ranges)
        }

        fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
            self.object.stream()
        }

        fn reserve(&self, bytes: u64) -> Result<()> {
            if self.reserved.fetch_add(bytes, Relaxed) + bytes > self.memory {
                return Err(Error::new(ErrorKind::Source, "the memory is full"));
            }
            Ok(())
        }
    }

    let read = |rows: String, memory: u64| {
        let reserved = Arc::new(AtomicU64::new(0));
        let source = Bounded {
            object: ChunkedSource {
                object: Bytes::from(gzip(rows.as_bytes())),
                chunk_bytes: 100,
            },
            reserved: Arc::clone(&reserved),
            memory,
        };
        let table = read_with("a.jsonl.gz", "select", source, Limits::default());
        (table.map(|table| table.rows()), reserved.load(Relaxed))
    };
    assert_eq!(read(json_rows(&[10, 20]), 0), (Ok(2), 0));
    let (rows, reserved) = read(json_rows(&[LONG, 20]), u64::MAX);
    assert_eq!(rows, Ok(2));
    assert!(reserved >= LONG as u64, "{reserved}");
    let (rows, reserved) = read(json_rows(&[20 * LONG, 20]), 10 << 20);
    assert_eq!(rows.unwrap_err().to_string(), "the memory is full");
    assert!(reserved < 24 << 20, "{reserved}: nothing more is read");
}
