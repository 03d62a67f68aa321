//! Strategies that generate objects with tables, and pipelines for them.

use std::sync::{Arc, LazyLock};

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, Float64Array, Int64Array,
    ListArray, RecordBatch, StringArray, TimestampMicrosecondArray,
    types::{Int32Type, Int64Type},
};
use bytes::Bytes;
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use proptest::{collection::vec, option, prelude::*};
use pushdown::{
    Context, Image, Pipeline, Sample, Table,
    wire::{Compression, TableForm},
};

use super::encode;

#[derive(Debug, Clone)]
pub(super) struct GeneratedRows(pub(super) Vec<GeneratedRow>);

/// Values of the columns `n`, `f`, `s`, `b` and `t`, and the index of the picture in `p`.
pub(super) type GeneratedRow = (
    Option<i64>,
    Option<f64>,
    Option<String>,
    Option<bool>,
    Option<i64>,
    Option<usize>,
);

/// Three pictures, and bytes that are not an image.
static PICTURES: LazyLock<[Vec<u8>; 4]> = LazyLock::new(|| {
    let encode = Pipeline::parse("decode | encode(png)").unwrap();
    let picture = |grey: u8| {
        let image = Image::new(5, 4, vec![grey; 60]).unwrap();
        match encode
            .run(1..2, Sample::Image(image), &Context::new(b""))
            .unwrap()
        {
            Sample::Bytes(bytes) => bytes.to_vec(),
            other => panic!("found {other:?}"),
        }
    };
    [picture(0), picture(9), picture(255), b"none".to_vec()]
});

impl GeneratedRows {
    fn batch(&self) -> RecordBatch {
        let rows = &self.0;
        let columns: [(&str, ArrayRef); 6] = [
            (
                "row",
                Arc::new(Int64Array::from_iter_values(
                    0..i64::try_from(rows.len()).unwrap(),
                )),
            ),
            (
                "n",
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            ),
            (
                "f",
                Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>()),
            ),
            (
                "s",
                Arc::new(rows.iter().map(|row| row.2.clone()).collect::<StringArray>()),
            ),
            (
                "b",
                Arc::new(rows.iter().map(|row| row.3).collect::<BooleanArray>()),
            ),
            (
                "t",
                Arc::new(
                    rows.iter()
                        .map(|row| row.4)
                        .collect::<TimestampMicrosecondArray>(),
                ),
            ),
        ];
        let nullable = columns.map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
    }

    /// Also has the columns that text formats cannot store: lists, decimals, times with a zone, a dictionary, and pictures.
    fn rich_batch(&self) -> RecordBatch {
        let rows = &self.0;
        let lists = rows
            .iter()
            .map(|row| row.0.map(|n| (0..n.rem_euclid(4)).map(Some)));
        let decimals = rows.iter().map(|row| row.0.map(|n| i128::from(n % 10_000)));
        let decimals: Decimal128Array = decimals.collect();
        let times: TimestampMicrosecondArray = rows.iter().map(|row| row.4).collect();
        let words: DictionaryArray<Int32Type> = rows.iter().map(|row| row.2.as_deref()).collect();
        let pictures = rows
            .iter()
            .map(|row| row.5.map(|picture| PICTURES[picture].as_slice()));
        let columns: [(&str, ArrayRef); 5] = [
            (
                "l",
                Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
            ),
            ("d", Arc::new(decimals.with_precision_and_scale(12, 2).unwrap())),
            ("z", Arc::new(times.with_timezone("+02:00"))),
            ("w", Arc::new(words)),
            ("p", Arc::new(pictures.collect::<BinaryArray>())),
        ];
        let plain = self.batch();
        let plain_columns = plain
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect::<Vec<_>>();
        let plain = plain_columns
            .iter()
            .map(String::as_str)
            .zip(plain.columns().iter().cloned());
        let all = plain.chain(columns).map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(all).unwrap()
    }
}

pub(super) fn rows() -> impl Strategy<Value = GeneratedRows> {
    let number = prop_oneof![4 => -5..20_i64, 1 => any::<i64>()];
    let float = prop_oneof![
        4 => (-100..100_i32).prop_map(|n| f64::from(n) / 7.0),
        1 => prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.0), Just(f64::INFINITY), Just(1e300), Just(5e-324)],
    ];
    let text = "[a-c]{0,3}|größe|x'y\"z";
    let row = (
        option::weighted(0.9, number),
        option::weighted(0.9, float),
        option::weighted(0.9, text),
        option::of(any::<bool>()),
        option::of(0..4_000_000_000_000_000_i64),
        option::weighted(0.8, 0..PICTURES.len()),
    );
    vec(row, 0..200).prop_map(GeneratedRows)
}

/// Conditions on those columns.
fn condition() -> impl Strategy<Value = String> {
    let number = -6..21_i64;
    let leaf = prop_oneof![
        (
            number.clone(),
            prop_oneof![
                Just("<"),
                Just("<="),
                Just("="),
                Just("<>"),
                Just(">"),
                Just(">=")
            ]
        )
            .prop_map(|(n, operator)| format!("n {operator} {n}")),
        (number.clone(), prop_oneof![Just("<"), Just(">="), Just("=")])
            .prop_map(|(n, operator)| format!("f {operator} {n}.5")),
        prop_oneof![Just("f = 0"), Just("f = -0.0"), Just("f < 0"), Just("f >= 0")].prop_map(str::to_owned),
        (0..200_u32).prop_map(|row| format!("row between {row} and {}", row + 20)),
        "[a-c]{0,2}".prop_map(|text| format!("s like '{text}%'")),
        "[a-c]{1,2}".prop_map(|text| format!("s in ('{text}', 'größe')")),
        Just("b".to_owned()),
        Just("s is null".to_owned()),
        Just("f is not null and n is not null".to_owned()),
        Just("sin(f) > 0.25".to_owned()),
        Just("t > '1990-01-01'".to_owned()),
        number.prop_map(|n| format!("n % 5 = {n}")),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one}) and ({other})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one}) or ({other})")),
            inner.prop_map(|one| format!("not ({one})")),
        ]
    })
}

/// Pipelines that read tables from such objects.
pub(super) fn pipeline() -> impl Strategy<Value = String> {
    let quoted = |sql: String| format!("sql({})", serde_json::to_string(&sql).unwrap());
    let sql = prop_oneof![
        condition().prop_map(|c| format!("select n, sum(f) as s, avg(f) as a, count(*) as c from object where {c} group by n")),
        condition().prop_map(|c| format!("select * from object where {c} order by f desc, row limit 7")),
        condition().prop_map(|c| format!("select stddev(f) as d, sum(f * 3) as p, corr(f, n) as r, median(f) as m from object where {c}")),
        condition().prop_map(|c| format!("select exp(f) as e, ln(abs(f) + 1) as l, power(f, 1.5) as p, atan2(f, n) as t from object where {c}")),
        condition().prop_map(|c| format!("select distinct s, b from object where {c}")),
        (-5..20_i64).prop_map(|n| format!(
            "select row, n - (select min(n) from object) as above from object where f < (select avg(f) from object where n <> {n})"
        )),
        condition().prop_map(|c| format!("select row, sum(f) over (order by row rows between 3 preceding and current row) as w from object where {c}")),
        condition().prop_map(|c| format!("select row, count(*) over (partition by n) as c, rank() over (order by f) as r from object where {c}")),
        condition().prop_map(|c| format!("select concat(s, '-', row) as t, replace(s, 'a', 'bcd') as r, make_array(n, row) as l from object where {c}")),
        condition().prop_map(|c| format!("select count(distinct s) as c, sum(distinct n % 100) as n, array_agg(s order by row) as l from object where {c}")),
        condition().prop_map(|c| format!("select array_agg(distinct s) as l, sum(distinct f) as d, avg(distinct f) as a from object where {c}")),
        condition().prop_map(|c| format!("select approx_distinct(s) as d, approx_percentile_cont(f, 0.3) as p, mode as m from (select s, f, b as mode from object where {c}) t group by mode")),
        condition().prop_map(|c| format!("select w, sum(d) as d, min(z) as z, count(l) as l from object where {c} group by w")),
        condition().prop_map(|c| format!("select row, l[1] as first, d * 2 as d, z, p from object where {c} or d > 3.5 order by d, row")),
        Just("select s, count(*) as c from object group by s union all select 'all', count(*) from object".to_owned()),
    ];
    let stretch = option::weighted(0.3, (0..100_u32, 0..150_u32));
    let select =
        (condition(), option::of(0..30_u32), any::<bool>(), stretch).prop_map(|(c, limit, few, stretch)| {
            let columns = if few { "columns=[f, row, p], " } else { "" };
            let limit = limit.map(|limit| format!(", limit={limit}")).unwrap_or_default();
            let stretch = stretch
                .map(|(from, count)| format!(", rows=[{from}, {}]", from + count))
                .unwrap_or_default();
            format!(
                "select({columns}where={}{limit}{stretch}, row_number=place)",
                serde_json::to_string(&c).unwrap()
            )
        });
    let each = prop_oneof![
        Just(" | each(p: decode | resize(3, 2))"),
        Just(" | each(p: decode | random_crop(2) | flip_h | encode(png))"),
        Just(" | each(p: decode | to_float | cast(f16))"),
    ];
    let sample = (0..11_u32, any::<u16>())
        .prop_map(|(tenths, seed)| format!(" | sample({}, {seed})", f64::from(tenths) / 10.0));
    let first = prop_oneof![
        1 => Just("select".to_owned()),
        4 => (select, option::weighted(0.4, each)).prop_map(|(first, each)| first + each.unwrap_or_default()),
        5 => sql.prop_map(quoted),
    ];
    (first, option::weighted(0.3, sample)).prop_map(|(first, sample)| first + &sample.unwrap_or_default())
}

/// Index of the format CSV.
const CSV: usize = 3;
/// Index of the format JSON lines.
const JSON_LINES: usize = 4;

pub(super) fn object(rows: &GeneratedRows, format: usize, group_rows: usize) -> Bytes {
    let batch = if matches!(format, CSV | JSON_LINES) {
        rows.batch()
    } else {
        rows.rich_batch()
    };
    match format {
        0 | 1 => {
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(group_rows))
                .set_data_page_row_count_limit(group_rows.div_ceil(3))
                .set_write_batch_size(4)
                .set_bloom_filter_enabled(format == 1)
                .build();
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap().into()
        }
        other => {
            let form = [
                TableForm::ArrowStream(Compression::Lz4),
                TableForm::Csv,
                TableForm::Ndjson,
                TableForm::Parquet,
            ][other - 2];
            encode(form, &Table::new(batch.schema(), vec![batch]).unwrap()).into()
        }
    }
}
