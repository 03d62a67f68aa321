//! Kinds of comparable values, and their units.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;

pub(super) const SECOND: i128 = 1_000_000_000;
pub(super) const DAY: i128 = 86_400 * SECOND;

/// Values of one kind are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// A timestamp or date; without a time zone, in UTC.
    Instant,
    TimeOfDay,
    /// An interval or duration. As in `DuckDB`, a month has 30 days and a day has 24 hours.
    Interval,
    Number,
    /// 16 bytes.
    Uuid,
}

/// The kind of a type of time, and the nanoseconds of its unit.
pub(super) fn kind_and_unit(data_type: &DataType) -> Option<(ValueKind, i128)> {
    let nanoseconds = |unit: &TimeUnit| match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => SECOND / 1_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    match data_type {
        DataType::Timestamp(unit, _) => Some((ValueKind::Instant, nanoseconds(unit))),
        DataType::Date32 => Some((ValueKind::Instant, DAY)),
        DataType::Date64 => Some((ValueKind::Instant, SECOND / 1_000)),
        DataType::Time32(unit) | DataType::Time64(unit) => Some((ValueKind::TimeOfDay, nanoseconds(unit))),
        DataType::Duration(unit) => Some((ValueKind::Interval, nanoseconds(unit))),
        DataType::Interval(_) => Some((ValueKind::Interval, 1)),
        _ => None,
    }
}

/// Nanoseconds of an interval.
pub(super) fn interval_nanoseconds(months: i32, days: i32, nanoseconds: i64) -> i128 {
    (i128::from(months) * 30 + i128::from(days)) * DAY + i128::from(nanoseconds)
}

/// Nanoseconds of an interval literal.
pub(super) fn literal_nanoseconds(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::IntervalYearMonth(Some(months)) => Some(interval_nanoseconds(*months, 0, 0)),
        ScalarValue::IntervalDayTime(Some(value)) => Some(interval_nanoseconds(
            0,
            value.days,
            i64::from(value.milliseconds) * 1_000_000,
        )),
        ScalarValue::IntervalMonthDayNano(Some(value)) => {
            Some(interval_nanoseconds(value.months, value.days, value.nanoseconds))
        }
        _ => None,
    }
}

/// The interval type that texts are parsed as.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
