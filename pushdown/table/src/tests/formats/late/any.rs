//! Random late values: the value equals its text, or it is an error with its line.

use proptest::prelude::*;

use super::*;

/// Numbers as programs write them, and similar texts.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "-?(0|[1-9][0-9]{0,20})([.][0-9]{1,20})?([eE][-+]?[0-9]{1,3})?",
        1 => "-?[1-9][0-9]{14,20}[.]0{1,3}",
        1 => "[-+ 0]?[0-9._xe+-]{1,8}",
        1 => "-?(NaN|nan|inf|Infinity)",
    ]
}

/// Dates and times as programs write them, and some invalid ones.
fn time() -> impl Strategy<Value = String> {
    "20[0-9]{2}-(0[1-9]|1[0-3])-([0-2][0-9]|3[01])([T ]([01][0-9]|2[0-5]):[0-6][0-9]:[0-6][0-9]([.][0-9]{1,10})?Z?)?"
}

/// A decimal number in normal form.
#[derive(PartialEq)]
struct Decimal {
    is_negative: bool,
    /// Digits without zeros at either end. Empty for zero.
    digits: String,
    /// Exponent of the last digit.
    exponent: i64,
}

fn decimal(text: &str) -> Option<Decimal> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (is_negative, mantissa) = mantissa
        .strip_prefix('-')
        .map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).unwrap();
    let exponent = exponent.parse::<i64>().ok()? - i64::try_from(fraction.len()).unwrap() + zeros;
    let significant = significant.trim_start_matches('0');
    match significant {
        "" => Some(Decimal {
            is_negative: false,
            digits: String::new(),
            exponent: 0,
        }),
        _ => Some(Decimal {
            is_negative,
            digits: significant.to_owned(),
            exponent,
        }),
    }
}

/// A date or a time as Arrow displays it.
fn displayed_time(text: &str) -> String {
    let text = text.replace(' ', "T");
    let text = if text.contains('T') {
        text
    } else {
        format!("{text}T00:00:00")
    };
    let (text, zone) = text
        .strip_suffix('Z')
        .map_or((text.as_str(), ""), |rest| (rest, "Z"));
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    };
    format!("{text}{zone}")
}

/// Whether a displayed value equals its text.
fn is_equal(shown: &str, text: &str, is_float: bool) -> bool {
    if shown == text || decimal(shown).is_some_and(|shown| Some(shown) == decimal(text)) {
        return true;
    }
    if is_float {
        // A fraction may be rounded, but not to zero.
        let (shown, value) = (shown.parse::<f64>().unwrap(), text.parse::<f64>().unwrap());
        let is_nearest = shown.to_bits() == value.to_bits() || (shown.is_nan() && value.is_nan());
        let is_number = text.contains(|byte: char| byte.is_ascii_digit());
        // The shortest digits of a large number can differ from those of its text, although it is exact.
        let is_exact = decimal(&format!("{shown:.0}")) == decimal(text);
        let is_rounded = value != 0.0 && value.abs() < 9_007_199_254_740_992.0;
        return is_nearest && (!is_number || is_exact || is_rounded);
    }
    displayed_time(shown) == displayed_time(text)
}

fn check_value(
    name: &str,
    object: String,
    line: usize,
    text: &str,
    is_float: bool,
) -> Result<(), TestCaseError> {
    match read_with(
        name,
        "select(columns=[v])",
        Bytes::from(object),
        Limits::default(),
    ) {
        Ok(table) => {
            let values = display(&table, 0);
            let shown = values.last().unwrap();
            prop_assert!(is_equal(shown, text, is_float), "found {} of {}", shown, text);
        }
        Err(error) => {
            prop_assert_eq!(error.kind(), ErrorKind::Undecodable);
            let position = format!(" in line {line}: ");
            prop_assert!(error.to_string().contains(&position), "{}", error);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn late_csv_values_are_exact_or_errors(
        early in proptest::sample::select(vec![
            "1", "1.5", "2024-01-01", "2024-01-01 00:00:00", "2024-01-01 00:00:00.125", "2024-01-01 00:00:00.123456",
            "2024-01-01 00:00:00.123456789", "2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5Z", "word",
        ]),
        late in prop_oneof![number(), time()],
    ) {
        let mut text = csv_with([early; ROWS]);
        writeln!(text, ",{late}").unwrap();
        check_value("a.csv", text, ROWS + 2, &late, early == "1.5")?;
    }

    #[test]
    fn late_json_values_are_exact_or_errors(
        early in proptest::sample::select(vec!["1", "1.5", "18446744073709551615", "\"word\""]),
        late in number(),
        is_nested: bool,
    ) {
        let value = |text: &str| if is_nested { format!("[{text}]") } else { text.to_owned() };
        let padding = padding();
        let row = format!("{{\"k\": \"{padding}\", \"v\": {}}}\n", value(early));
        let text = format!("{}{{\"v\": {}}}\n", row.repeat(ROWS), value(&late));
        match read_with("a.jsonl", "select(columns=[v])", Bytes::from(text.clone()), Limits::default()) {
            Ok(table) if is_nested => {
                let values = display(&table, 0);
                let shown = values.last().unwrap().trim_matches(['[', ']']);
                prop_assert!(is_equal(shown, late.trim(), early == "1.5"), "found {} of {}", shown, late);
            }
            _ => check_value("a.jsonl", text, ROWS + 1, late.trim(), early == "1.5")?,
        }
    }
}
