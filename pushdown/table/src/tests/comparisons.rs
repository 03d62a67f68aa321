//! Comparisons by value that `scripts/writers_parquet.py` lacks, since `DuckDB` fails on them or cannot read the file.

use arrow_array::{
    Array as _, Date32Array, Decimal256Array, DurationMicrosecondArray, FixedSizeBinaryArray,
    IntervalMonthDayNanoArray, TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_buffer::{IntervalMonthDayNano, i256};

use super::*;

/// A file with the row number as `n` and one row per row group.
fn object(columns: Vec<(&str, ArrayRef)>) -> Bytes {
    let rows = i64::try_from(columns[0].1.len()).unwrap();
    let columns = std::iter::once(("n", column(0..rows))).chain(columns);
    let columns = columns.map(|(name, column)| (name, column, true));
    parquet_file(&RecordBatch::try_from_iter_with_nullable(columns).unwrap(), 1)
}

/// The rows that match a condition, by `select` and by `sql`.
fn matching_rows(object: &Bytes, condition: &str) -> Vec<i64> {
    let selected = scan(
        &format!("select(columns=[n], where=\"{condition}\")"),
        object.clone(),
    );
    let queried = scan(
        &format!("sql(\"select n from object where {condition}\")"),
        object.clone(),
    );
    let rows = int64s(&selected.expect(condition).0, 0);
    assert_eq!(int64s(&queried.unwrap().0, 0), rows, "{condition}");
    rows
}

fn assert_matches(object: &Bytes, cases: &[(&str, &[i64])]) {
    for (condition, rows) in cases {
        assert_eq!(matching_rows(object, condition), *rows, "{condition}");
    }
}

#[test]
fn nanoseconds_compare_with_any_year() {
    let nanoseconds = vec![Some(i64::MIN), Some(-1), Some(0), Some(i64::MAX), None];
    let years = |years: [i64; 4]| years.map(Some).into_iter().chain([None]);
    let micros = years([-62_135_596_800_000_000, -1, 0, 253_402_300_799_000_000]);
    let seconds = years([i64::MIN, -1, 0, i64::MAX]);
    let object = object(vec![
        (
            "ns",
            Arc::new(TimestampNanosecondArray::from(nanoseconds)) as ArrayRef,
        ),
        (
            "us",
            Arc::new(micros.collect::<TimestampMicrosecondArray>()) as ArrayRef,
        ),
        (
            "s",
            Arc::new(seconds.collect::<TimestampSecondArray>()) as ArrayRef,
        ),
        (
            "day",
            Arc::new(Date32Array::from(vec![
                Some(i32::MIN),
                Some(-1),
                Some(0),
                Some(i32::MAX),
                None,
            ])) as ArrayRef,
        ),
    ]);
    assert_matches(
        &object,
        &[
            ("ns < timestamp '9999-12-31'", &[0, 1, 2, 3]),
            ("ns < '9999-12-31'", &[0, 1, 2, 3]),
            ("ns = '9999-12-31'", &[]),
            ("ns <> '9999-12-31'", &[0, 1, 2, 3]),
            ("'9999-12-31' > ns", &[0, 1, 2, 3]),
            ("ns > '0001-01-01'", &[0, 1, 2, 3]),
            ("ns >= date '9999-12-31'", &[]),
            ("ns is distinct from '9999-12-31'", &[0, 1, 2, 3, 4]),
            ("ns is not distinct from '9999-12-31'", &[]),
            ("ns in ('9999-12-31', '1970-01-01')", &[2]),
            ("ns in ('9999-12-31', '0001-01-01')", &[]),
            ("ns not in ('9999-12-31', '0001-01-01')", &[0, 1, 2, 3]),
            ("ns not in ('9999-12-31', '1970-01-01')", &[0, 1, 3]),
            ("ns not in ('9999-12-31', null)", &[]),
            ("ns between '0001-01-01' and '9999-12-31'", &[0, 1, 2, 3]),
            ("ns not between '0001-01-01' and '1970-01-01'", &[3]),
            ("not (ns < '9999-12-31')", &[]),
            ("ns < us", &[3]),
            ("us < ns", &[0, 1]),
            ("ns = us", &[2]),
            ("s < us", &[0, 1]),
            ("s <= ns", &[0, 1, 2]),
            ("us < day", &[3]),
            ("day < us", &[0, 1]),
            ("day = ns", &[2]),
            ("s > '9999-12-31'", &[3]),
            ("day > timestamp '9999-12-31 12:00'", &[3]),
            (
                "case when ns < '9999-12-31' then us < '2000-01-01' end",
                &[0, 1, 2],
            ),
        ],
    );
    for condition in [
        "ns < 'tomorrow'",
        "us = '2024-13-01'",
        "day in ('1970-01-01', 'x')",
    ] {
        let error = scan(&format!("select(where=\"{condition}\")"), object.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable, "{error}");
        assert!(
            error
                .to_string()
                .contains("invalid timestamp: expected YYYY-MM-DD"),
            "{error}"
        );
    }
}

#[test]
fn literals_are_converted_before_row_groups_are_pruned() {
    let day = 86_400_000_000;
    let days: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(
        (0..10).map(|n| n * day),
    ));
    let object = object(vec![("t", days)]);
    for (condition, rows) in [
        ("t = '9999-12-31'", 0),
        ("t < '1970-01-03 12:00'", 3),
        ("t >= timestamp '1970-01-09 00:00:00.0000001'", 2),
        ("t > date '1970-01-08'", 2),
        ("t in ('1970-01-02', '9999-12-31')", 1),
        ("t > '9999-12-31'", 0),
    ] {
        let (_, estimate) = scan(
            &format!("select(columns=[n], where=\"{condition}\")"),
            object.clone(),
        )
        .unwrap();
        assert_eq!(estimate.max_rows, Some(rows), "{condition}");
    }
}

/// `DuckDB` gives a text literal the type of a typed literal in the same list: a time with a zone in this case.
#[test]
fn each_literal_of_a_list_is_compared_separately() {
    let noon = TimestampMicrosecondArray::from(vec![43_200_000_000]);
    let object = object(vec![("t", Arc::new(noon) as ArrayRef)]);
    let zoned = "timestamptz '1970-01-01 12:00:00'";
    assert_matches(
        &object,
        &[
            (&format!("t between '1970-01-01 13:00:00+01:00' and {zoned}"), &[]),
            (
                &format!("t between '1970-01-01 12:00:00+01:00' and {zoned}"),
                &[0],
            ),
            (&format!("t in ('1970-01-01 12:00:00+01:00', {zoned})"), &[0]),
        ],
    );
}

#[test]
fn durations_and_intervals_of_any_unit_are_compared() {
    let durations = vec![Some(0), Some(3_600_000_000), Some(86_400_000_000), Some(-1), None];
    let interval = |months, days, nanoseconds| Some(IntervalMonthDayNano::new(months, days, nanoseconds));
    let intervals = vec![
        interval(0, 0, 0),
        interval(0, 0, 129_600_000_000_000),
        interval(0, 1, 0),
        interval(1, 0, 0),
        None,
    ];
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("n", column(0..5), true),
        (
            "d",
            Arc::new(DurationMicrosecondArray::from(durations)) as ArrayRef,
            true,
        ),
        (
            "i",
            Arc::new(IntervalMonthDayNanoArray::from(intervals)) as ArrayRef,
            true,
        ),
    ])
    .unwrap();
    // Parquet's writer does not support intervals of months, days and nanoseconds.
    let mut object = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    object.write(&batch).unwrap();
    let object = object.into_inner().unwrap().into();
    assert_matches(
        &object,
        &[
            ("d >= interval '1 hour'", &[1, 2]),
            ("d < interval '1 day'", &[0, 1, 3]),
            ("d < interval '1 month'", &[0, 1, 2, 3]),
            ("d = interval '86400 seconds'", &[2]),
            ("interval '30 minutes' < d", &[1, 2]),
            ("d between interval '0 hours' and interval '1 hour'", &[0, 1]),
            ("i > interval '1 day'", &[1, 3]),
            ("i = interval '30 days'", &[3]),
            ("i < interval '1 month'", &[0, 1, 2]),
            ("i in (interval '24 hours', interval '30 days')", &[2, 3]),
            ("i between interval '1 day' and interval '36 hours'", &[1, 2]),
            ("i > d", &[1, 3]),
            ("i = d", &[0, 2]),
            ("i > '1 day'", &[1, 3]),
        ],
    );
}

#[test]
fn uuids_compare_with_texts() {
    let values = [1_u128, 0x550e_8400_e29b_41d4_a716_4466_5544_0000, u128::MAX];
    let bytes = values
        .map(|value| Some(value.to_be_bytes()))
        .into_iter()
        .chain([None]);
    let uuids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes.clone(), 16).unwrap();
    let plain = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 16).unwrap();
    let metadata = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into();
    let field = |name: &str| arrow_schema::Field::new(name, DataType::FixedSizeBinary(16), true);
    let schema = arrow_schema::Schema::new(vec![
        arrow_schema::Field::new("n", DataType::Int64, true),
        field("id").with_metadata(metadata),
        field("plain"),
    ]);
    let columns: Vec<ArrayRef> = vec![column(0..4), Arc::new(uuids), Arc::new(plain)];
    let batch = RecordBatch::try_new(Arc::new(schema), columns).unwrap();
    let object = parquet_file(&batch, 1);
    assert_matches(
        &object,
        &[
            ("id = '550e8400-e29b-41d4-a716-446655440000'", &[1]),
            ("id = '550E8400E29B41D4A716446655440000'", &[1]),
            ("id = uuid '{550e8400-e29b-41d4-a716-446655440000}'", &[1]),
            ("id <> '550e8400-e29b-41d4-a716-446655440000'", &[0, 2]),
            ("id > '550e8400-e29b-41d4-a716-446655440000'", &[2]),
            ("'f0000000-0000-0000-0000-000000000000' < id", &[2]),
            (
                "id in ('00000000-0000-0000-0000-000000000001', 'ffffffff-ffff-ffff-ffff-ffffffffffff')",
                &[0, 2],
            ),
            ("cast(id as varchar) like '550e8400-%'", &[1]),
            ("id = plain", &[0, 1, 2]),
        ],
    );
    let (table, _) = scan("sql('select id::varchar as text from object')", object.clone()).unwrap();
    let texts = table
        .batches()
        .iter()
        .flat_map(|batch| batch.column(0).as_string::<i32>().iter());
    let texts: Vec<_> = texts.collect();
    assert_eq!(
        texts,
        [
            Some("00000000-0000-0000-0000-000000000001"),
            Some("550e8400-e29b-41d4-a716-446655440000"),
            Some("ffffffff-ffff-ffff-ffff-ffffffffffff"),
            None,
        ]
    );
    let error = scan("select(where=\"id = 'abc'\")", object).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("invalid UUID: expected 32 hexadecimal digits, found `abc`"),
        "{error}"
    );
}

/// `DuckDB` has no decimals of more than 38 digits.
#[test]
fn decimals_of_any_precision_are_compared() {
    let ten = |power: u32| i256::from(10_i64).checked_pow(power).unwrap();
    let values = vec![
        Some(i256::ONE),
        Some(ten(49)),
        Some(ten(49).wrapping_neg()),
        Some(i256::ZERO),
        None,
    ];
    let huge = Decimal256Array::from(values)
        .with_precision_and_scale(50, 5)
        .unwrap();
    let object = object(vec![("x", Arc::new(huge) as ArrayRef)]);
    assert_matches(
        &object,
        &[
            ("x > 0", &[0, 1]),
            ("x = 0.00001", &[0]),
            ("x < 0.00001", &[2, 3]),
            ("x < 0.000001", &[2, 3]),
            ("x = 100000000000000000000000000000000000000000000", &[1]),
            // A decimal literal of more than 38 digits is a double, unless it is cast.
            (
                "x < cast('99999999999999999999999999999999999999999999.99999' as decimal(50, 5))",
                &[0, 2, 3],
            ),
            ("x > 1e60", &[]),
            ("x > -1e60", &[0, 1, 2, 3]),
            ("x between -0.5 and 0.5", &[0, 3]),
        ],
    );
}
