//! CSV, JSON lines and Arrow IPC.

use std::{fmt::Write as _, io::Write as _};

use arrow_array::BooleanArray;
use arrow_schema::{Field, Schema, TimeUnit};

use super::*;

/// An object that comes in chunks of a few bytes.
#[derive(Debug, Clone)]
struct Chunked(Bytes, usize);

impl Source for Chunked {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        // Less than the whole, so that it has to be read from its start.
        self.0.suffix(length.min(self.0.len() as u64 / 2))
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        self.0.ranges(ranges)
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let chunks: Vec<_> = self
            .0
            .chunks(self.1)
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        stream::iter(chunks).boxed()
    }
}

fn read(name: &str, text: &str, object: impl Into<Bytes>) -> Result<Table> {
    let object = object.into();
    let limits = Limits::default();
    let whole = read_with(name, text, object.clone(), limits);
    for chunk in [1, 7, 1000] {
        let chunked = read_with(name, text, Chunked(object.clone(), chunk), limits);
        assert_eq!(chunked, whole, "{name}: {text}, in chunks of {chunk}");
    }
    whole
}

fn read_with(name: &str, text: &str, source: impl Source, limits: Limits) -> Result<Table> {
    let context = Context {
        limits,
        ..Context::new(name.as_bytes())
    };
    on_runtime(async {
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

#[test]
fn csv_has_the_types_of_its_first_rows() {
    let table = read("t/a.csv", "select", CSV).unwrap();
    let expected = [
        ("id", &DataType::Int64),
        ("name", &DataType::Utf8),
        ("price", &DataType::Float64),
        ("day", &DataType::Date32),
        ("at", &DataType::Timestamp(TimeUnit::Second, None)),
        ("ok", &DataType::Boolean),
    ];
    assert_eq!(types(&table), expected);
    assert_eq!(int64s(&table, 0), [1, 2, 3]);
    let names = [Some("a, \"b\"".to_owned()), None, Some("two\nlines".to_owned())];
    assert_eq!(texts(&table, 1), names);
    let ok = table.batches()[0].column(5).as_boolean().clone();
    assert_eq!(ok, BooleanArray::from(vec![Some(true), None, Some(false)]));
}

#[test]
fn csv_by_columns_conditions_and_sql() {
    let table = read(
        "a.csv",
        "select(columns=[price, id], where=\"id <> 2\", limit=1)",
        CSV,
    )
    .unwrap();
    assert_eq!(
        types(&table),
        [("price", &DataType::Float64), ("id", &DataType::Int64)]
    );
    assert_eq!(int64s(&table, 1), [1]);
    let table = read(
        "a.csv",
        "sql(\"select count(*) as c, sum(id) as s from object\")",
        CSV,
    )
    .unwrap();
    assert_eq!((int64s(&table, 0), int64s(&table, 1)), (vec![3], vec![6]));
    let joined = "sql(\"select a.id from object a join object b on a.id = b.id order by a.id\")";
    assert_eq!(int64s(&read("a.csv", joined, CSV).unwrap(), 0), [1, 2, 3]);
}

#[test]
fn csv_without_a_header_and_with_other_delimiters() {
    let table = read(
        "x",
        "select(format=csv, header=false, delimiter=\";\")",
        "1;a\n2;b\n",
    )
    .unwrap();
    assert_eq!(
        types(&table),
        [("column_1", &DataType::Int64), ("column_2", &DataType::Utf8)]
    );
    assert_eq!(int64s(&table, 0), [1, 2]);
    let table = read("a.tsv", "select", "a\tb\n1\tx, y\n").unwrap();
    assert_eq!(texts(&table, 1), [Some("x, y".to_owned())]);
    let table = read("a.csv", "select", "\u{feff}a,,c\n").unwrap();
    assert_eq!(table.rows(), 0);
    let names = [
        ("a", &DataType::Utf8),
        ("column_2", &DataType::Utf8),
        ("c", &DataType::Utf8),
    ];
    assert_eq!(types(&table), names);
}

#[test]
fn rows_that_do_not_fit_the_first_ones_are_told_with_their_line() {
    let mut text = "n,t\n".to_owned();
    for row in 0..200_000 {
        writeln!(text, "{row},word").unwrap();
    }
    let whole = read_with("a.csv", "select", Bytes::from(text.clone()), Limits::default()).unwrap();
    assert_eq!(whole.rows(), 200_000);
    text.push_str("many,word\n");
    let found = read_with("a.csv", "select", Bytes::from(text.clone()), Limits::default()).unwrap_err();
    let says = "found malformed CSV in line 200002: found `many` in column `n`, expected Int64";
    assert!(found.to_string().starts_with(says), "{found}");
    // Columns that are not asked for are not looked at.
    assert!(
        read_with(
            "a.csv",
            "select(columns=[t])",
            Bytes::from(text),
            Limits::default()
        )
        .is_ok()
    );

    let rows: Vec<_> = (0..100_000).map(|row| format!("{{\"n\": {row}}}\n\n")).collect();
    let mut text = rows.concat();
    text.push_str("{\"n\": 1, \"new\": 2}\n");
    let found = read_with("a.json", "select", Bytes::from(text), Limits::default()).unwrap_err();
    let says = "found malformed JSON in line 200001: found the name `new`, which no row at the start has";
    assert_eq!(found.to_string(), says);
}

#[test]
fn broken_csv_is_told_with_its_line() {
    for (text, says) in [
        (
            "a,b\n1,2\n3\n",
            "in line 3: found another number of values, expected 2",
        ),
        (
            "a,b\r\n1,2\r\n3,4,5\r\n",
            "in line 3: found another number of values, expected 2",
        ),
        ("a,b\n1,\"2\n3,4\n", "in line 2: "),
        ("a\n1\n\"2\n3", "a quote is not closed"),
        ("a\nx\0y\n", "in line 2: found a byte of zero"),
        ("a,a\n1,2\n", "the name `a` twice"),
        ("", "the CSV is empty"),
    ] {
        let error = error("a.csv", "select", text);
        assert!(error.contains(says), "{text:?}: {error}");
    }
    let error = error("a.csv", "select", &b"a\n\xff\xfe\n"[..]);
    assert!(
        error.contains("in line 2: found bytes that are no UTF-8"),
        "{error}"
    );
}

const JSON: &str = "{\"id\": 1, \"tags\": [\"a\"], \"at\": {\"x\": 1}}\n{\"id\": 2.5, \"at\": {\"y\": null}}\n\n{\"tags\": null}";

#[test]
fn json_lines_have_the_names_of_their_first_rows_in_order() {
    let table = read("a.jsonl", "select", JSON).unwrap();
    let at = [("x", DataType::Int64), ("y", DataType::Utf8)];
    let at = at.map(|(name, data_type)| Field::new(name, data_type, true));
    let tags = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let expected = Schema::new(vec![
        Field::new("id", DataType::Float64, true),
        Field::new("tags", tags, true),
        Field::new("at", DataType::Struct(at.to_vec().into()), true),
    ]);
    assert_eq!(**table.schema(), expected);
    assert_eq!(table.rows(), 3);
    for text in [
        "select(columns=[tags])",
        "select(columns=[at, id], where=\"id > 1\")",
    ] {
        let part = read("a.jsonl", text, JSON).unwrap();
        assert!(part.rows() > 0 && part.schema().fields().len() < 3);
    }
    let count = read("a.jsonl", "sql(\"select count(*) as c from object\")", JSON).unwrap();
    assert_eq!(int64s(&count, 0), [3]);
}

#[test]
fn broken_json_is_told_with_its_line() {
    for (text, says) in [
        ("{\"a\": 1}\n{\"a\": \"x\"}", "found a string, expected a number"),
        ("[{\"a\": 1}]", "an object in each line"),
        ("{\"a\": 1}\n{\"a\": ", "line 2"),
        ("", "no columns"),
        ("{}", "no columns"),
        ("{\"a\": 1}\nnonsense", "line 2"),
    ] {
        let error = error("a.json", "select", text);
        assert!(error.contains(says), "{text:?}: {error}");
    }
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

fn arrow_stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn arrow_files_and_streams_are_found_by_their_magic_bytes() {
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
fn large_arrow_batches_are_cut() {
    let object = arrow_file(&[numbers(20_000)], None);
    let table = read_with("x", "select", object, Limits::default()).unwrap();
    let rows: Vec<_> = table.batches().iter().map(RecordBatch::num_rows).collect();
    assert_eq!(rows, [8192, 8192, 3616]);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn texts_are_inflated() {
    let plain = read("a.csv", "select", CSV).unwrap();
    assert_eq!(read("a.csv.gz", "select", gzip(CSV.as_bytes())).unwrap(), plain);
    let zstd = zstd::encode_all(CSV.as_bytes(), 3).unwrap();
    assert_eq!(read("a.csv.zst", "select", zstd.clone()).unwrap(), plain);
    assert_eq!(read("x", "select(format=csv)", zstd).unwrap(), plain);
    let plain = read("a.json", "select", JSON).unwrap();
    assert_eq!(read("a.json.gz", "select", gzip(JSON.as_bytes())).unwrap(), plain);
}

#[test]
fn bombs_and_endless_rows_end_at_their_limits() {
    let limits = Limits {
        tables: TableLimits {
            max_inflated_bytes: 10 << 20,
            max_batch_bytes: 4 << 20,
            max_columns: 100,
            ..TableLimits::default()
        },
        ..Limits::default()
    };
    let rows = format!("a\n{}", "1\n".repeat(6 << 20));
    let quote = format!("a\n1\n2\n\"{}", "x".repeat(8 << 20));
    let wide = vec!["a"; 200]
        .iter()
        .enumerate()
        .map(|(index, name)| format!("{name}{index}"))
        .collect::<Vec<_>>();
    for (object, says) in [
        (gzip(rows.as_bytes()), "once it is inflated"),
        (
            zstd::encode_all(rows.as_bytes(), 3).unwrap(),
            "once it is inflated",
        ),
        (quote.into_bytes(), "before a record batch is full"),
        (wide.join(",").into_bytes(), "200 columns"),
    ] {
        let error = read_with("a.csv", "select", Bytes::from(object), limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

/// A buffer of an Arrow file may claim any length that it inflates to.
#[test]
fn arrow_that_lies_about_its_lengths_is_an_error() {
    let object = arrow_file(&[numbers(5000)], Some(arrow_ipc::CompressionType::ZSTD));
    let magic = memchr::memmem::find(&object, &40_000_i64.to_le_bytes()).unwrap();
    let mut lying = object.to_vec();
    lying[magic..magic + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
    let error = read_with("x", "select", Bytes::from(lying), Limits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
}

#[test]
fn formats_are_named_or_found_or_refused() {
    let error = error("a.txt", "select", "a,b\n1,2\n");
    assert!(error.contains("name it with `format=`"), "{error}");
    let object = parquet_of(&numbers(10), 10);
    assert_eq!(read("a.csv", "select", object.clone()).unwrap().rows(), 10);
    let fault = read_with("a", "select(header=false)", object, Limits::default()).unwrap_err();
    assert_eq!(fault.kind(), ErrorKind::InvalidPipeline);
    assert!(fault.to_string().contains("`header` is for CSV"), "{fault}");
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
fn row_numbers_are_those_of_the_object() {
    let rows = numbers(100_000);
    let csv = (0..100).map(|n| format!("{n}\n")).collect::<Vec<_>>().concat();
    let place = "select(columns=[n], where=\"n >= 52000 and n < 54000\", row_number=place)";
    for object in [parquet_of(&rows, 10_000), arrow_file(&[rows], None)] {
        let table = read_with("x", place, object.clone(), Limits::default()).unwrap();
        assert_eq!(int64s(&table, 1), int64s(&table, 0));
        assert_eq!(table.rows(), 2000);
        let sql = "sql(\"select place from object where place between 20000 and 20003\", row_number=place)";
        let table = read_with("x", sql, object.clone(), Limits::default()).unwrap();
        assert_eq!(int64s(&table, 0), [20_000, 20_001, 20_002, 20_003]);
        let taken = read_with("x", "select(row_number=m)", object, Limits::default()).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::Unsuitable);
    }
    let table = read(
        "a.csv",
        "select(header=false, row_number=r, where=\"column_1 > 97\")",
        csv,
    )
    .unwrap();
    assert_eq!(int64s(&table, 1), [98, 99]);
}
