//! Which types the values of a column fit without loss.

use std::ops::BitAndAssign;

use arrow_schema::{DataType, TimeUnit};

use super::{
    super::number,
    time::{Form, Moment},
};

/// The types of columns that are no text, those that come first in a file of their values first. Whole numbers are floats,
/// and dates are times, where others of their column are.
const ORDER: [Type; 12] = [
    Type::Boolean,
    Type::Int64,
    Type::Float64,
    Type::Date32,
    Type::Local(TimeUnit::Second),
    Type::Local(TimeUnit::Millisecond),
    Type::Local(TimeUnit::Microsecond),
    Type::Local(TimeUnit::Nanosecond),
    Type::Zoned(TimeUnit::Second),
    Type::Zoned(TimeUnit::Millisecond),
    Type::Zoned(TimeUnit::Microsecond),
    Type::Zoned(TimeUnit::Nanosecond),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Boolean,
    Int64,
    Float64,
    Date32,
    /// A time without a zone.
    Local(TimeUnit),
    /// A time in UTC, whatever zone its text has, as in pyarrow.
    Zoned(TimeUnit),
}

/// A set of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u16);

impl Types {
    /// What a column without any value may be.
    pub(super) const ALL: Self = Self((1 << ORDER.len()) - 1);

    /// Those that hold a value without loss, and the fraction of a second in as many digits as it is written.
    pub(super) fn of(text: &str) -> Self {
        let is_text = match text.as_bytes().first() {
            Some(b't' | b'T' | b'f' | b'F' | b'n' | b'N' | b'i' | b'I' | b'-' | b'.') => false,
            Some(byte) => !byte.is_ascii_digit(),
            None => true,
        };
        if is_text {
            return Self(0);
        }
        let moment = Moment::parse(text);
        let written = |unit: &TimeUnit| moment.filter(|moment| moment.is_written_in(*unit));
        let fits = |kind: &Type| match kind {
            Type::Boolean => boolean(text).is_some(),
            Type::Int64 => number::int(text).is_some(),
            Type::Float64 => number::float(text).is_some(),
            Type::Date32 => moment.and_then(Moment::days).is_some(),
            Type::Local(unit) => written(unit).and_then(|moment| local(moment, *unit)).is_some(),
            Type::Zoned(unit) => written(unit).and_then(|moment| zoned(moment, *unit)).is_some(),
        };
        let fitting = ORDER.iter().enumerate().filter(|(_, kind)| fits(kind));
        Self(fitting.fold(0, |types, (place, _)| types | 1 << place))
    }

    /// Whether only text holds all values.
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The type of a column whose values fit these.
    pub(super) fn first(self) -> DataType {
        let first = ORDER.get(self.0.trailing_zeros() as usize);
        match first {
            _ if self == Self::ALL => DataType::Utf8,
            None => DataType::Utf8,
            Some(Type::Boolean) => DataType::Boolean,
            Some(Type::Int64) => DataType::Int64,
            Some(Type::Float64) => DataType::Float64,
            Some(Type::Date32) => DataType::Date32,
            Some(Type::Local(unit)) => DataType::Timestamp(*unit, None),
            Some(Type::Zoned(unit)) => DataType::Timestamp(*unit, Some("UTC".into())),
        }
    }
}

impl BitAndAssign for Types {
    fn bitand_assign(&mut self, others: Self) {
        self.0 &= others.0;
    }
}

/// `true` and `false`, in capital and small letters.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let is = |word| text.eq_ignore_ascii_case(word);
    is("true")
        .then_some(true)
        .or_else(|| is("false").then_some(false))
}

/// Units since 1970 of a date or a time without a zone.
pub(super) fn local(moment: Moment, unit: TimeUnit) -> Option<i64> {
    (moment.form != Form::Zoned).then(|| moment.units(unit)).flatten()
}

/// Units since 1970 of a time with a zone.
pub(super) fn zoned(moment: Moment, unit: TimeUnit) -> Option<i64> {
    (moment.form == Form::Zoned).then(|| moment.units(unit)).flatten()
}
