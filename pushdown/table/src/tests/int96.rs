//! INT96 timestamps, as Spark, Hive and Impala write them.

use std::cell::Cell;

use ::parquet::{
    column::writer::ColumnWriter,
    data_type::Int96,
    file::{statistics::Statistics, writer::SerializedFileWriter},
    schema::parser::parse_message_type,
};
use arrow_array::{Array as _, TimestampNanosecondArray, types::TimestampMicrosecondType};
use arrow_schema::TimeUnit;

use super::*;

/// Nanoseconds per day.
const DAY_NANOSECONDS: i64 = 86_400_000_000_000;
/// The Julian day of 1970-01-01.
const EPOCH_DAY: i64 = 2_440_588;

/// A timestamp in both forms.
#[derive(Clone, Copy)]
struct Timestamp {
    /// Days since 1970-01-01.
    day: i64,
    nanoseconds_of_day: i64,
    /// Microseconds since 1970-01-01, rounded down.
    microseconds: i64,
}

const fn timestamp(day: i64, nanoseconds_of_day: i64, microseconds: i64) -> Timestamp {
    Timestamp {
        day,
        nanoseconds_of_day,
        microseconds,
    }
}

/// Year 1, just before and just after 1970 with digits below a microsecond, 2023-02-24, 2500, and the end of 9999.
const VALUES: [Timestamp; 6] = [
    timestamp(-719_162, 0, -62_135_596_800_000_000),
    timestamp(-1, DAY_NANOSECONDS - 1, -1),
    timestamp(0, 1_999, 1),
    timestamp(19_412, 0, 1_677_196_800_000_000),
    timestamp(193_577, 1_000, 16_725_052_800_000_001),
    timestamp(2_932_896, 86_399_000_000_000, 253_402_300_799_000_000),
];

fn int96(timestamp: Timestamp) -> Int96 {
    let mut value = Int96::new();
    let word = |number: i64| u32::try_from(number & 0xffff_ffff).unwrap();
    let nanoseconds = timestamp.nanoseconds_of_day;
    value.set_data(
        word(nanoseconds),
        word(nanoseconds >> 32),
        word(timestamp.day + EPOCH_DAY),
    );
    value
}

/// A file with INT96 at every nesting: a column, a list, a struct and a map of one entry.
fn int96_file(has_old_list: bool) -> Bytes {
    let list = if has_old_list {
        "repeated int96 array;"
    } else {
        "repeated group list { optional int96 element; }"
    };
    let schema = format!(
        "message spark_schema {{
            required int64 n;
            optional int96 t;
            optional group l (LIST) {{ {list} }}
            optional group s {{ required int96 inner; optional binary text (UTF8); }}
            optional group m (MAP) {{ repeated group key_value {{ required int96 key; optional int96 value; }} }}
        }}"
    );
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let properties = Arc::new(
        WriterProperties::builder()
            .set_data_page_row_count_limit(2)
            .set_write_batch_size(2)
            .build(),
    );
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let values: Vec<_> = VALUES.into_iter().map(int96).collect();
    let mut group = writer.next_row_group().unwrap();
    // The maximum definition level of each leaf.
    let item = if has_old_list { 2 } else { 3 };
    let mut levels = [0, 1, item, 1, 2, 2, 3].into_iter();
    while let Some(mut column) = group.next_column().unwrap() {
        let defined = vec![levels.next().unwrap(); VALUES.len()];
        let repeated = vec![0; VALUES.len()];
        match column.untyped() {
            ColumnWriter::Int96ColumnWriter(writer) => {
                writer.write_batch(&values, Some(&defined), Some(&repeated))
            }
            ColumnWriter::Int64ColumnWriter(writer) => writer.write_batch(&[0, 1, 2, 3, 4, 5], None, None),
            ColumnWriter::ByteArrayColumnWriter(writer) => {
                writer.write_batch(&vec!["x".into(); VALUES.len()], Some(&defined), Some(&repeated))
            }
            _ => panic!("unexpected column type"),
        }
        .unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.into_inner().unwrap().into()
}

fn micros(array: &ArrayRef) -> Vec<i64> {
    array.as_primitive::<TimestampMicrosecondType>().values().to_vec()
}

const MICROSECONDS: [i64; 6] = [
    VALUES[0].microseconds,
    VALUES[1].microseconds,
    VALUES[2].microseconds,
    VALUES[3].microseconds,
    VALUES[4].microseconds,
    VALUES[5].microseconds,
];

#[test]
fn every_year_is_read_at_every_nesting() {
    for has_old_list in [false, true] {
        let table = run("select", &int96_file(has_old_list)).unwrap();
        let [batch] = table.batches() else {
            panic!("expected one record batch")
        };
        assert_eq!(micros(batch.column(1)), MICROSECONDS);
        assert_eq!(micros(batch.column(2).as_list::<i32>().values()), MICROSECONDS);
        assert_eq!(micros(batch.column(3).as_struct().column(0)), MICROSECONDS);
        let map = batch.column(4).as_map();
        assert_eq!(
            (micros(map.keys()), micros(map.values())),
            (MICROSECONDS.to_vec(), MICROSECONDS.to_vec())
        );
    }
}

/// As in `DuckDB` 2.0.1 and pyarrow 26 (`coerce_int96_timestamp_unit="us"`).
#[test]
fn digits_below_a_microsecond_are_truncated() {
    let table = run("select(columns=[t])", &int96_file(false)).unwrap();
    let found = micros(table.batches()[0].column(0));
    assert_eq!(
        found[1..3],
        [-1, 1],
        "the last nanosecond of 1969, and 1,999 nanoseconds after 1970"
    );
}

#[test]
fn conditions_find_every_year() {
    let object = int96_file(false);
    for (condition, rows) in [
        ("t < timestamp '1000-01-01'", &[0][..]),
        ("t >= '2400-01-01'", &[4, 5]),
        ("t = timestamp '9999-12-31 23:59:59'", &[5]),
        ("t between '1969-01-01' and '2023-02-24'", &[1, 2, 3]),
        ("t is null", &[]),
        ("t is not null", &[0, 1, 2, 3, 4, 5]),
        ("s['inner'] > timestamp '2000-01-01'", &[3, 4, 5]),
    ] {
        let text = format!("select(columns=[n], where=\"{condition}\")");
        let (table, _) = scan(&text, object.clone()).unwrap();
        assert_eq!(int64s(&table, 0), rows, "{condition}");
        let query = format!("sql(\"select n from object where {condition}\")");
        assert_eq!(
            int64s(&scan(&query, object.clone()).unwrap().0, 0),
            rows,
            "{condition}"
        );
    }
    let (table, _) = scan("sql('select min(t) as a, max(t) as b from object')", object).unwrap();
    let value = |column: usize| micros(table.batches()[0].column(column))[0];
    assert_eq!((value(0), value(1)), (MICROSECONDS[0], MICROSECONDS[5]));
}

/// Old writers ordered INT96 by its twelve bytes, starting with the time of day.
#[test]
fn statistics_in_another_order_skip_no_rows() {
    for is_deprecated in [false, true] {
        let statistics = Statistics::int96(
            Some(int96(VALUES[5])),
            Some(int96(VALUES[0])),
            None,
            Some(0),
            is_deprecated,
        );
        let column = Cell::new(0);
        let object = with_chunks(&int96_file(false), |chunk| {
            let is_int96 = [1, 2, 3, 5, 6].contains(&column.get());
            column.set(column.get() + 1);
            if is_int96 {
                chunk.set_statistics(statistics.clone())
            } else {
                chunk
            }
        });
        for (condition, rows) in [
            ("t < timestamp '1000-01-01'", 1),
            ("t > timestamp '9000-01-01'", 1),
            ("t = timestamp '2023-02-24'", 1),
        ] {
            let text = format!("select(columns=[n], where=\"{condition}\")");
            assert_eq!(scan(&text, object.clone()).unwrap().0.rows(), rows, "{condition}");
        }
    }
}

/// pyarrow's INT96 of nanoseconds, with its Arrow schema in the footer.
#[test]
fn an_arrow_schema_in_the_footer_changes_only_the_zone() {
    let stamps: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![0]).with_timezone("UTC"));
    let batch = RecordBatch::try_from_iter([("t", stamps)]).unwrap();
    let schema = ::parquet::arrow::encode_arrow_schema(&batch.schema());
    let message = Arc::new(parse_message_type("message m { optional int96 t; }").unwrap());
    let pair = ::parquet::file::metadata::KeyValue::new("ARROW:schema".to_owned(), schema);
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![pair]));
    let mut writer = SerializedFileWriter::new(Vec::new(), message, Arc::new(properties.build())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let ColumnWriter::Int96ColumnWriter(int96_writer) = column.untyped() else {
        panic!("expected INT96")
    };
    int96_writer
        .write_batch(&VALUES.map(int96), Some(&[1; 6]), None)
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    let object: Bytes = writer.into_inner().unwrap().into();
    let microseconds = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let described = block_on(crate::describe(
        Arc::new(object.clone()),
        &Context::new(b"t.parquet"),
    ))
    .unwrap();
    assert_eq!(described.schema.field(0).data_type(), &microseconds);
    let (table, estimate) = scan("select", object).unwrap();
    assert_eq!(table.batches()[0].column(0).data_type(), &microseconds);
    assert_eq!(micros(table.batches()[0].column(0)), MICROSECONDS);
    assert_eq!(estimate.output_bytes, Some(48));
}
