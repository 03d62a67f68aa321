//! Parses texts of dates, times, timestamps and UUIDs as `DuckDB` 2.0 does (`Date::TryConvertDate`,
//! `Time::TryConvertInternal`, `Timestamp::TryConvertTimestampTZ`).

use super::unit::{DAY, SECOND};

/// A parsed timestamp or date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Instant<'a> {
    /// Nanoseconds since 1970 in local time, and the time zone; UTC by default.
    Local(i128, TimeZone<'a>),
    Infinity {
        is_negative: bool,
    },
}

/// The time zone of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeZone<'a> {
    /// Nanoseconds ahead of UTC.
    Offset(i128),
    Named(&'a str),
}

/// The unparsed rest of a text.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn take(&mut self, letter: char) -> bool {
        let rest = self.0.strip_prefix(letter);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn skip_spaces(&mut self) {
        self.0 = self
            .0
            .trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    }

    fn digits(&mut self, max_count: usize) -> Option<&'a str> {
        let digits = self
            .0
            .bytes()
            .take(max_count)
            .take_while(u8::is_ascii_digit)
            .count();
        let (digits, rest) = self
            .0
            .split_at_checked(digits)
            .filter(|(digits, _)| !digits.is_empty())?;
        self.0 = rest;
        Some(digits)
    }

    /// A number of one or two digits.
    fn two_digits(&mut self) -> Option<i128> {
        self.digits(2)?.parse().ok()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Days since 1970-01-01 of a Gregorian date (Hinnant, `days_from_civil`).
fn days_from_date(year: i128, month: i128, day: i128) -> Option<i128> {
    let is_leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let month_days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=month_days).contains(&day).then_some(())?;
    let year = year - i128::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468)
}

/// Parses a date such as `2024-02-28` to days since 1970. Both separators are the same one of `-`, `/`, `\` and a space; ` (BC)`
/// can follow.
fn parse_date(cursor: &mut Cursor<'_>) -> Option<i128> {
    cursor.skip_spaces();
    let is_negative = cursor.take('-');
    // No column type can represent longer years.
    let year: i128 = cursor.digits(9)?.parse().ok()?;
    let separator = ['-', '/', '\\', ' ']
        .into_iter()
        .find(|letter| cursor.take(*letter))?;
    let month = cursor.two_digits()?;
    cursor.take(separator).then_some(())?;
    let day = cursor.two_digits()?;
    let mut year = if is_negative { -year } else { year };
    if let Some(after) = cursor.0.strip_prefix(" (BC)") {
        (year > 0).then_some(())?;
        cursor.0 = after;
        year = 1 - year;
    }
    days_from_date(year, month, day)
}

/// Parses a time of day to nanoseconds: `7:05`, `07:05:09` or `07:05:09.25`. Digits below a nanosecond are ignored.
fn parse_time(cursor: &mut Cursor<'_>) -> Option<i128> {
    cursor.skip_spaces();
    let hour = cursor.two_digits()?;
    cursor.take(':').then_some(())?;
    let minute = cursor.two_digits()?;
    let (mut second, mut nanosecond) = (0, 0);
    if cursor.take(':') && !cursor.is_empty() {
        second = cursor.two_digits()?;
        if cursor.take('.') {
            let digits = cursor.digits(usize::MAX).unwrap_or_default();
            let nine_digits = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
            nanosecond = nine_digits.fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
        }
    }
    let time = (hour * 3_600 + minute * 60 + second) * SECOND + nanosecond;
    (minute < 60 && second < 60 && time <= DAY).then_some(time)
}

/// Parses the time zone after a time: `Z`, `+02`, `-02:30`, `+0230`, ` UTC` or another name.
fn parse_time_zone<'a>(cursor: &mut Cursor<'a>) -> Option<TimeZone<'a>> {
    if cursor.take('Z') || cursor.is_empty() {
        return cursor.is_empty().then_some(TimeZone::Offset(0));
    }
    let is_spaced = cursor.take(' ');
    cursor.skip_spaces();
    let sign = if cursor.take('+') {
        1
    } else if cursor.take('-') {
        -1
    } else {
        let is_name = is_spaced
            && cursor
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte))
            && !cursor.is_empty();
        let name = is_name.then_some(std::mem::take(&mut cursor.0))?;
        let is_utc = ["utc", "gmt", "z"]
            .iter()
            .any(|utc| name.eq_ignore_ascii_case(utc));
        return Some(if is_utc {
            TimeZone::Offset(0)
        } else {
            TimeZone::Named(name)
        });
    };
    let mut seconds = cursor.two_digits()? * 3_600;
    for unit in [60, 1] {
        if cursor.take(':') || cursor.0.starts_with(|letter: char| letter.is_ascii_digit()) {
            seconds += cursor.two_digits()? * unit;
        }
    }
    cursor
        .is_empty()
        .then_some(TimeZone::Offset(sign * seconds * SECOND))
}

/// Parses a date, or a date and a time.
pub(super) fn parse_instant(text: &str) -> Option<Instant<'_>> {
    let trimmed = text.trim_start();
    for (name, instant) in [
        ("infinity", Instant::Infinity { is_negative: false }),
        ("-infinity", Instant::Infinity { is_negative: true }),
        ("epoch", Instant::Local(0, TimeZone::Offset(0))),
    ] {
        if trimmed.eq_ignore_ascii_case(name) {
            return Some(instant);
        }
    }
    let mut cursor = Cursor(text);
    let midnight = parse_date(&mut cursor)? * DAY;
    if cursor.is_empty() {
        return Some(Instant::Local(midnight, TimeZone::Offset(0)));
    }
    (cursor.take('T') || cursor.take(' ')).then_some(())?;
    let time = parse_time(&mut cursor)?;
    let time_zone = parse_time_zone(&mut cursor)?;
    Some(Instant::Local(midnight + time, time_zone))
}

/// Parses a time of day to nanoseconds. Ignores a date before it and a time zone after it.
pub(super) fn parse_time_of_day(text: &str) -> Option<i128> {
    let mut cursor = Cursor(text);
    let mut dated = Cursor(text);
    if parse_date(&mut dated).is_some() && (dated.take('T') || dated.take(' ')) {
        cursor = dated;
    }
    let time = parse_time(&mut cursor)?;
    parse_time_zone(&mut cursor)?;
    Some(time)
}

/// Parses a UUID: 32 hexadecimal digits, optionally with hyphens anywhere and braces around them.
pub(super) fn parse_uuid(text: &str) -> Option<u128> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let digits = inner.bytes().filter(|byte| *byte != b'-');
    let mut count = 0;
    let number = digits.into_iter().try_fold(0_u128, |number, digit| {
        let digit = char::from(digit).to_digit(16)?;
        count += 1;
        (count <= 32).then_some(number << 4 | u128::from(digit))
    })?;
    (count == 32).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc_nanoseconds(text: &str) -> Option<i128> {
        match parse_instant(text)? {
            Instant::Local(local, TimeZone::Offset(offset)) => Some(local - offset),
            _ => None,
        }
    }

    /// Expected values of `DuckDB` 2.0.1 for `timestamptz '...'`.
    #[test]
    fn timestamps_are_parsed_as_in_duckdb() {
        let midnight = 1_704_067_200 * SECOND;
        let clock =
            |hour: i128, minute: i128, second: i128| midnight + (hour * 3600 + minute * 60 + second) * SECOND;
        for (text, expected) in [
            ("2024-01-01", midnight),
            (" 2024-01-01", midnight),
            ("2024-1-1", midnight),
            ("02024-01-01", midnight),
            ("2024/01/01", midnight),
            ("2024 01 01", midnight),
            ("2024-01-01 10:11", clock(10, 11, 0)),
            ("2024-01-01  10:11", clock(10, 11, 0)),
            ("2024-01-01T10:11", clock(10, 11, 0)),
            ("2024-01-01 1:2:3", clock(1, 2, 3)),
            ("2024-01-01 10:11:", clock(10, 11, 0)),
            ("2024-01-01 10:11:12.", clock(10, 11, 12)),
            ("2024-01-01 00:00:00.123456789", midnight + 123_456_789),
            ("2024-01-01 00:00:00.1234567899", midnight + 123_456_789),
            ("2024-01-01 00:00:00.5Z", midnight + 500_000_000),
            ("2024-01-01 24:00:00", clock(24, 0, 0)),
            ("2024-01-01 02:00:00+02", midnight),
            ("2024-01-01 02:00:00 +02:00", midnight),
            ("2024-01-01 10:11:12+0230", clock(7, 41, 12)),
            ("2024-01-01 10:11:12-02:30:15", clock(12, 41, 27)),
            ("2024-01-01 02:30:00 utc", clock(2, 30, 0)),
            ("epoch", 0),
            ("EPOCH", 0),
            ("1969-12-31 23:59:59.999999999", -1),
            ("0001-01-01", -62_135_596_800 * SECOND),
            ("0000-01-01", -62_167_219_200 * SECOND),
            ("0001-01-01 (BC)", -62_167_219_200 * SECOND),
            ("-0044-03-15", -63_549_360_000 * SECOND),
            ("0044-03-15 (BC)", -63_517_824_000 * SECOND),
            (
                "9999-12-31 23:59:59.999999",
                253_402_300_799 * SECOND + 999_999_000,
            ),
            ("10000-01-01", 253_402_300_800 * SECOND),
            ("294247-01-10 04:00:54.775806", 9_223_372_036_854_775_806_000),
        ] {
            assert_eq!(utc_nanoseconds(text), Some(expected), "{text}");
        }
        let named = Instant::Local(clock(2, 30, 0), TimeZone::Named("America/New_York"));
        assert_eq!(parse_instant("2024-01-01 02:30:00 America/New_York"), Some(named));
        assert_eq!(
            parse_instant("Infinity"),
            Some(Instant::Infinity { is_negative: false })
        );
        assert_eq!(
            parse_instant("-infinity"),
            Some(Instant::Infinity { is_negative: true })
        );
        for text in [
            "",
            "abc",
            "2024-01-01 ",
            "2024-01-01 10",
            "2024-01-01 23:59:60",
            "20240101",
            "2024-13-01",
            "2024-02-30",
            "2023-02-29",
            "2024.01.01",
            "2024-01/01",
            "2024-001-01",
            "2024-01-01+02",
            "2024-01-01 UTC",
            "2024-01-01 10:11:12,5",
            "2024-01-01 24:00:01",
            "2024-01-01 10:11 (BC)",
            "2024-01-01 10:11:12+",
            "2024-01-01é",
            "99999999999999999999-01-01",
        ] {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_parsed_as_in_duckdb() {
        let clock = |hour: i128, minute: i128, second: i128| (hour * 3600 + minute * 60 + second) * SECOND;
        for (text, expected) in [
            ("12:00", clock(12, 0, 0)),
            (" 10:11", clock(10, 11, 0)),
            ("1:2:3", clock(1, 2, 3)),
            ("24:00:00", clock(24, 0, 0)),
            ("12:34:56.123456789", clock(12, 34, 56) + 123_456_789),
            ("2024-01-01 10:11:12", clock(10, 11, 12)),
            ("10:11:12Z", clock(10, 11, 12)),
            ("10:11:12.5+01:00", clock(10, 11, 12) + 500_000_000),
        ] {
            assert_eq!(parse_time_of_day(text), Some(expected), "{text}");
        }
        for text in ["12", "24:00:00.1", "10:60", "10:11:60", "", "noon"] {
            assert_eq!(parse_time_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn uuids_are_parsed_as_in_duckdb() {
        let expected = Some(0x550e_8400_e29b_41d4_a716_4466_5544_0000);
        for text in [
            "550e8400-e29b-41d4-a716-446655440000",
            "550E8400E29B41D4A716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
        ] {
            assert_eq!(parse_uuid(text), expected, "{text}");
        }
        for text in [
            "abc",
            "",
            "550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-4466554400000",
            "{550e8400e29b41d4a716446655440000",
        ] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }
}
