//! Parses dates and times of a text. Values that would lose information are rejected.

use arrow_array::types::Date32Type;
use arrow_cast::parse::Parser as _;
use arrow_schema::TimeUnit;

const DAY_SECONDS: i64 = 86_400;

/// A date, or a date and a time of day: `2024-02-29`, `2024-02-29 01:02:03.5`, `2024-02-29T01:02:03+02:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DateTime {
    /// Seconds since 1970, in UTC if there is a zone.
    seconds: i64,
    nanoseconds: u32,
    /// Number of digits in the text's fraction of a second.
    digits: usize,
    pub(super) kind: DateTimeKind,
}

/// The parts that a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DateTimeKind {
    Date,
    /// A date and a time of day without a zone.
    Local,
    /// A date and a time of day with an offset from UTC.
    Zoned,
}

impl DateTime {
    /// Parses a text. `None` for an invalid day or time of day. Leap seconds are invalid, as in pyarrow and `DuckDB`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let is_date = date.bytes().enumerate().all(|(index, byte)| match index {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        let days = if is_date {
            Date32Type::parse(date)?
        } else {
            return None;
        };
        let midnight = i64::from(days) * DAY_SECONDS;
        if rest.is_empty() {
            return Some(Self {
                seconds: midnight,
                nanoseconds: 0,
                digits: 0,
                kind: DateTimeKind::Date,
            });
        }
        let (clock, rest) = rest.strip_prefix([' ', 'T'])?.split_at_checked(8)?;
        let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else {
            return None;
        };
        let seconds = midnight
            + two_digits_below(24, [h1, h2])? * 3600
            + two_digits_below(60, [m1, m2])? * 60
            + two_digits_below(60, [s1, s2])?;
        let (nanoseconds, digits, zone) = match rest.strip_prefix('.') {
            Some(rest) => {
                let (fraction, rest) = Fraction::parse(rest)?;
                (fraction.nanoseconds, fraction.digits, rest)
            }
            None => (0, 0, rest),
        };
        let (offset, kind) = if zone.is_empty() {
            (0, DateTimeKind::Local)
        } else {
            (parse_offset(zone)?, DateTimeKind::Zoned)
        };
        Some(Self {
            seconds: seconds - offset,
            nanoseconds,
            digits,
            kind,
        })
    }

    /// Days since 1970. `None` if there is a time of day.
    pub(super) fn days(self) -> Option<i32> {
        let is_date = self.kind == DateTimeKind::Date;
        is_date
            .then(|| i32::try_from(self.seconds / DAY_SECONDS).ok())
            .flatten()
    }

    /// Whether the unit has at least as many fractional digits as the text. Trailing zeros count: other values of the column
    /// probably use these digits.
    pub(super) const fn has_digits_of(self, unit: TimeUnit) -> bool {
        let digits = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            // Digits after the ninth are zeros.
            TimeUnit::Nanosecond => usize::MAX,
        };
        self.digits <= digits
    }

    /// Units since 1970. `None` if the unit is too coarse for the fraction or too fine for the year.
    pub(super) fn units(self, unit: TimeUnit) -> Option<i64> {
        let per_second = match unit {
            TimeUnit::Second => 1,
            TimeUnit::Millisecond => 1_000,
            TimeUnit::Microsecond => 1_000_000,
            TimeUnit::Nanosecond => 1_000_000_000,
        };
        let nanoseconds = i64::from(self.nanoseconds);
        let unit_nanoseconds = 1_000_000_000 / per_second;
        if nanoseconds % unit_nanoseconds != 0 {
            return None;
        }
        let units =
            i128::from(self.seconds) * i128::from(per_second) + i128::from(nanoseconds / unit_nanoseconds);
        i64::try_from(units).ok()
    }
}

/// A number of two digits that is less than `limit`.
fn two_digits_below(limit: i64, digits: [u8; 2]) -> Option<i64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let [tens, ones] = digits.map(|digit| i64::from(digit - b'0'));
    Some(tens * 10 + ones).filter(|number| *number < limit)
}

/// A fraction of a second.
struct Fraction {
    nanoseconds: u32,
    /// Number of digits in the text.
    digits: usize,
}

impl Fraction {
    /// Parses the digits at the start of a text, and returns the rest of it. Only zeros may follow the ninth digit.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let length = text.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = text.split_at(length);
        let significant = digits.trim_end_matches('0');
        if digits.is_empty() || significant.len() > 9 {
            return None;
        }
        let padded = significant.bytes().chain(std::iter::repeat(b'0')).take(9);
        let fraction = Self {
            nanoseconds: padded.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')),
            digits: length,
        };
        Some((fraction, rest))
    }
}

/// Seconds that a zone is ahead of UTC: `Z`, `UTC`, `+02`, `+0200`, `+02:00`, with an optional space before it.
fn parse_offset(zone: &str) -> Option<i64> {
    let zone = zone.strip_prefix(' ').unwrap_or(zone);
    if matches!(zone, "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, hours, minutes) = match *zone.as_bytes() {
        [sign, h1, h2] => (sign, [h1, h2], [b'0', b'0']),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, [h1, h2], [m1, m2]),
        _ => return None,
    };
    let seconds = two_digits_below(24, hours)? * 3600 + two_digits_below(60, minutes)? * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(i64, u32, DateTimeKind)> {
        DateTime::parse(text).map(|time| (time.seconds, time.nanoseconds, time.kind))
    }

    #[test]
    fn dates_and_times_are_parsed() {
        for (text, expected) in [
            ("1970-01-02", (86_400, 0, DateTimeKind::Date)),
            ("1969-12-31T23:59:59", (-1, 0, DateTimeKind::Local)),
            ("1970-01-01 00:00:01.5", (1, 500_000_000, DateTimeKind::Local)),
            ("1970-01-01 00:00:01.000000001", (1, 1, DateTimeKind::Local)),
            ("1970-01-01 00:00:01.0000000010000", (1, 1, DateTimeKind::Local)),
            ("1970-01-01T02:00:00+02:00", (0, 0, DateTimeKind::Zoned)),
            (
                "1970-01-01T02:00:00.25+0200",
                (0, 250_000_000, DateTimeKind::Zoned),
            ),
            ("1969-12-31 22:30:00-01:30", (0, 0, DateTimeKind::Zoned)),
            ("1970-01-01 00:00:00Z", (0, 0, DateTimeKind::Zoned)),
            ("1970-01-01 00:00:00 UTC", (0, 0, DateTimeKind::Zoned)),
            ("1970-01-01 01:00:00 +01", (0, 0, DateTimeKind::Zoned)),
        ] {
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn invalid_dates_and_times_are_rejected() {
        for text in [
            "",
            "2024",
            "0000-00-00",
            "2023-02-29",
            "2024-13-01",
            "2024-1-1",
            "20240101",
            "2024/01/01",
            "+024-01-01",
            "2024-01-01x",
            "2024-01-01 ",
            "2024-01-01 1",
            "2024-01-01 24:00:00",
            "2024-01-01 25:00:00",
            "2024-01-01 00:60:00",
            "2024-01-01 23:59:60",
            "2024-01-01 00:00",
            "2024-01-01 00:00:00.",
            "2024-01-01 00:00:00.0000000001",
            "2024-01-01 00:00:00,5",
            "2024-01-01  00:00:00",
            "2024-01-01 00:00:00+",
            "2024-01-01 00:00:00+2",
            "2024-01-01 00:00:00+24:00",
            "2024-01-01 00:00:00+02:60",
            "2024-01-01 00:00:00 Europe/Berlin",
            "2024-01-01 00:00:00ZZ",
            "2024-01-0é",
            "2024-01-01 00:00:0é",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn units_are_exact_or_rejected() {
        let units = |text: &str, unit| DateTime::parse(text).and_then(|time| time.units(unit));
        assert_eq!(units("1969-12-31 23:59:59.75", TimeUnit::Second), None);
        assert_eq!(units("1969-12-31 23:59:59.75", TimeUnit::Millisecond), Some(-250));
        assert_eq!(units("1970-01-01 00:00:00.000", TimeUnit::Second), Some(0));
        assert_eq!(
            units("2262-04-11 23:47:16.854775807", TimeUnit::Nanosecond),
            Some(i64::MAX)
        );
        assert_eq!(units("2262-04-11 23:47:16.854775808", TimeUnit::Nanosecond), None);
        assert_eq!(
            units("1677-09-21 00:12:43.145224192", TimeUnit::Nanosecond),
            Some(i64::MIN)
        );
        assert_eq!(
            units("9999-12-31 23:59:59", TimeUnit::Microsecond),
            Some(253_402_300_799_000_000)
        );
        assert_eq!(DateTime::parse("1969-12-31").and_then(DateTime::days), Some(-1));
        assert_eq!(
            DateTime::parse("1970-01-01 00:00:00").and_then(DateTime::days),
            None
        );
    }
}
