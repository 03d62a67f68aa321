//! Parses numbers of a text. Values that would lose information are rejected.

/// Float64 is exact for whole numbers up to this one (2^53). Larger ones may lose digits of the text.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
/// Maximum number of significant digits of a Float64 in full decimal notation.
const MAX_DIGITS: usize = 767;

/// Parses a whole number that fits in Int64.
///
/// `007` and `+7` are rejected, as in `DuckDB` 2.0: their first characters would be lost.
pub(super) fn parse_int(text: &str) -> Option<i64> {
    is_whole_number(text).then(|| text.parse().ok()).flatten()
}

/// Parses a whole number that fits in `UInt64`.
pub(super) fn parse_uint(text: &str) -> Option<u64> {
    is_whole_number(text).then(|| text.parse().ok()).flatten()
}

/// Parses a number as the nearest Float64.
///
/// The value must be finite, may be zero only if all digits of the text are, and must have all digits of the text from 2^53 on: a
/// fraction may be rounded, a whole number may not. `nan`, `inf` and `infinity` are case-insensitive.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if ["nan", "inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return text.parse().ok();
    }
    let mantissa = mantissa(unsigned)?;
    let value: f64 = text.parse().ok()?;
    let magnitude = value.abs();
    let fits = if magnitude == 0.0 {
        !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
    } else {
        magnitude < MAX_EXACT || (value.is_finite() && has_all_digits(mantissa, magnitude))
    };
    fits.then_some(value)
}

fn is_whole_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [_] | [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// The part before the exponent of an unsigned decimal number. `None` if the text is not one.
fn mantissa(text: &str) -> Option<&str> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(index) => (&text[..index], Some(&text[index + 1..])),
        None => (text, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(exponent) = exponent {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if digits.is_empty() || !is_digits(digits) {
            return None;
        }
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = is_digits(whole)
        && is_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && (whole.len() < 2 || !whole.starts_with('0'));
    is_number.then_some(mantissa)
}

/// Whether `value`, formatted with as many digits as `mantissa` has, has the same digits.
fn has_all_digits(mantissa: &str, value: f64) -> bool {
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0');
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return false;
    }
    let formatted = format!("{value:.*e}", digits.len() - 1);
    let formatted = formatted
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(|byte| *byte != b'.');
    formatted.eq(digits.bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_rejected() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("7", Some(7)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("007", None),
            ("-01", None),
            ("+7", None),
            ("", None),
            ("-", None),
            ("1.0", None),
            ("1e3", None),
            ("0x10", None),
            ("1_000", None),
            (" 1", None),
            ("٣", None),
        ] {
            assert_eq!(parse_int(text), value, "{text}");
        }
        assert_eq!(parse_uint("18446744073709551615"), Some(u64::MAX));
        assert_eq!(
            (
                parse_uint("18446744073709551616"),
                parse_uint("-1"),
                parse_uint("01")
            ),
            (None, None, None)
        );
    }

    #[test]
    fn floats_are_nearest_and_keep_digits_of_whole_numbers() {
        for (text, value) in [
            ("0", 0.0),
            ("-0.0e9", -0.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("-1E+2", -100.0),
            ("33.3333333333333333", 33.333_333_333_333_336),
            ("9007199254740992", 9_007_199_254_740_992.0),
            ("-9007199254740994", -9_007_199_254_740_994.0),
            ("18446744073709551616", 18_446_744_073_709_551_616.0),
            // 2^64 as JavaScript formats it.
            ("18446744073709552000", 18_446_744_073_709_551_616.0),
            ("123456789012345680000.0", 123_456_789_012_345_680_000.0),
            ("1e23", 1e23),
            ("1.7976931348623157e308", f64::MAX),
            ("5e-324", 5e-324),
            ("Infinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(
                parse_float(text).map(f64::to_bits),
                Some(value.to_bits()),
                "{text}"
            );
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan) && parse_float("-nan").is_some_and(f64::is_nan));
        for text in [
            "9007199254740993",
            "-9007199254740993.0",
            "18446744073709551615",
            "12345678901234567890.5",
            "1e400",
            "1e-400",
            "0.1e-330",
            "01",
            "00.5",
            "+1",
            "",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            "1.2.3",
            "1,5",
            "0x1p3",
            "1f",
            "+inf",
            "infinit",
            "١",
        ] {
            assert_eq!(parse_float(text), None, "{text}");
        }
        let long = format!("1{}1", "0".repeat(100_000));
        assert_eq!(
            (parse_float(&long), parse_float(&format!("0.{long}"))),
            (None, Some(0.1))
        );
    }

    proptest! {
        /// With any number of digits from 17 to all of them.
        #[test]
        fn formatted_floats_are_parsed_exactly(bits: u64, digits in 17..800_usize) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.digits$e}"), format!("{value:?}")] {
                prop_assert_eq!(parse_float(&text).map(f64::to_bits), Some(bits), "{}", text);
            }
        }

        #[test]
        fn formatted_whole_numbers_are_parsed_exactly(number: i128) {
            let text = number.to_string();
            prop_assert_eq!(parse_int(&text), i64::try_from(number).ok());
            prop_assert_eq!(parse_uint(&text), u64::try_from(number).ok());
        }

        #[test]
        #[expect(clippy::cast_possible_truncation, reason = "the range holds it")]
        fn floats_of_whole_numbers_are_exact(number in -(1_i64 << 60)..1 << 60) {
            if let Some(value) = parse_float(&number.to_string()) {
                // JavaScript formats floats with at most 17 digits, and fills with zeros.
                prop_assert!(value as i64 == number || number % 10 == 0);
            }
        }
    }
}
