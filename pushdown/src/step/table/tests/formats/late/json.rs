//! Values of JSON lines.

use super::*;

/// A value of the first rows of JSON, and late ones.
const JSON_VALUES: &[(&str, &[(&str, Late)])] = &[
    (
        "true",
        &[
            ("false", Ok("false")),
            ("null", Ok("null")),
            (
                "1",
                Err("found `1`, expected true or false as in the rows at the start in `v`"),
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
                Err("found `1.5`, expected Int64 as in the rows at the start in `v`"),
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
            ("01", Err("found `01`, expected a number")),
            ("nan", Err("found `nan`, expected a value")),
        ],
    ),
    (
        "18446744073709551615",
        &[
            ("9223372036854775808", Ok("9223372036854775808")),
            ("-1", Err("found `-1`, expected UInt64")),
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
                Err("found `9007199254740993`, expected Float64"),
            ),
            ("1e400", Err("found `1e400`")),
            ("1e-400", Err("found `1e-400`")),
            ("\"NaN\"", Err("found `\"NaN\"`")),
            ("+Infinity", Err("found `+Infinity`, expected a value")),
        ],
    ),
    (
        "\"word\"",
        &[
            ("\"\\u00e9\\n\"", Ok("\u{e9}\n")),
            (
                "1",
                Err("found `1`, expected a string as in the rows at the start in `v`"),
            ),
            ("NaN", Err("found `NaN`")),
            ("true", Err("found `true`")),
            ("{}", Err("found an object")),
            ("\"\\ud800\"", Err("")),
        ],
    ),
    (
        "null",
        &[("\"x\"", Ok("x")), ("1", Err("found `1`, expected a string"))],
    ),
    (
        "[[1]]",
        &[
            ("[[2], null, []]", Ok("[[2], null, []]")),
            (
                "[[1.5]]",
                Err("found `1.5`, expected Int64 as in the rows at the start in `v`"),
            ),
            ("[1]", Err("found `1`, expected a list")),
            ("1", Err("found `1`, expected a list")),
        ],
    ),
    (
        "{\"x\": [{\"y\": 1}], \"z\": \"a\"}",
        &[
            ("{\"z\": null}", Ok("{x: null, z: null}")),
            ("{}", Ok("{x: null, z: null}")),
            (
                "{\"x\": [{\"y\": 1.5}]}",
                Err("found `1.5`, expected Int64 as in the rows at the start in `y`"),
            ),
            (
                "{\"x\": [{\"y\": 1, \"new\": 2}]}",
                Err("found the name `new`, which no row at the start has"),
            ),
            (
                "{\"x\": [{\"y\": 1, \"y\": 2}]}",
                Err("found the name `y` twice in one object"),
            ),
            (
                "{\"x\": [], \"z\": 1}",
                Err("found `1`, expected a string as in the rows at the start in `z`"),
            ),
            ("[1]", Err("found a list, expected an object")),
        ],
    ),
    (
        "{}",
        &[
            ("{}", Ok("{}")),
            ("null", Ok("null")),
            ("{\"x\": 1}", Err("found the name `x`")),
        ],
    ),
];

#[test]
fn late_values_of_json_fit_without_loss_or_are_errors_with_their_line() {
    let padding = padding();
    for (early, values) in JSON_VALUES {
        let rows = format!("{{\"k\": \"{padding}\", \"v\": {early}}}\n").repeat(ROWS);
        for (value, late) in *values {
            check(
                "a.jsonl",
                format!("{rows}{{\"v\": {value}}}\n"),
                ROWS + 1,
                "v",
                *late,
            );
        }
        let twice = format!("{rows}{{\"v\": {early}, \"v\": {early}}}\n");
        check(
            "a.jsonl",
            twice,
            ROWS + 1,
            "v",
            Err("found the name `v` twice in one object"),
        );
    }
}
