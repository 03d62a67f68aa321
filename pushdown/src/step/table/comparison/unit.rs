//! Kinds of values that are compared with each other, and their units.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use datafusion::common::ScalarValue;

pub(super) const SECOND: i128 = 1_000_000_000;
pub(super) const DAY: i128 = 86_400 * SECOND;

/// What values are of: those of one kind are compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A point in time; without a zone it is taken to be in UTC.
    Instant,
    TimeOfDay,
    /// A month of a span has 30 days, and a day 24 hours, as `DuckDB` has it.
    Span,
    Number,
    /// A UUID: sixteen bytes.
    Identifier,
}

/// The kind of a type, and the nanoseconds of its unit where it is of time.
pub(super) fn unit(data_type: &DataType) -> Option<(Kind, i128)> {
    let nanoseconds = |unit: &TimeUnit| match unit {
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => SECOND / 1_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    match data_type {
        DataType::Timestamp(unit, _) => Some((Kind::Instant, nanoseconds(unit))),
        DataType::Date32 => Some((Kind::Instant, DAY)),
        DataType::Date64 => Some((Kind::Instant, SECOND / 1_000)),
        DataType::Time32(unit) | DataType::Time64(unit) => Some((Kind::TimeOfDay, nanoseconds(unit))),
        DataType::Duration(unit) => Some((Kind::Span, nanoseconds(unit))),
        DataType::Interval(_) => Some((Kind::Span, 1)),
        _ => None,
    }
}

/// Nanoseconds of the parts of an interval.
pub(super) fn span(months: i32, days: i32, nanoseconds: i64) -> i128 {
    (i128::from(months) * 30 + i128::from(days)) * DAY + i128::from(nanoseconds)
}

/// The same of an interval as a literal.
pub(super) fn interval(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::IntervalYearMonth(Some(months)) => Some(span(*months, 0, 0)),
        ScalarValue::IntervalDayTime(Some(of)) => {
            Some(span(0, of.days, i64::from(of.milliseconds) * 1_000_000))
        }
        ScalarValue::IntervalMonthDayNano(Some(of)) => Some(span(of.months, of.days, of.nanoseconds)),
        _ => None,
    }
}

/// The unit that texts are read as.
pub(super) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
