//! Numbers of a text, which are read without loss or not at all.

/// Whole numbers up to this one are Float64 exactly, and of larger numbers a text may have digits that get lost.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The most significant digits that a Float64 has, all of them written out.
const MAX_DIGITS: usize = 767;

/// A whole number that an Int64 holds.
///
/// `007` and `+7` are no numbers, as in `DuckDB` 2.0: their first characters would get lost.
pub(super) fn int(text: &str) -> Option<i64> {
    is_whole(text).then(|| text.parse().ok()).flatten()
}

/// A whole number that an `UInt64` holds.
pub(super) fn uint(text: &str) -> Option<u64> {
    is_whole(text).then(|| text.parse().ok()).flatten()
}

/// A number as the nearest Float64.
///
/// It has to be finite, zero only if the text's digits are, and from 2^53 on it must have all digits of the text: a fraction
/// may be rounded, a whole number may not. `nan`, `inf` and `infinity` are read in capital and small letters.
pub(super) fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    if ["nan", "inf", "infinity"]
        .iter()
        .any(|word| unsigned.eq_ignore_ascii_case(word))
    {
        return text.parse().ok();
    }
    let mantissa = mantissa(unsigned)?;
    let value: f64 = text.parse().ok()?;
    let size = value.abs();
    let fits = if size == 0.0 {
        !mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte))
    } else {
        size < EXACT || (value.is_finite() && has_all_digits(mantissa, size))
    };
    fits.then_some(value)
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    match digits {
        [_] | [b'1'..=b'9', ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// What is before the exponent of a decimal number without sign; `None` for what is no such number.
fn mantissa(text: &str) -> Option<&str> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(place) => (&text[..place], Some(&text[place + 1..])),
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

/// Whether a number, written with as many digits as `mantissa` has, has these digits.
fn has_all_digits(mantissa: &str, value: f64) -> bool {
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0');
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return false;
    }
    let written = format!("{value:.*e}", digits.len() - 1);
    let written = written
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(|byte| *byte != b'.');
    written.eq(digits.bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whole_numbers_fit_or_are_none() {
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
            assert_eq!(int(text), value, "{text}");
        }
        assert_eq!(uint("18446744073709551615"), Some(u64::MAX));
        assert_eq!(
            (uint("18446744073709551616"), uint("-1"), uint("01")),
            (None, None, None)
        );
    }

    #[test]
    fn floats_are_the_nearest_ones_and_keep_the_digits_of_whole_numbers() {
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
            // As JavaScript writes 2^64.
            ("18446744073709552000", 18_446_744_073_709_551_616.0),
            ("123456789012345680000.0", 123_456_789_012_345_680_000.0),
            ("1e23", 1e23),
            ("1.7976931348623157e308", f64::MAX),
            ("5e-324", 5e-324),
            ("Infinity", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(float(text).map(f64::to_bits), Some(value.to_bits()), "{text}");
        }
        assert!(float("NaN").is_some_and(f64::is_nan) && float("-nan").is_some_and(f64::is_nan));
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
            assert_eq!(float(text), None, "{text}");
        }
        let long = format!("1{}1", "0".repeat(100_000));
        assert_eq!((float(&long), float(&format!("0.{long}"))), (None, Some(0.1)));
    }

    proptest! {
        /// However many digits it is written with, up to all of them.
        #[test]
        fn a_float_that_is_written_is_read(bits: u64, digits in 17..800_usize) {
            let value = f64::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.digits$e}"), format!("{value:?}")] {
                prop_assert_eq!(float(&text).map(f64::to_bits), Some(bits), "{}", text);
            }
        }

        #[test]
        fn a_whole_number_that_is_read_is_the_one_written(number: i128) {
            let text = number.to_string();
            prop_assert_eq!(int(&text), i64::try_from(number).ok());
            prop_assert_eq!(uint(&text), u64::try_from(number).ok());
        }

        #[test]
        #[expect(clippy::cast_possible_truncation, reason = "the range holds it")]
        fn a_float_of_a_whole_number_is_exact(number in -(1_i64 << 60)..1 << 60) {
            if let Some(value) = float(&number.to_string()) {
                // More zeros at the end are JavaScript's, whose floats have 17 digits at most.
                prop_assert!(value as i64 == number || number % 10 == 0);
            }
        }
    }
}
