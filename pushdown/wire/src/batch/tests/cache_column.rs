//! The column `cache`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, UInt8Array};

use super::{extra_columns::with_named_columns, *};

const STATUSES: [CacheStatus; 5] = [
    CacheStatus::Computed,
    CacheStatus::Memory,
    CacheStatus::Disk,
    CacheStatus::Shared,
    CacheStatus::Prefix,
];

fn values() -> [Sample; 3] {
    [
        Sample::Tensor(tensor(DType::F32, &[2, 3], 0)),
        Sample::Tensor(tensor(DType::I8, &[2, 3], 0).with_scale(Some(0.5))),
        Sample::Bytes("bytes".into()),
    ]
}

/// A row per status, and one that failed.
fn rows(value: &Sample) -> Vec<Row> {
    let successful = (0..).zip(STATUSES).map(|(row, cache)| Row {
        cache,
        ..successful(row, value.clone())
    });
    successful.chain([failed(5)]).collect()
}

#[test]
fn statuses_are_sent_if_the_request_asked_for_them() {
    for value in values() {
        for value_type in [fixed(&value), ValueType::Any] {
            let rows = rows(&value);
            let stream = |cache_column| {
                let writer = writer(&value_type, Compression::None, cache_column);
                write_by(writer, &rows, 2)
            };
            for (cache_column, expected) in [(true, STATUSES), (false, [CacheStatus::Computed; 5])] {
                let (found, end) = read([stream(cache_column)]);
                end.unwrap();
                let statuses: Vec<_> = found.iter().map(|row| row.cache).collect();
                assert_eq!(
                    (&statuses[..5], statuses[5]),
                    (&expected[..], CacheStatus::Computed)
                );
                assert!(
                    found
                        .iter()
                        .zip(&rows)
                        .all(|(found, row)| found.value == row.value)
                );
            }
        }
    }
}

#[test]
fn the_column_has_any_position_after_the_value() {
    for value in values() {
        let rows = rows(&value);
        let stream = write(&fixed(&value), &rows[..3], 3);
        // With numbers of a later version.
        let cache: ArrayRef = Arc::new(UInt8Array::from(vec![2, 0, 200]));
        let (found, end) = read([with_named_columns(&stream, &[(5, "cache".to_owned(), cache)])]);
        end.unwrap();
        let statuses: Vec<_> = found.iter().map(|row| row.cache).collect();
        assert_eq!(
            statuses,
            [CacheStatus::Disk, CacheStatus::Computed, CacheStatus::Computed]
        );
    }
}

#[test]
fn a_column_of_another_type_is_refused() {
    let value = Sample::Bytes("bytes".into());
    let stream = write(&fixed(&value), &[successful(0, value)], 1);
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let (_, end) = read([with_named_columns(&stream, &[(5, "cache".to_owned(), number)])]);
    assert!(end.unwrap_err().to_string().contains("unexpected columns"));
}
