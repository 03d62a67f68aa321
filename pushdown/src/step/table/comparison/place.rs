//! Where a literal is among the values of a type.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use datafusion::{
    common::{DFSchema, ScalarValue},
    error::Result,
    logical_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, lit},
};

use super::{
    known,
    unit::{Kind, unit},
};
use crate::step::table::duckdb::{EXTENSION, UUID};

/// The values of a type in their order.
#[derive(Debug)]
pub(super) struct Scale {
    pub(super) kind: Kind,
    pub(super) data_type: DataType,
    /// Nanoseconds of a value's unit, 1 of what is not of time.
    pub(super) nanoseconds: i128,
    /// Digits of a number behind its point.
    pub(super) digits: u8,
    least: i256,
    greatest: i256,
}

/// Where a literal is among such values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// It is this one.
    At(i256),
    /// Between this one and the next.
    Behind(i256),
    Below,
    Above,
    Null,
}

impl Scale {
    /// The scale of an expression, where its values are ordered here.
    pub(super) fn of(value: &Expr, schema: &DFSchema) -> Result<Option<Self>> {
        let data_type = match value.get_type(schema)? {
            DataType::Dictionary(_, of) => *of,
            other => other,
        };
        let is_uuid = || -> Result<bool> {
            let (_, field) = value.to_field(schema)?;
            let extension = field.metadata().get(EXTENSION);
            Ok(extension.is_some_and(|name| name == UUID))
        };
        match Self::of_type(data_type) {
            // A field takes the stack of a deep expression, a type does not.
            Some(scale) if scale.kind == Kind::Identifier && !is_uuid()? => Ok(None),
            scale => Ok(scale),
        }
    }

    /// The scale of a type, of sixteen bytes as if they were a UUID.
    pub(super) fn of_type(data_type: DataType) -> Option<Self> {
        let wide = |least: i64, greatest: i64| Some((i256::from(least), i256::from(greatest)));
        let power = |digits: u8| i256::from(10_i64).checked_pow(u32::from(digits));
        let (kind, nanoseconds) = match &data_type {
            DataType::FixedSizeBinary(16) => (Kind::Identifier, 1),
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => (Kind::Number, 1),
            other if other.is_integer() => (Kind::Number, 1),
            other => unit(other)?,
        };
        let mut digits = 0;
        let (least, greatest) = match &data_type {
            DataType::Int8 => wide(i8::MIN.into(), i8::MAX.into()),
            DataType::Int16 => wide(i16::MIN.into(), i16::MAX.into()),
            DataType::UInt8 => wide(0, u8::MAX.into()),
            DataType::UInt16 => wide(0, u16::MAX.into()),
            DataType::UInt32 => wide(0, u32::MAX.into()),
            DataType::UInt64 => Some((i256::ZERO, i256::from_i128(u64::MAX.into()))),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
                wide(i32::MIN.into(), i32::MAX.into())
            }
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                digits = u8::try_from(*scale).ok()?;
                let beyond = power(*precision)?;
                let greatest = beyond.checked_sub(i256::ONE)?;
                Some((greatest.checked_neg()?, greatest))
            }
            DataType::FixedSizeBinary(_) => Some((i256::ZERO, i256::from_parts(u128::MAX, 0))),
            // No literal can be of these: they have several parts.
            DataType::Interval(_) => Some((i256::MIN, i256::MAX)),
            _ => wide(i64::MIN, i64::MAX),
        }?;
        Some(Self {
            kind,
            data_type,
            nanoseconds,
            digits,
            least,
            greatest,
        })
    }

    /// Whether a value of the type stands for each place.
    pub(super) const fn is_plain(&self) -> bool {
        !matches!(self.data_type, DataType::Interval(_))
    }

    /// Where `number * mul / div` is.
    pub(super) fn place(&self, number: i256, mul: i256, div: i256) -> Place {
        let outside = if number < i256::ZERO {
            Place::Below
        } else {
            Place::Above
        };
        let Some(product) = number.checked_mul(mul) else {
            return outside;
        };
        let (Some(quotient), Some(rest)) = (product.checked_div(div), product.checked_rem(div)) else {
            return outside;
        };
        let floor = if rest < i256::ZERO {
            quotient.wrapping_sub(i256::ONE)
        } else {
            quotient
        };
        if floor < self.least {
            Place::Below
        } else if floor > self.greatest {
            Place::Above
        } else if rest == i256::ZERO {
            Place::At(floor)
        } else {
            Place::Behind(floor)
        }
    }

    /// The place of the greatest value, which stands for infinity, or of the one that stands for its opposite.
    pub(super) fn infinity(&self, is_negative: bool) -> Place {
        if is_negative {
            Place::At(self.least.wrapping_add(i256::ONE))
        } else {
            Place::At(self.greatest)
        }
    }

    /// The value at a place; `None` where there is none.
    pub(super) fn literal(&self, place: &Place) -> Option<ScalarValue> {
        match place {
            Place::At(value) => self.scalar(*value),
            Place::Null => ScalarValue::try_from(&self.data_type).ok(),
            Place::Behind(_) | Place::Below | Place::Above => None,
        }
    }

    fn scalar(&self, value: i256) -> Option<ScalarValue> {
        let wide = value.to_i128();
        let long = || wide.and_then(|value| i64::try_from(value).ok());
        let short = || wide.and_then(|value| i32::try_from(value).ok());
        Some(match &self.data_type {
            DataType::Int8 => ScalarValue::Int8(i8::try_from(wide?).ok()),
            DataType::Int16 => ScalarValue::Int16(i16::try_from(wide?).ok()),
            DataType::Int32 => ScalarValue::Int32(short()),
            DataType::Int64 => ScalarValue::Int64(long()),
            DataType::UInt8 => ScalarValue::UInt8(u8::try_from(wide?).ok()),
            DataType::UInt16 => ScalarValue::UInt16(u16::try_from(wide?).ok()),
            DataType::UInt32 => ScalarValue::UInt32(u32::try_from(wide?).ok()),
            DataType::UInt64 => ScalarValue::UInt64(u64::try_from(wide?).ok()),
            DataType::Decimal32(precision, scale) => ScalarValue::Decimal32(short(), *precision, *scale),
            DataType::Decimal64(precision, scale) => ScalarValue::Decimal64(long(), *precision, *scale),
            DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(wide, *precision, *scale),
            DataType::Decimal256(precision, scale) => {
                ScalarValue::Decimal256(Some(value), *precision, *scale)
            }
            DataType::Timestamp(TimeUnit::Second, zone) => ScalarValue::TimestampSecond(long(), zone.clone()),
            DataType::Timestamp(TimeUnit::Millisecond, zone) => {
                ScalarValue::TimestampMillisecond(long(), zone.clone())
            }
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                ScalarValue::TimestampMicrosecond(long(), zone.clone())
            }
            DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                ScalarValue::TimestampNanosecond(long(), zone.clone())
            }
            DataType::Date32 => ScalarValue::Date32(short()),
            DataType::Date64 => ScalarValue::Date64(long()),
            DataType::Time32(TimeUnit::Second) => ScalarValue::Time32Second(short()),
            DataType::Time32(_) => ScalarValue::Time32Millisecond(short()),
            DataType::Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(long()),
            DataType::Time64(_) => ScalarValue::Time64Nanosecond(long()),
            DataType::Duration(TimeUnit::Second) => ScalarValue::DurationSecond(long()),
            DataType::Duration(TimeUnit::Millisecond) => ScalarValue::DurationMillisecond(long()),
            DataType::Duration(TimeUnit::Microsecond) => ScalarValue::DurationMicrosecond(long()),
            DataType::Duration(TimeUnit::Nanosecond) => ScalarValue::DurationNanosecond(long()),
            DataType::FixedSizeBinary(length) => {
                let (low, _) = value.to_parts();
                ScalarValue::FixedSizeBinary(*length, Some(low.to_be_bytes().to_vec()))
            }
            _ => return None,
        })
    }

    /// `value op literal`, of a literal at that place.
    pub(super) fn compared(&self, value: Expr, op: Operator, place: Place) -> Result<Expr> {
        let fits = |scalar: Option<ScalarValue>| {
            scalar.ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("a place that {} does not have", self.data_type)
            })
        };
        // What is not null is no less than the least value.
        let (always, never) = ((Operator::GtEq, self.least), (Operator::Lt, self.least));
        let (op, at) = match (place, op) {
            (Place::At(at), op) => (op, at),
            (Place::Null, op) => {
                let null = lit(fits(ScalarValue::try_from(&self.data_type).ok())?);
                return Ok(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(value),
                    op,
                    Box::new(null),
                )));
            }
            (_, Operator::IsDistinctFrom) => return Ok(lit(known(true))),
            (_, Operator::IsNotDistinctFrom) => return Ok(lit(known(false))),
            (_, Operator::Eq) => never,
            (_, Operator::NotEq) => always,
            (Place::Behind(at), Operator::Lt | Operator::LtEq) => (Operator::LtEq, at),
            (Place::Behind(at), _) => (Operator::Gt, at),
            (Place::Above, Operator::Lt | Operator::LtEq) | (Place::Below, Operator::Gt | Operator::GtEq) => {
                always
            }
            (Place::Above | Place::Below, _) => never,
        };
        let literal = lit(fits(self.scalar(at))?);
        Ok(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(value),
            op,
            Box::new(literal),
        )))
    }
}
