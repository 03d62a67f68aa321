//! Converts numbers and texts to numbers, with `DuckDB`'s rounding.

/// Exponents are clamped to this: no 128-bit number has a larger one.
const MAX_EXPONENT: i64 = 100;

/// Parses a text as a multiple of `10^-scale`: digits, with underscores between them, a fraction and an exponent. Halves round
/// away from zero. `None` for any other text, and for a number that is too large.
pub(super) fn parse_scaled(text: &str, scale: i8) -> Option<i128> {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let shift = exponent
        .clamp(-MAX_EXPONENT, MAX_EXPONENT)
        .saturating_add(i64::from(scale))
        .saturating_add(i64::try_from(digit_count(whole)).ok()?);
    // `shift` is the number of digits before the scaled point.
    let mut number: i128 = 0;
    let mut digits_read: i64 = 0;
    let mut is_rounded_up = false;
    for digit in whole.bytes().chain(fraction.bytes()).filter(u8::is_ascii_digit) {
        if digits_read >= shift {
            is_rounded_up = digits_read == shift && digit >= b'5';
            break;
        }
        number = number.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
        digits_read += 1;
    }
    while number != 0 && digits_read < shift {
        number = number.checked_mul(10)?;
        digits_read += 1;
    }
    number = number.checked_add(i128::from(is_rounded_up))?;
    Some(if negative { -number } else { number })
}

fn digit_count(digits: &str) -> usize {
    digits.bytes().filter(u8::is_ascii_digit).count()
}

/// Whether a text has only digits, and underscores between two of them.
fn are_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |index: Option<usize>| {
        index
            .and_then(|index| bytes.get(index))
            .is_some_and(u8::is_ascii_digit)
    };
    bytes.iter().enumerate().all(|(index, byte)| match byte {
        b'_' => is_digit(index.checked_sub(1)) && is_digit(Some(index + 1)),
        digit => digit.is_ascii_digit(),
    })
}

/// Rounds a decimal to an integer. Halves round away from zero.
pub(super) fn round_decimal(value: i128, scale: i8) -> Option<i128> {
    match u32::try_from(scale) {
        Err(_) => value.checked_mul(10_i128.checked_pow(u32::from(scale.unsigned_abs()))?),
        Ok(scale) => match 10_i128.checked_pow(scale) {
            None => Some(0),
            Some(unit) => {
                let (quotient, rest) = (value / unit, value % unit);
                let rounds_away = rest.unsigned_abs() >= unit.unsigned_abs() - rest.unsigned_abs();
                Some(quotient + if rounds_away { rest.signum() } else { 0 })
            }
        },
    }
}

/// Rounds a float to an integer. Halves round to even. `None` for NaN, and for numbers too large for 128 bits.
pub(super) fn round_float(value: f64) -> Option<i128> {
    let rounded = value.round_ties_even();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the next line excludes numbers that are too large"
    )]
    let whole = rounded as i128;
    (rounded.abs() < 1e38).then_some(whole)
}

/// Parses a text as a Boolean.
pub(super) fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim_matches(|character: char| character.is_ascii_whitespace());
    let is_one_of = |words: [&str; 5]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_one_of(["true", "t", "yes", "y", "1"]) {
        return Some(true);
    }
    is_one_of(["false", "f", "no", "n", "0"]).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values of `DuckDB` 2.0.0.
    #[test]
    fn texts_are_parsed_and_rounded() {
        for (text, scale, expected) in [
            ("12", 0, Some(12)),
            (" 12 ", 0, Some(12)),
            ("2.5", 0, Some(3)),
            ("-0.5", 0, Some(-1)),
            ("1.4999", 0, Some(1)),
            ("-1.5", 0, Some(-2)),
            (".5", 0, Some(1)),
            ("5.", 0, Some(5)),
            ("+7", 0, Some(7)),
            ("1e-1", 0, Some(0)),
            ("15e-1", 0, Some(2)),
            ("1E3", 0, Some(1000)),
            ("1_000", 0, Some(1000)),
            ("1e2", 2, Some(10_000)),
            ("1.005", 2, Some(101)),
            ("-1.005", 2, Some(-101)),
            ("0.0004", 3, Some(0)),
            ("99.95", 1, Some(1000)),
            ("1e-99999", 0, Some(0)),
            ("0e99999", 0, Some(0)),
            ("170141183460469231731687303715884105727", 0, Some(i128::MAX)),
            ("170141183460469231731687303715884105728", 0, None),
            ("1e99", 0, None),
            ("1e99999999999999999999", 0, None),
            ("", 0, None),
            ("-", 0, None),
            (".", 0, None),
            ("1e", 0, None),
            ("1.2.3", 0, None),
            ("1__0", 0, None),
            ("_1", 0, None),
            ("abc", 0, None),
            ("nan", 0, None),
        ] {
            assert_eq!(parse_scaled(text, scale), expected, "{text} {scale}");
        }
    }

    #[test]
    fn decimal_halves_round_away_from_zero_and_float_halves_to_even() {
        for (value, scale, expected) in [
            (25, 1, 3),
            (-25, 1, -3),
            (24, 1, 2),
            (-5, 1, -1),
            (4, 1, 0),
            (7, 0, 7),
            (7, -2, 700),
            (i128::MAX, 127, 0),
        ] {
            assert_eq!(round_decimal(value, scale), Some(expected), "{value} {scale}");
        }
        assert_eq!(round_decimal(i128::MAX, -1), None);
        for (value, expected) in [
            (2.5, Some(2)),
            (3.5, Some(4)),
            (-2.5, Some(-2)),
            (-0.5, Some(0)),
            (1e20, Some(100_000_000_000_000_000_000)),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e300, None),
        ] {
            assert_eq!(round_float(value), expected, "{value}");
        }
    }
}
