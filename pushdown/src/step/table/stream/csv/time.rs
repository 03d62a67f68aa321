//! Dates and times of a text, which are read without loss or not at all.

use arrow_array::types::Date32Type;
use arrow_cast::parse::Parser as _;
use arrow_schema::TimeUnit;

const DAY_SECONDS: i64 = 86_400;

/// A date, or a date and a time of day: `2024-02-29`, `2024-02-29 01:02:03.5`, `2024-02-29T01:02:03+02:00`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970, in UTC if there is a zone.
    seconds: i64,
    nanoseconds: u32,
    /// Digits of the fraction as it is written.
    digits: usize,
    pub(super) form: Form,
}

/// What a text of a moment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Date,
    /// A time of day, in nobody knows which zone.
    Local,
    /// A time of day, and its distance from UTC.
    Zoned,
}

impl Moment {
    /// Reads a text; `None` if there is no such day or time of day. A leap second is none, as in pyarrow and `DuckDB`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let is_date = date.bytes().enumerate().all(|(place, byte)| match place {
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
                form: Form::Date,
            });
        }
        let (clock, rest) = rest.strip_prefix([' ', 'T'])?.split_at_checked(8)?;
        let &[h1, h2, b':', m1, m2, b':', s1, s2] = clock.as_bytes() else {
            return None;
        };
        let seconds =
            midnight + below(24, [h1, h2])? * 3600 + below(60, [m1, m2])? * 60 + below(60, [s1, s2])?;
        let (nanoseconds, digits, zone) = match rest.strip_prefix('.') {
            Some(rest) => fraction(rest)?,
            None => (0, 0, rest),
        };
        let (offset, form) = if zone.is_empty() {
            (0, Form::Local)
        } else {
            (offset(zone)?, Form::Zoned)
        };
        Some(Self {
            seconds: seconds - offset,
            nanoseconds,
            digits,
            form,
        })
    }

    /// Days since 1970, of a date alone.
    pub(super) fn days(self) -> Option<i32> {
        let is_date = self.form == Form::Date;
        is_date
            .then(|| i32::try_from(self.seconds / DAY_SECONDS).ok())
            .flatten()
    }

    /// Whether the fraction is written in this unit, or a coarser one: zeros at its end tell what other values may have.
    pub(super) const fn is_written_in(self, unit: TimeUnit) -> bool {
        let digits = match unit {
            TimeUnit::Second => 0,
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            // More digits than these are zeros.
            TimeUnit::Nanosecond => usize::MAX,
        };
        self.digits <= digits
    }

    /// Units since 1970; `None` if the unit is too coarse for the fraction, or too fine for the year.
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

/// A number of two digits that is less than `most`.
fn below(most: i64, digits: [u8; 2]) -> Option<i64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let [tens, ones] = digits.map(|digit| i64::from(digit - b'0'));
    Some(tens * 10 + ones).filter(|number| *number < most)
}

/// Nanoseconds, how many digits they have, and what is after them. After the ninth digit there may be zeros.
fn fraction(text: &str) -> Option<(u32, usize, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(length);
    let significant = digits.trim_end_matches('0');
    if digits.is_empty() || significant.len() > 9 {
        return None;
    }
    let nanoseconds = significant.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanoseconds = nanoseconds.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0'));
    Some((nanoseconds, length, rest))
}

/// Seconds that a zone is ahead of UTC: `Z`, `UTC`, `+02`, `+0200`, `+02:00`, after a space or none.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.strip_prefix(' ').unwrap_or(zone);
    if matches!(zone, "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, hours, minutes) = match *zone.as_bytes() {
        [sign, h1, h2] => (sign, [h1, h2], [b'0', b'0']),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => (sign, [h1, h2], [m1, m2]),
        _ => return None,
    };
    let seconds = below(24, hours)? * 3600 + below(60, minutes)? * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(i64, u32, Form)> {
        Moment::parse(text).map(|moment| (moment.seconds, moment.nanoseconds, moment.form))
    }

    #[test]
    fn moments_are_read_whole() {
        for (text, expected) in [
            ("1970-01-02", (86_400, 0, Form::Date)),
            ("1969-12-31T23:59:59", (-1, 0, Form::Local)),
            ("1970-01-01 00:00:01.5", (1, 500_000_000, Form::Local)),
            ("1970-01-01 00:00:01.000000001", (1, 1, Form::Local)),
            ("1970-01-01 00:00:01.0000000010000", (1, 1, Form::Local)),
            ("1970-01-01T02:00:00+02:00", (0, 0, Form::Zoned)),
            ("1970-01-01T02:00:00.25+0200", (0, 250_000_000, Form::Zoned)),
            ("1969-12-31 22:30:00-01:30", (0, 0, Form::Zoned)),
            ("1970-01-01 00:00:00Z", (0, 0, Form::Zoned)),
            ("1970-01-01 00:00:00 UTC", (0, 0, Form::Zoned)),
            ("1970-01-01 01:00:00 +01", (0, 0, Form::Zoned)),
        ] {
            assert_eq!(parsed(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_not_read() {
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
    fn a_unit_holds_all_of_a_moment_or_none() {
        let units = |text: &str, unit| Moment::parse(text).and_then(|moment| moment.units(unit));
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
        assert_eq!(Moment::parse("1969-12-31").and_then(Moment::days), Some(-1));
        assert_eq!(Moment::parse("1970-01-01 00:00:00").and_then(Moment::days), None);
    }
}
