//! Formats values as text.

use std::fmt::Write as _;

use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::TimeUnit;

const DAY_NANOSECONDS: i128 = 86_400_000_000_000;

/// Formats a float with the fewest digits that identify it, as Python does: `1.0`, `1e+20`, `1e-05`. `scientific` is the value
/// formatted by Rust's `{:e}`.
pub(super) fn format_float(value: f64, scientific: &str) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let zeros = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat(zeros - 1));
    }
    let padded = format!("{digits:0<width$}", width = zeros + 2);
    let (whole, fraction) = padded.split_at(zeros + 1);
    format!("{sign}{whole}.{fraction}")
}

/// Formats a timestamp as a date and a time of day; with a time zone, in UTC.
pub(super) fn format_timestamp(value: i64, unit: TimeUnit, has_time_zone: bool) -> String {
    let nanoseconds = i128::from(value) * nanoseconds(unit);
    let (days, rest) = (
        nanoseconds.div_euclid(DAY_NANOSECONDS),
        nanoseconds.rem_euclid(DAY_NANOSECONDS),
    );
    let zone = if has_time_zone { "+00" } else { "" };
    format!("{} {}{zone}", format_date(days), format_clock(rest))
}

/// Formats a time of day.
pub(super) fn format_time(value: i64, unit: TimeUnit) -> String {
    format_clock(i128::from(value) * nanoseconds(unit))
}

/// Formats a duration as days and a time.
pub(super) fn format_duration(value: i64, unit: TimeUnit) -> String {
    let nanoseconds = i128::from(value) * nanoseconds(unit);
    let parts = [(nanoseconds / DAY_NANOSECONDS, "day")];
    format_parts(&parts, nanoseconds % DAY_NANOSECONDS)
}

/// Formats an interval: `1 year 2 months 3 days 04:05:06.7`.
pub(super) fn format_interval(value: IntervalMonthDayNano) -> String {
    let (months, days) = (i128::from(value.months), i128::from(value.days));
    let parts = [(months / 12, "year"), (months % 12, "month"), (days, "day")];
    format_parts(&parts, i128::from(value.nanoseconds))
}

fn format_parts(parts: &[(i128, &str)], nanoseconds: i128) -> String {
    let mut text = String::new();
    for (count, unit) in parts.iter().filter(|(count, _)| *count != 0) {
        let plural = if count.abs() == 1 { "" } else { "s" };
        let _infallible = write!(text, "{count} {unit}{plural} ");
    }
    if nanoseconds != 0 || text.is_empty() {
        if nanoseconds < 0 {
            text.push('-');
        }
        text.push_str(&format_clock(nanoseconds.abs()));
    }
    text.trim_end().to_owned()
}

/// Formats hours, minutes, seconds and a fraction if it is not zero.
fn format_clock(nanoseconds: i128) -> String {
    let (seconds, fraction) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let whole = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if fraction == 0 {
        return whole;
    }
    let fraction = format!("{fraction:09}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

/// Formats a date from days since 1970-01-01, by `civil_from_days` of Howard Hinnant's "chrono-compatible low-level date
/// algorithms".
fn format_date(days: i128) -> String {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    if year > 0 {
        format!("{year:04}-{month:02}-{day:02}")
    } else {
        format!("{:04}-{month:02}-{day:02} (BC)", 1 - year)
    }
}

const fn nanoseconds(unit: TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1000,
        TimeUnit::Nanosecond => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values of `DuckDB` 2.0.0.
    #[test]
    fn floats_are_formatted_as_in_duckdb() {
        for (value, expected) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e20, "1e+20"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
            (123_456_789.123, "123456789.123"),
            (1.234_567_890_123_456_8e17, "1.2345678901234568e+17"),
            (1e-4, "0.0001"),
            (1.5e-4, "0.00015"),
            (1e-5, "1e-05"),
            (5e-324, "5e-324"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_float(value, &format!("{value:e}")), expected);
        }
        let value = 123_456.79_f32;
        assert_eq!(format_float(f64::from(value), &format!("{value:e}")), "123456.79");
    }

    #[test]
    fn times_are_formatted_as_in_duckdb() {
        let second = TimeUnit::Second;
        assert_eq!(
            format_timestamp(1_704_067_200, second, false),
            "2024-01-01 00:00:00"
        );
        assert_eq!(
            format_timestamp(1_704_067_200, second, true),
            "2024-01-01 00:00:00+00"
        );
        assert_eq!(
            format_timestamp(-1, TimeUnit::Microsecond, false),
            "1969-12-31 23:59:59.999999"
        );
        assert_eq!(
            format_timestamp(500, TimeUnit::Millisecond, false),
            "1970-01-01 00:00:00.5"
        );
        assert_eq!(
            format_timestamp(253_402_300_799, second, false),
            "9999-12-31 23:59:59"
        );
        assert_eq!(
            format_timestamp(-63_517_820_400, second, false),
            "0044-03-15 (BC) 01:00:00"
        );
        assert_eq!(
            format_timestamp(-12_219_292_800, second, false),
            "1582-10-15 00:00:00"
        );
        assert_eq!(
            format_time(3_723_000_004, TimeUnit::Microsecond),
            "01:02:03.000004"
        );
        assert_eq!(
            format_duration(5_097_599_500, TimeUnit::Millisecond),
            "58 days 23:59:59.5"
        );
        assert_eq!(format_duration(0, second), "00:00:00");
        for (months, days, nanoseconds, expected) in [
            (14, 3, 14_706_700_000_000, "1 year 2 months 3 days 04:05:06.7"),
            (-14, 0, 0, "-1 year -2 months"),
            (0, 1, -3_600_000_000_000, "1 day -01:00:00"),
            (0, -1, 0, "-1 day"),
            (0, 0, 0, "00:00:00"),
            (0, 0, 360_000_000_000_000, "100:00:00"),
        ] {
            assert_eq!(
                format_interval(IntervalMonthDayNano::new(months, days, nanoseconds)),
                expected
            );
        }
    }
}
