//! Late values of JSON lines.

use super::*;

/// A JSON value of the first rows, and late ones with their results.
const JSON_VALUES: &[(&str, &[(&str, Expected)])] = &[
    (
        "true",
        &[
            ("false", Ok("false")),
            ("null", Ok("null")),
            (
                "1",
                Err("expected true or false as in the first rows, found `1` in column `v`"),
            ),
            ("\"true\"", Err("found `\"true\"`")),
        ],
    ),
    (
        "1",
        &[
            ("-9223372036854775808", Ok("-9223372036854775808")),
            ("2.000", Ok("2")),
            (
                "1.5",
                Err("expected Int64 as in the first rows, found `1.5` in column `v`"),
            ),
            ("1.00000000000000000001", Err("found `1.00000000000000000001`")),
            ("1e3", Err("found `1e3`")),
            ("9223372036854775808", Err("found `9223372036854775808`")),
            ("NaN", Err("found `NaN`")),
            ("-Infinity", Err("found `-Infinity`")),
            ("\"1\"", Err("found `\"1\"`")),
            ("true", Err("found `true`")),
            ("[1]", Err("found a list")),
            ("{\"x\": 1}", Err("found an object")),
            ("01", Err("expected a number, found `01`")),
            ("nan", Err("expected a value, found `nan`")),
        ],
    ),
    (
        "18446744073709551615",
        &[
            ("9223372036854775808", Ok("9223372036854775808")),
            ("-1", Err("expected UInt64 as in the first rows, found `-1`")),
            ("18446744073709551616", Err("found `18446744073709551616`")),
        ],
    ),
    (
        "0.5",
        &[
            ("2", Ok("2.0")),
            ("NaN", Ok("NaN")),
            ("Infinity", Ok("inf")),
            ("-Infinity", Ok("-inf")),
            (
                "9007199254740993",
                Err("expected Float64 as in the first rows, found `9007199254740993`"),
            ),
            ("1e400", Err("found `1e400`")),
            ("1e-400", Err("found `1e-400`")),
            ("\"NaN\"", Err("found `\"NaN\"`")),
            ("+Infinity", Err("expected a value, found `+Infinity`")),
        ],
    ),
    (
        "\"word\"",
        &[
            ("\"\\u00e9\\n\"", Ok("\u{e9}\n")),
            (
                "1",
                Err("expected a string as in the first rows, found `1` in column `v`"),
            ),
            ("NaN", Err("found `NaN`")),
            ("true", Err("found `true`")),
            ("{}", Err("found an object")),
            ("\"\\ud800\"", Err("")),
        ],
    ),
    (
        "null",
        &[
            ("\"x\"", Ok("x")),
            ("1", Err("expected a string as in the first rows, found `1`")),
        ],
    ),
    (
        "[[1]]",
        &[
            ("[[2], null, []]", Ok("[[2], null, []]")),
            (
                "[[1.5]]",
                Err("expected Int64 as in the first rows, found `1.5` in column `v`"),
            ),
            ("[1]", Err("expected a list as in the first rows, found `1`")),
            ("1", Err("expected a list as in the first rows, found `1`")),
        ],
    ),
    (
        "{\"x\": [{\"y\": 1}], \"z\": \"a\"}",
        &[
            ("{\"z\": null}", Ok("{x: null, z: null}")),
            ("{}", Ok("{x: null, z: null}")),
            (
                "{\"x\": [{\"y\": 1.5}]}",
                Err("expected Int64 as in the first rows, found `1.5` in column `y`"),
            ),
            (
                "{\"x\": [{\"y\": 1, \"new\": 2}]}",
                Err("expected the names of the first rows, found `new`"),
            ),
            (
                "{\"x\": [{\"y\": 1, \"y\": 2}]}",
                Err("expected unique names in an object, found `y` twice"),
            ),
            (
                "{\"x\": [], \"z\": 1}",
                Err("expected a string as in the first rows, found `1` in column `z`"),
            ),
            (
                "[1]",
                Err("expected an object as in the first rows, found a list"),
            ),
        ],
    ),
    (
        "{}",
        &[
            ("{}", Ok("{}")),
            ("null", Ok("null")),
            (
                "{\"x\": 1}",
                Err("expected the names of the first rows, found `x`"),
            ),
        ],
    ),
];

#[test]
fn late_json_values_fit_exactly_or_fail_with_their_line() {
    let padding = padding();
    for (early, values) in JSON_VALUES {
        let rows = format!("{{\"k\": \"{padding}\", \"v\": {early}}}\n").repeat(ROWS);
        for (value, expected) in *values {
            check(
                "a.jsonl",
                format!("{rows}{{\"v\": {value}}}\n"),
                ROWS + 1,
                "v",
                *expected,
            );
        }
        let duplicate = format!("{rows}{{\"v\": {early}, \"v\": {early}}}\n");
        check(
            "a.jsonl",
            duplicate,
            ROWS + 1,
            "v",
            Err("expected unique names in an object, found `v` twice"),
        );
    }
}
