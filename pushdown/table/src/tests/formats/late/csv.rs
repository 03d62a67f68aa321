//! Late values of CSV.

use super::*;

/// A CSV value of the first rows, and late ones with their results.
const CSV_VALUES: &[(&str, &[(&str, Expected)])] = &[
    (
        "true",
        &[
            ("FALSE", Ok("false")),
            ("", Ok("null")),
            (
                "yes",
                Err("expected Boolean in column `v` as in the first rows, found `yes`"),
            ),
            ("t", Err("found `t`")),
            ("1", Err("found `1`")),
        ],
    ),
    (
        "1",
        &[
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("", Ok("null")),
            (
                "9223372036854775808",
                Err("expected Int64 in column `v` as in the first rows, found `9223372036854775808`"),
            ),
            ("1.5", Err("found `1.5`")),
            ("1e3", Err("found `1e3`")),
            ("007", Err("found `007`")),
            ("+7", Err("found `+7`")),
            ("0x10", Err("found `0x10`")),
            ("NaN", Err("found `NaN`")),
            ("NA", Err("found `NA`")),
            (" 1", Err("found ` 1`")),
            ("\"1\"", Ok("1")),
        ],
    ),
    (
        "1.5",
        &[
            ("2", Ok("2.0")),
            ("-1e-3", Ok("-0.001")),
            ("NaN", Ok("NaN")),
            ("-Infinity", Ok("-inf")),
            ("9007199254740992", Ok("9007199254740992.0")),
            (
                "9007199254740993",
                Err("expected Float64 in column `v` as in the first rows, found `9007199254740993`"),
            ),
            ("18446744073709551615", Err("found `18446744073709551615`")),
            ("1e400", Err("found `1e400`")),
            ("1e-400", Err("found `1e-400`")),
            ("\"1,5\"", Err("found `1,5`")),
        ],
    ),
    (
        "2024-01-01",
        &[
            ("2024-02-29", Ok("2024-02-29")),
            (
                "2024-01-01 05:30:00",
                Err("expected Date32 in column `v` as in the first rows, found `2024-01-01 05:30:00`"),
            ),
            ("2024-01-01 00:00:00", Err("found `2024-01-01 00:00:00`")),
            ("0000-00-00", Err("found `0000-00-00`")),
            ("2023-02-29", Err("found `2023-02-29`")),
            ("2024-1-1", Err("found `2024-1-1`")),
        ],
    ),
    (
        "2024-01-01 00:00:00",
        &[
            ("2024-01-02", Ok("2024-01-02T00:00:00")),
            ("2024-01-01T01:02:03.000", Ok("2024-01-01T01:02:03")),
            (
                "2024-01-01 00:00:00.75",
                Err(
                    "expected Timestamp(s) in column `v` as in the first rows, found `2024-01-01 00:00:00.75`",
                ),
            ),
            ("2024-01-01 00:00:00Z", Err("found `2024-01-01 00:00:00Z`")),
            (
                "2024-01-01 00:00:00+02:00",
                Err("found `2024-01-01 00:00:00+02:00`"),
            ),
            ("2024-01-01 23:59:60", Err("found `2024-01-01 23:59:60`")),
            ("2024-01-01 25:00:00", Err("found `2024-01-01 25:00:00`")),
            ("2024-01-01 00:00", Err("found `2024-01-01 00:00`")),
        ],
    ),
    (
        "2024-01-01 00:00:00.125",
        &[
            ("2024-01-01 00:00:00.5", Ok("2024-01-01T00:00:00.500")),
            ("2024-01-01 00:00:00.1250000000", Ok("2024-01-01T00:00:00.125")),
            (
                "2024-01-01 00:00:00.1255",
                Err("found `2024-01-01 00:00:00.1255`"),
            ),
        ],
    ),
    (
        "2024-01-01 00:00:00.000001",
        &[(
            "2024-01-01 00:00:00.0000001",
            Err("found `2024-01-01 00:00:00.0000001`"),
        )],
    ),
    (
        "2024-01-01 00:00:00.000000001",
        &[
            (
                "2024-01-01 00:00:00.0000000001",
                Err("found `2024-01-01 00:00:00.0000000001`"),
            ),
            ("2262-04-12 00:00:00", Err("found `2262-04-12 00:00:00`")),
            ("1677-09-21 00:00:00", Err("found `1677-09-21 00:00:00`")),
        ],
    ),
    (
        "2024-01-01T00:00:00Z",
        &[
            ("2024-01-01T01:00:00+02:00", Ok("2023-12-31T23:00:00Z")),
            (
                "2024-01-01T00:00:00",
                Err(
                    "expected Timestamp(s, \"UTC\") in column `v` as in the first rows, found `2024-01-01T00:00:00`",
                ),
            ),
            ("2024-01-01", Err("found `2024-01-01`")),
            ("2024-01-01T00:00:00.5Z", Err("found `2024-01-01T00:00:00.5Z`")),
            (
                "2024-01-01T00:00:00 Europe/Berlin",
                Err("found `2024-01-01T00:00:00 Europe/Berlin`"),
            ),
        ],
    ),
    (
        "word",
        &[
            ("1", Ok("1")),
            ("2024-01-01", Ok("2024-01-01")),
            ("007", Ok("007")),
            ("NaN", Ok("NaN")),
        ],
    ),
    ("", &[("1", Ok("1")), ("1.50", Ok("1.50"))]),
];

#[test]
fn late_csv_values_fit_exactly_or_fail_with_their_line() {
    for (early, values) in CSV_VALUES {
        for (value, expected) in *values {
            let text = csv_with([*early; ROWS].into_iter().chain([*value]));
            check("a.csv", text, ROWS + 2, "v", *expected);
        }
    }
}

/// `DuckDB` 2.0.1 and pyarrow 26.0.1 infer the same types, except for values that would lose digits: they read `007` as 7, and
/// large whole numbers as inexact floats.
#[test]
fn csv_columns_with_values_of_different_types_are_text() {
    for values in [
        ["2024-01-01", "0000-00-00"],
        ["2024-01-01", "2024-02-30"],
        ["2024-01-01 00:00:00", "2024-01-01 25:00:00"],
        ["2024-01-01 00:00:00", "2024-01-01 23:59:60"],
        ["2024-01-01 00:00:00", "2024-01-01 00:00:00Z"],
        ["2024-01-01", "2024-01-01 00:00:00Z"],
        ["2024-01-01 00:00:00.000000001", "2500-01-01 00:00:00"],
        ["1", "true"],
        ["1", "007"],
        ["1", "+7"],
        ["1", "0x10"],
        ["1.5", "9007199254740993"],
        ["1.5", "1e400"],
        ["1", "9223372036854775807000001"],
        ["2024-01-01", "1"],
        ["inf", "Nano"],
    ] {
        let table = read(
            "a.csv",
            "select",
            format!("v,k\n{},x\n{},x\n", values[0], values[1]),
        )
        .unwrap();
        assert_eq!(types(&table)[0].1, &DataType::Utf8, "{values:?}");
        assert_eq!(display(&table, 0), values);
    }
}

#[test]
fn csv_columns_have_the_type_that_fits_all_first_rows() {
    let time = |unit| DataType::Timestamp(unit, None);
    let zoned = |unit| DataType::Timestamp(unit, Some("UTC".into()));
    for (values, data_type, expected) in [
        (["1", "2.5"], DataType::Float64, ["1.0", "2.5"]),
        (["1", "NaN"], DataType::Float64, ["1.0", "NaN"]),
        (["", "TRUE"], DataType::Boolean, ["null", "true"]),
        (
            ["2024-01-01", "2024-01-01 01:02:03"],
            time(TimeUnit::Second),
            ["2024-01-01T00:00:00", "2024-01-01T01:02:03"],
        ),
        (
            ["2024-01-01 00:00:00.5", "2024-01-01 00:00:00.0005"],
            time(TimeUnit::Microsecond),
            ["2024-01-01T00:00:00.500", "2024-01-01T00:00:00.000500"],
        ),
        // Trailing zeros count, since other values may need the digits.
        (
            ["2024-01-01T00:00:00.000000", "2024-01-01T00:00:00"],
            time(TimeUnit::Microsecond),
            ["2024-01-01T00:00:00", "2024-01-01T00:00:00"],
        ),
        (
            ["2024-01-01 00:00:00+02", "2024-01-01T00:00:00Z"],
            zoned(TimeUnit::Second),
            ["2023-12-31T22:00:00Z", "2024-01-01T00:00:00Z"],
        ),
        (
            ["2024-01-01 00:00:00.123456789+00:00", "2024-01-01 00:00:00-0130"],
            zoned(TimeUnit::Nanosecond),
            ["2024-01-01T00:00:00.123456789Z", "2024-01-01T01:30:00Z"],
        ),
    ] {
        let table = read(
            "a.csv",
            "select",
            format!("v,k\n{},x\n{},x\n", values[0], values[1]),
        )
        .unwrap();
        assert_eq!(types(&table)[0].1, &data_type, "{values:?}");
        assert_eq!(display(&table, 0), expected);
    }
}
