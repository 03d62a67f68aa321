//! Infers the types that hold all values of a column without loss.

use std::ops::BitAndAssign;

use arrow_schema::{DataType, TimeUnit};

use super::{
    super::number,
    time::{DateTime, DateTimeKind},
};

/// The types other than text, in order of preference. A whole number is also a float, and a date is also a time, if other values
/// of the column require it.
const PREFERENCE: [CsvType; 12] = [
    CsvType::Boolean,
    CsvType::Int64,
    CsvType::Float64,
    CsvType::Date32,
    CsvType::Local(TimeUnit::Second),
    CsvType::Local(TimeUnit::Millisecond),
    CsvType::Local(TimeUnit::Microsecond),
    CsvType::Local(TimeUnit::Nanosecond),
    CsvType::Zoned(TimeUnit::Second),
    CsvType::Zoned(TimeUnit::Millisecond),
    CsvType::Zoned(TimeUnit::Microsecond),
    CsvType::Zoned(TimeUnit::Nanosecond),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvType {
    Boolean,
    Int64,
    Float64,
    Date32,
    /// A time without a zone.
    Local(TimeUnit),
    /// A time with a zone, converted to UTC as in pyarrow.
    Zoned(TimeUnit),
}

/// A set of types, as a bit mask over `PREFERENCE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TypeSet(u16);

impl TypeSet {
    /// The types of a column without values.
    pub(super) const ALL: Self = Self((1 << PREFERENCE.len()) - 1);

    /// The types that hold a value without loss. The unit of a time has at least as many fractional digits as the text.
    pub(super) fn from_text(text: &str) -> Self {
        let is_text = match text.as_bytes().first() {
            Some(b't' | b'T' | b'f' | b'F' | b'n' | b'N' | b'i' | b'I' | b'-' | b'.') => false,
            Some(byte) => !byte.is_ascii_digit(),
            None => true,
        };
        if is_text {
            return Self(0);
        }
        let time = DateTime::parse(text);
        let time_in = |unit: &TimeUnit| time.filter(|time| time.has_digits_of(*unit));
        let fits = |kind: &CsvType| match kind {
            CsvType::Boolean => parse_boolean(text).is_some(),
            CsvType::Int64 => number::parse_int(text).is_some(),
            CsvType::Float64 => number::parse_float(text).is_some(),
            CsvType::Date32 => time.and_then(DateTime::days).is_some(),
            CsvType::Local(unit) => time_in(unit).and_then(|time| local_units(time, *unit)).is_some(),
            CsvType::Zoned(unit) => time_in(unit).and_then(|time| zoned_units(time, *unit)).is_some(),
        };
        let fitting = PREFERENCE.iter().enumerate().filter(|(_, kind)| fits(kind));
        Self(fitting.fold(0, |types, (index, _)| types | 1 << index))
    }

    /// Whether only text can hold all values.
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The preferred type. Text if the set is empty, or has all types because the column has no values.
    pub(super) fn preferred(self) -> DataType {
        let preferred = PREFERENCE.get(self.0.trailing_zeros() as usize);
        match preferred {
            _ if self == Self::ALL => DataType::Utf8,
            None => DataType::Utf8,
            Some(CsvType::Boolean) => DataType::Boolean,
            Some(CsvType::Int64) => DataType::Int64,
            Some(CsvType::Float64) => DataType::Float64,
            Some(CsvType::Date32) => DataType::Date32,
            Some(CsvType::Local(unit)) => DataType::Timestamp(*unit, None),
            Some(CsvType::Zoned(unit)) => DataType::Timestamp(*unit, Some("UTC".into())),
        }
    }
}

impl BitAndAssign for TypeSet {
    fn bitand_assign(&mut self, other: Self) {
        self.0 &= other.0;
    }
}

/// Parses `true` and `false`, case-insensitively.
pub(super) fn parse_boolean(text: &str) -> Option<bool> {
    let is_word = |word| text.eq_ignore_ascii_case(word);
    is_word("true")
        .then_some(true)
        .or_else(|| is_word("false").then_some(false))
}

/// Units since 1970 of a date or a time without a zone.
pub(super) fn local_units(time: DateTime, unit: TimeUnit) -> Option<i64> {
    (time.kind != DateTimeKind::Zoned)
        .then(|| time.units(unit))
        .flatten()
}

/// Units since 1970 of a time with a zone.
pub(super) fn zoned_units(time: DateTime, unit: TimeUnit) -> Option<i64> {
    (time.kind == DateTimeKind::Zoned)
        .then(|| time.units(unit))
        .flatten()
}
