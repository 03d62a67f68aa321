//! Incomplete and misleading statistics.

use ::parquet::{
    data_type::ByteArray,
    file::statistics::{Statistics, ValueStatistics},
};

use super::*;

/// A Parquet file of one column with four rows per row group, with the given statistics and no page index.
fn file_with_statistics(column: ArrayRef, statistics: impl Fn() -> Option<Statistics>) -> Bytes {
    let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    with_chunks(&parquet_file(&batch, 4), |chunk| {
        let chunk = chunk.set_column_index_offset(None).set_column_index_length(None);
        match statistics() {
            Some(statistics) => chunk.set_statistics(statistics),
            None => chunk.clear_statistics(),
        }
    })
}

/// Number of rows that match a condition, by `select` and by `sql`.
fn count(object: &Bytes, condition: &str) -> u64 {
    let selected = scan(&format!("select(where=\"{condition}\")"), object.clone());
    let counted = scan(
        &format!("sql(\"select count(*) as c from object where {condition}\")"),
        object.clone(),
    );
    let rows = selected.unwrap().0.rows();
    assert_eq!(
        int64s(&counted.unwrap().0, 0),
        [i64::try_from(rows).unwrap()],
        "{condition}"
    );
    rows
}

#[test]
fn a_missing_null_count_means_unknown() {
    let some_null = || -> ArrayRef { Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(9)])) };
    let one = || -> ArrayRef { Arc::new(Int64Array::from(vec![Some(5)])) };
    let no_value = || -> ArrayRef { Arc::new(Int64Array::from(vec![None, None])) };
    let statistics = |min, max| Some(Statistics::int64(min, max, None, None, false));
    let object = file_with_statistics(some_null(), || statistics(Some(1), Some(9)));
    for (condition, rows) in [
        ("x is null", 1),
        ("x is not null", 3),
        ("x > 2", 2),
        ("x > 9", 0),
        ("x is null or x = 9", 2),
        ("x is distinct from 1", 3),
        ("coalesce(x, 7) = 7", 1),
    ] {
        assert_eq!(count(&object, condition), rows, "{condition}");
    }
    let (table, _) = scan(
        "sql('select count(*) as a, count(x) as b, min(x) as c, max(x) as d from object')",
        object,
    )
    .unwrap();
    let row: Vec<_> = (0..4).flat_map(|column| int64s(&table, column)).collect();
    assert_eq!(row, [4, 3, 1, 9]);
    let object = file_with_statistics(one(), || statistics(Some(5), Some(5)));
    assert_eq!((count(&object, "x is null"), count(&object, "x = 5")), (0, 1));
    let object = file_with_statistics(no_value(), || statistics(None, None));
    assert_eq!(
        (count(&object, "x is null"), count(&object, "x is not null")),
        (2, 0)
    );
    for (condition, rows) in [("x is null", 1), ("x > 2", 2)] {
        assert_eq!(
            count(&file_with_statistics(some_null(), || None), condition),
            rows,
            "{condition}"
        );
    }
}

#[test]
fn bounds_without_a_null_count_skip_row_groups() {
    let batch = RecordBatch::try_from_iter([("x", column(0..8))]).unwrap();
    let next_min = std::cell::Cell::new(0);
    let object = with_chunks(&parquet_file(&batch, 4), |chunk| {
        let min = next_min.replace(next_min.get() + 4);
        let statistics = Statistics::int64(Some(min), Some(min + 3), None, None, false);
        let chunk = chunk.set_column_index_offset(None).set_column_index_length(None);
        chunk.set_statistics(statistics)
    });
    let (table, estimate) = scan("select(where='x > 5')", object).unwrap();
    assert_eq!((table.rows(), estimate.max_rows), (2, Some(4)));
}

#[test]
fn nan_is_not_a_bound() {
    let numbers = || -> ArrayRef { Arc::new(Float64Array::from(vec![1.0, f64::NAN, 3.0, 9.0])) };
    let singles = || -> ArrayRef { Arc::new(Float32Array::from(vec![1.0, f32::NAN, 3.0, 9.0])) };
    let doubles = |min, max| Some(Statistics::double(min, max, None, Some(0), false));
    for (min, max) in [
        (Some(f64::NAN), Some(f64::NAN)),
        (Some(f64::NAN), Some(9.0)),
        (Some(1.0), Some(f64::NAN)),
        (Some(1.0), Some(9.0)),
    ] {
        let object = file_with_statistics(numbers(), || doubles(min, max));
        for (condition, rows) in [
            ("x < 2", 1),
            ("x = 3", 1),
            ("x > 2", 3),
            ("x >= 10", 1),
            ("x <> 1", 3),
        ] {
            assert_eq!(
                count(&object, condition),
                rows,
                "{condition} with bounds {min:?}..{max:?}"
            );
        }
    }
    let nan = || {
        Some(Statistics::float(
            Some(f32::NAN),
            Some(f32::NAN),
            None,
            Some(0),
            false,
        ))
    };
    assert_eq!(count(&file_with_statistics(singles(), nan), "x < 2"), 1);
}

/// Some writers keep the sign of zero in bounds, others write the sign that the format requires.
#[test]
fn the_sign_of_zero_skips_no_rows() {
    for zero in [0.0, -0.0] {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![zero, zero]));
        for bound in [0.0, -0.0] {
            let statistics = || Some(Statistics::double(Some(bound), Some(bound), None, Some(0), false));
            let object = file_with_statistics(Arc::clone(&numbers), statistics);
            for (condition, rows) in [
                ("x = 0", 2),
                ("x = -0.0", 2),
                ("x <= 0.0", 2),
                ("x <= -0.0", 2),
                ("x >= 0.0", 2),
                ("x < 0", 0),
                ("x > -0.0", 0),
            ] {
                assert_eq!(
                    count(&object, condition),
                    rows,
                    "{condition}, value {zero}, bound {bound}"
                );
            }
        }
    }
}

/// Bounds of long texts are truncated, and the maximum is rounded up.
#[test]
fn truncated_bounds_are_bounds() {
    let texts = ["apple pie", "azzz", "melon", "pear tree"];
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    let statistics = || {
        let (min, max) = (Some("a".into()), Some("q".into()));
        let statistics = ValueStatistics::<ByteArray>::new(min, max, None, Some(0), false);
        Some(
            statistics
                .with_min_is_exact(false)
                .with_max_is_exact(false)
                .into(),
        )
    };
    let object = file_with_statistics(texts, statistics);
    for (condition, rows) in [
        ("x = 'pear tree'", 1),
        ("x > 'pear'", 1),
        ("x >= 'q'", 0),
        ("x < 'apple pie'", 0),
        ("x <= 'apple pie'", 1),
        ("x = 'q'", 0),
        ("x <> 'q'", 4),
        ("x like 'pea%'", 1),
    ] {
        assert_eq!(count(&object, condition), rows, "{condition}");
    }
    let (table, _) = scan("sql('select min(x) as a, max(x) as b from object')", object).unwrap();
    let batch = &table.batches()[0];
    let value = |column: usize| batch.column(column).as_string::<i32>().value(0).to_owned();
    assert_eq!(
        (value(0), value(1)),
        ("apple pie".to_owned(), "pear tree".to_owned())
    );
}

/// The page index has bounds of some pages only, as writers stop at NaN.
#[test]
fn nan_in_a_page_index_is_not_a_bound() {
    let numbers = (0..40).map(|n| if n % 3 == 0 { f64::NAN } else { f64::from(n) });
    let numbers: ArrayRef = Arc::new(Float64Array::from_iter_values(numbers));
    let all_nan: ArrayRef = Arc::new(Float64Array::from(vec![f64::NAN; 40]));
    let batch = RecordBatch::try_from_iter([("x", numbers), ("y", all_nan)]).unwrap();
    let object = parquet_file(&batch, 20);
    for (condition, rows) in [
        ("x < 5", 3),
        ("x = 38", 1),
        ("x > 35", 16),
        ("y < 5", 0),
        ("y > 5", 40),
    ] {
        assert_eq!(count(&object, condition), rows, "{condition}");
    }
}
