//! Texts of dates, times and timestamps, as `DuckDB` 2.0 reads them (`Date::TryConvertDate`, `Time::TryConvertInternal`,
//! `Timestamp::TryConvertTimestampTZ`), and of UUIDs.

use super::unit::{DAY, SECOND};

/// What a text of a point in time says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moment<'a> {
    /// Nanoseconds since 1970 by the clock of the zone, which is UTC where none is named.
    At(i128, Zone<'a>),
    Infinity {
        is_negative: bool,
    },
}

/// The zone of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone<'a> {
    /// Nanoseconds ahead of UTC.
    Ahead(i128),
    Named(&'a str),
}

/// The letters of such a text that are left.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take(&mut self, letter: char) -> bool {
        let rest = self.0.strip_prefix(letter);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn spaces(&mut self) {
        self.0 = self
            .0
            .trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    }

    fn digits(&mut self, most: usize) -> Option<&'a str> {
        let digits = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self
            .0
            .split_at_checked(digits)
            .filter(|(digits, _)| !digits.is_empty())?;
        self.0 = rest;
        Some(digits)
    }

    /// A number of one digit or two.
    fn short(&mut self) -> Option<i128> {
        self.digits(2)?.parse().ok()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Days since 1970-01-01 of a day of the Gregorian calendar (Hinnant, `days_from_civil`).
fn days(year: i128, month: i128, day: i128) -> Option<i128> {
    let is_leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    let length = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=length).contains(&day).then_some(())?;
    let year = year - i128::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// A date: `2024-02-28`, with the same one of `-`, `/`, `\` and a space twice, and ` (BC)` behind it.
fn date(rest: &mut Rest<'_>) -> Option<i128> {
    rest.spaces();
    let is_negative = rest.take('-');
    // More have no place in any column.
    let year: i128 = rest.digits(9)?.parse().ok()?;
    let separator = ['-', '/', '\\', ' ']
        .into_iter()
        .find(|letter| rest.take(*letter))?;
    let month = rest.short()?;
    rest.take(separator).then_some(())?;
    let day = rest.short()?;
    let mut year = if is_negative { -year } else { year };
    if let Some(behind) = rest.0.strip_prefix(" (BC)") {
        (year > 0).then_some(())?;
        rest.0 = behind;
        year = 1 - year;
    }
    days(year, month, day)
}

/// Nanoseconds of a day: `7:05`, `07:05:09` or `07:05:09.25`. Digits below a nanosecond are cut off.
fn time(rest: &mut Rest<'_>) -> Option<i128> {
    rest.spaces();
    let hour = rest.short()?;
    rest.take(':').then_some(())?;
    let minute = rest.short()?;
    let (mut second, mut nanosecond) = (0, 0);
    if rest.take(':') && !rest.is_empty() {
        second = rest.short()?;
        if rest.take('.') {
            let digits = rest.digits(usize::MAX).unwrap_or_default();
            let places = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
            nanosecond = places.fold(0, |number, digit| number * 10 + i128::from(digit - b'0'));
        }
    }
    let time = (hour * 3_600 + minute * 60 + second) * SECOND + nanosecond;
    (minute < 60 && second < 60 && time <= DAY).then_some(time)
}

/// What stands behind a time: `Z`, `+02`, `-02:30`, `+0230`, ` UTC` or another name.
fn zone<'a>(rest: &mut Rest<'a>) -> Option<Zone<'a>> {
    if rest.take('Z') || rest.is_empty() {
        return rest.is_empty().then_some(Zone::Ahead(0));
    }
    let is_spaced = rest.take(' ');
    rest.spaces();
    let sign = if rest.take('+') {
        1
    } else if rest.take('-') {
        -1
    } else {
        let name = is_spaced
            && rest
                .0
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte))
            && !rest.is_empty();
        let name = name.then_some(std::mem::take(&mut rest.0))?;
        let is_utc = ["utc", "gmt", "z"]
            .iter()
            .any(|utc| name.eq_ignore_ascii_case(utc));
        return Some(if is_utc { Zone::Ahead(0) } else { Zone::Named(name) });
    };
    let mut seconds = rest.short()? * 3_600;
    for unit in [60, 1] {
        if rest.take(':') || rest.0.starts_with(|letter: char| letter.is_ascii_digit()) {
            seconds += rest.short()? * unit;
        }
    }
    rest.is_empty().then_some(Zone::Ahead(sign * seconds * SECOND))
}

/// A date alone, or a date and a time.
pub(super) fn moment(text: &str) -> Option<Moment<'_>> {
    let trimmed = text.trim_start();
    for (name, moment) in [
        ("infinity", Moment::Infinity { is_negative: false }),
        ("-infinity", Moment::Infinity { is_negative: true }),
        ("epoch", Moment::At(0, Zone::Ahead(0))),
    ] {
        if trimmed.eq_ignore_ascii_case(name) {
            return Some(moment);
        }
    }
    let mut rest = Rest(text);
    let midnight = date(&mut rest)? * DAY;
    if rest.is_empty() {
        return Some(Moment::At(midnight, Zone::Ahead(0)));
    }
    (rest.take('T') || rest.take(' ')).then_some(())?;
    let time = time(&mut rest)?;
    let zone = zone(&mut rest)?;
    Some(Moment::At(midnight + time, zone))
}

/// A time of day, in nanoseconds. A date before it and a zone behind it do not matter.
pub(super) fn time_of_day(text: &str) -> Option<i128> {
    let mut rest = Rest(text);
    let mut dated = Rest(text);
    if date(&mut dated).is_some() && (dated.take('T') || dated.take(' ')) {
        rest = dated;
    }
    let time = time(&mut rest)?;
    zone(&mut rest)?;
    Some(time)
}

/// A UUID: 32 hexadecimal digits, hyphens between any of them, braces around them.
pub(super) fn uuid(text: &str) -> Option<u128> {
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

    fn at(text: &str) -> Option<i128> {
        match moment(text)? {
            Moment::At(at, Zone::Ahead(ahead)) => Some(at - ahead),
            _ => None,
        }
    }

    /// What `DuckDB` 2.0.1 gives for `timestamptz '...'`.
    #[test]
    fn timestamps_are_read_as_duckdb_reads_them() {
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
            assert_eq!(at(text), Some(expected), "{text}");
        }
        let named = Moment::At(clock(2, 30, 0), Zone::Named("America/New_York"));
        assert_eq!(moment("2024-01-01 02:30:00 America/New_York"), Some(named));
        assert_eq!(moment("Infinity"), Some(Moment::Infinity { is_negative: false }));
        assert_eq!(moment("-infinity"), Some(Moment::Infinity { is_negative: true }));
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
            assert_eq!(moment(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_read_as_duckdb_reads_them() {
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
            assert_eq!(time_of_day(text), Some(expected), "{text}");
        }
        for text in ["12", "24:00:00.1", "10:60", "10:11:60", "", "noon"] {
            assert_eq!(time_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn uuids_are_read_as_duckdb_reads_them() {
        let expected = Some(0x550e_8400_e29b_41d4_a716_4466_5544_0000);
        for text in [
            "550e8400-e29b-41d4-a716-446655440000",
            "550E8400E29B41D4A716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
        ] {
            assert_eq!(uuid(text), expected, "{text}");
        }
        for text in [
            "abc",
            "",
            "550e8400-e29b-41d4-a716-44665544000",
            "550e8400-e29b-41d4-a716-4466554400000",
            "{550e8400e29b41d4a716446655440000",
        ] {
            assert_eq!(uuid(text), None, "{text}");
        }
    }
}
