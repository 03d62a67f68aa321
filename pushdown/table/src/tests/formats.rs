//! CSV, JSON lines and Arrow IPC.

mod arrow;
mod footer;
mod late;
mod long_rows;
mod text;

use std::{fmt::Write as _, io::Write as _};

use arrow_array::BooleanArray;
use arrow_schema::{Field, Schema, TimeUnit};

use super::*;

const JSON: &str = "{\"id\": 1, \"tags\": [\"a\"], \"at\": {\"x\": 1}}\n{\"id\": 2.5, \"at\": {\"y\": null}}\n\n{\"tags\": null}";

/// A source that streams its object in small chunks.
#[derive(Debug, Clone)]
struct ChunkedSource {
    object: Bytes,
    chunk_bytes: usize,
}

impl Source for ChunkedSource {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        // The suffix never covers the object, so the stream is read as well.
        self.object.suffix(length.min(self.object.len() as u64 / 2))
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        self.object.ranges(ranges)
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let chunks: Vec<_> = self
            .object
            .chunks(self.chunk_bytes)
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        stream::iter(chunks).boxed()
    }
}

/// Reads an object, and checks that small chunks return the same result.
fn read(name: &str, text: &str, object: impl Into<Bytes>) -> Result<Table> {
    let object = object.into();
    let limits = Limits::default();
    let whole = read_with(name, text, object.clone(), limits);
    for chunk_bytes in [1, 7, 1000] {
        let source = ChunkedSource {
            object: object.clone(),
            chunk_bytes,
        };
        let chunked = read_with(name, text, source, limits);
        assert_eq!(chunked, whole, "{name}: {text}, in chunks of {chunk_bytes}");
    }
    whole
}

fn read_with(name: &str, text: &str, source: impl Source, limits: Limits) -> Result<Table> {
    let context = Context {
        limits,
        ..Context::new(name.as_bytes())
    };
    block_on(async {
        let pipeline = pipeline(text);
        let mut scan = pipeline
            .scan(0..pipeline.len(), Arc::new(source), &context)
            .await?;
        let schema = Arc::clone(scan.schema());
        let mut batches = Vec::new();
        while let Some(batch) = scan.next().await.transpose()? {
            batches.push(batch);
        }
        Table::new(schema, batches)
    })
}

fn arrow_file(batches: &[RecordBatch], compression: Option<arrow_ipc::CompressionType>) -> Bytes {
    let options = arrow_ipc::writer::IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let schema = batches[0].schema();
    let mut writer =
        arrow_ipc::writer::FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    writer.into_inner().unwrap().into()
}

fn error(name: &str, text: &str, object: impl Into<Bytes>) -> String {
    let error = read(name, text, object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
    error.to_string()
}

fn types(table: &Table) -> Vec<(&str, &DataType)> {
    let fields = table.schema().fields().iter();
    fields
        .map(|field| (field.name().as_str(), field.data_type()))
        .collect()
}

fn texts(table: &Table, column: usize) -> Vec<Option<String>> {
    let batches = table.batches().iter();
    let column = batches.flat_map(|batch| batch.column(column).as_string::<i32>().iter());
    column.map(|text| text.map(str::to_owned)).collect()
}

const CSV: &str = "id,name,price,day,at,ok\r\n1,\"a, \"\"b\"\"\",1.5,2024-02-29,2024-02-29 01:02:03,true\r\n2,,,,,\r\n3,\"two\nlines\",2,1999-12-31,1999-12-31T00:00:00,FALSE";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_texts_are_read() {
    let plain = read("a.csv", "select", CSV).unwrap();
    assert_eq!(read("a.csv.gz", "select", gzip(CSV.as_bytes())).unwrap(), plain);
    let zstd = zstd::encode_all(CSV.as_bytes(), 3).unwrap();
    assert_eq!(read("a.csv.zst", "select", zstd.clone()).unwrap(), plain);
    assert_eq!(read("x", "select(format=csv)", zstd).unwrap(), plain);
    let plain = read("a.json", "select", JSON).unwrap();
    assert_eq!(read("a.json.gz", "select", gzip(JSON.as_bytes())).unwrap(), plain);
}

#[test]
fn decompression_bombs_and_oversized_rows_are_rejected() {
    let limits = Limits {
        tables: TableLimits {
            max_inflated_bytes: 3 << 20,
            max_batch_bytes: 1 << 20,
            max_columns: 100,
            ..TableLimits::default()
        },
        ..Limits::default()
    };
    let rows = format!("a\n{}", "1\n".repeat(2 << 20));
    let quote = format!("a\n1\n2\n\"{}", "x".repeat(2 << 20));
    let wide = vec!["a"; 200]
        .iter()
        .enumerate()
        .map(|(index, name)| format!("{name}{index}"))
        .collect::<Vec<_>>();
    for (object, message) in [
        (gzip(rows.as_bytes()), "decompressed bytes"),
        (
            zstd::encode_all(rows.as_bytes(), 3).unwrap(),
            "decompressed bytes",
        ),
        (quote.into_bytes(), "expected a full record batch in at most"),
        (wide.join(",").into_bytes(), "found 200"),
    ] {
        let error = read_with("a.csv", "select", Bytes::from(object), limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

#[test]
fn formats_are_named_or_detected_or_rejected() {
    let error = error("a.txt", "select", "a,b\n1,2\n");
    assert!(error.contains("name the format with `format=`"), "{error}");
    let object = parquet_file(&numbers(10), 10);
    assert_eq!(read("a.csv", "select", object.clone()).unwrap().rows(), 10);
    let misplaced = read_with("a", "select(header=false)", object, Limits::default()).unwrap_err();
    assert_eq!(misplaced.kind(), ErrorKind::InvalidPipeline);
    assert!(
        misplaced.to_string().contains("`header` applies to CSV"),
        "{misplaced}"
    );
    for text in [
        "select(format=parquet, header=false)",
        "select(delimiter=ab)",
        "select(delimiter='\"')",
        "select(row_number=\"\")",
        "sql(\"select 1\", format=xml)",
    ] {
        assert!(Pipeline::parse(text).is_err(), "{text}");
    }
    let text = "select(format=csv, header=false, delimiter=\";\", row_number=place)";
    assert_eq!(pipeline(text).to_string(), text);
    assert_eq!(
        pipeline("select(header=true, delimiter=\",\")").to_string(),
        "select"
    );
}

#[test]
fn row_numbers_count_the_rows_of_the_object() {
    let rows = numbers(100_000);
    let csv = (0..100).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    let by_row_number = "select(columns=[n], where=\"n >= 52000 and n < 54000\", row_number=place)";
    for object in [parquet_file(&rows, 10_000), arrow_file(&[rows], None)] {
        let table = read_with("x", by_row_number, object.clone(), Limits::default()).unwrap();
        assert_eq!(int64s(&table, 1), int64s(&table, 0));
        assert_eq!(table.rows(), 2000);
        let sql = "sql(\"select place from object where place between 20000 and 20003\", row_number=place)";
        let table = read_with("x", sql, object.clone(), Limits::default()).unwrap();
        assert_eq!(int64s(&table, 0), [20_000, 20_001, 20_002, 20_003]);
        let duplicate = read_with("x", "select(row_number=m)", object, Limits::default()).unwrap_err();
        assert_eq!(duplicate.kind(), ErrorKind::Unsuitable);
    }
    let table = read(
        "a.csv",
        "select(header=false, row_number=r, where=\"column_1 > 97\")",
        csv,
    )
    .unwrap();
    assert_eq!(int64s(&table, 1), [98, 99]);
}
