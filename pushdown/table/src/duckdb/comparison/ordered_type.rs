//! Positions of literals among the ordered values of a type.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use datafusion::{
    common::{DFSchema, ScalarValue},
    error::Result,
    logical_expr::{BinaryExpr, Expr, ExprSchemable as _, Operator, lit},
};

use super::{
    boolean,
    unit::{ValueKind, kind_and_unit},
};
use crate::duckdb::{EXTENSION, UUID};

/// A type whose values are ordered, each represented by an integer.
#[derive(Debug)]
pub(super) struct OrderedType {
    pub(super) kind: ValueKind,
    pub(super) data_type: DataType,
    /// Nanoseconds of the type's unit; 1 if it is not a type of time.
    pub(super) unit_nanoseconds: i128,
    /// Digits after the point of a decimal.
    pub(super) decimal_scale: u8,
    min: i256,
    max: i256,
}

/// The position of a literal among the values of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiteralPosition {
    /// Equal to this value.
    Exact(i256),
    /// Between this value and the next.
    After(i256),
    /// Less than all values.
    Below,
    /// Greater than all values.
    Above,
    Null,
}

impl OrderedType {
    /// The type of an expression; `None` if this module does not compare its values.
    pub(super) fn for_expr(value: &Expr, schema: &DFSchema) -> Result<Option<Self>> {
        let data_type = match value.get_type(schema)? {
            DataType::Dictionary(_, value_type) => *value_type,
            other => other,
        };
        let is_uuid = || -> Result<bool> {
            let (_, field) = value.to_field(schema)?;
            let extension = field.metadata().get(EXTENSION);
            Ok(extension.is_some_and(|name| name == UUID))
        };
        match Self::for_type(data_type) {
            // Only for 16-byte types: `to_field` recurses into a deep expression, `get_type` does not.
            Some(ordered_type) if ordered_type.kind == ValueKind::Uuid && !is_uuid()? => Ok(None),
            ordered_type => Ok(ordered_type),
        }
    }

    /// The ordered type of an Arrow type. Takes 16 bytes for a UUID.
    pub(super) fn for_type(data_type: DataType) -> Option<Self> {
        let bounds = |min: i64, max: i64| Some((i256::from(min), i256::from(max)));
        let power = |digits: u8| i256::from(10_i64).checked_pow(u32::from(digits));
        let (kind, unit_nanoseconds) = match &data_type {
            DataType::FixedSizeBinary(16) => (ValueKind::Uuid, 1),
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => (ValueKind::Number, 1),
            other if other.is_integer() => (ValueKind::Number, 1),
            other => kind_and_unit(other)?,
        };
        let mut decimal_scale = 0;
        let (min, max) = match &data_type {
            DataType::Int8 => bounds(i8::MIN.into(), i8::MAX.into()),
            DataType::Int16 => bounds(i16::MIN.into(), i16::MAX.into()),
            DataType::UInt8 => bounds(0, u8::MAX.into()),
            DataType::UInt16 => bounds(0, u16::MAX.into()),
            DataType::UInt32 => bounds(0, u32::MAX.into()),
            DataType::UInt64 => Some((i256::ZERO, i256::from_i128(u64::MAX.into()))),
            DataType::Int32 | DataType::Date32 | DataType::Time32(_) => {
                bounds(i32::MIN.into(), i32::MAX.into())
            }
            DataType::Decimal32(precision, scale)
            | DataType::Decimal64(precision, scale)
            | DataType::Decimal128(precision, scale)
            | DataType::Decimal256(precision, scale) => {
                decimal_scale = u8::try_from(*scale).ok()?;
                let max = power(*precision)?.checked_sub(i256::ONE)?;
                Some((max.checked_neg()?, max))
            }
            DataType::FixedSizeBinary(_) => Some((i256::ZERO, i256::from_parts(u128::MAX, 0))),
            // No single integer represents an interval: it has several parts.
            DataType::Interval(_) => Some((i256::MIN, i256::MAX)),
            _ => bounds(i64::MIN, i64::MAX),
        }?;
        Some(Self {
            kind,
            data_type,
            unit_nanoseconds,
            decimal_scale,
            min,
            max,
        })
    }

    /// Whether a literal of the type exists for each integer.
    pub(super) const fn has_literals(&self) -> bool {
        !matches!(self.data_type, DataType::Interval(_))
    }

    /// The position of `number * mul / div`.
    pub(super) fn position(&self, number: i256, mul: i256, div: i256) -> LiteralPosition {
        let outside = if number < i256::ZERO {
            LiteralPosition::Below
        } else {
            LiteralPosition::Above
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
        if floor < self.min {
            LiteralPosition::Below
        } else if floor > self.max {
            LiteralPosition::Above
        } else if rest == i256::ZERO {
            LiteralPosition::Exact(floor)
        } else {
            LiteralPosition::After(floor)
        }
    }

    /// The position of infinity, represented by the maximum, or of negative infinity, represented by the minimum plus one.
    pub(super) fn infinity(&self, is_negative: bool) -> LiteralPosition {
        if is_negative {
            LiteralPosition::Exact(self.min.wrapping_add(i256::ONE))
        } else {
            LiteralPosition::Exact(self.max)
        }
    }

    /// The value at a position; `None` if no value is there.
    pub(super) fn literal(&self, position: &LiteralPosition) -> Option<ScalarValue> {
        match position {
            LiteralPosition::Exact(value) => self.scalar(*value),
            LiteralPosition::Null => ScalarValue::try_from(&self.data_type).ok(),
            LiteralPosition::After(_) | LiteralPosition::Below | LiteralPosition::Above => None,
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

    /// `value op literal`, for a literal at a position.
    pub(super) fn compare(&self, value: Expr, op: Operator, position: LiteralPosition) -> Result<Expr> {
        let expect_scalar = |scalar: Option<ScalarValue>| {
            scalar.ok_or_else(|| {
                datafusion::common::internal_datafusion_err!(
                    "{} has no value at a literal's position",
                    self.data_type
                )
            })
        };
        // True and false for every value that is not NULL; NULL for NULL.
        let (always, never) = ((Operator::GtEq, self.min), (Operator::Lt, self.min));
        let (op, bound) = match (position, op) {
            (LiteralPosition::Exact(bound), op) => (op, bound),
            (LiteralPosition::Null, op) => {
                let null = lit(expect_scalar(ScalarValue::try_from(&self.data_type).ok())?);
                return Ok(Expr::BinaryExpr(BinaryExpr::new(
                    Box::new(value),
                    op,
                    Box::new(null),
                )));
            }
            (_, Operator::IsDistinctFrom) => return Ok(lit(boolean(true))),
            (_, Operator::IsNotDistinctFrom) => return Ok(lit(boolean(false))),
            (_, Operator::Eq) => never,
            (_, Operator::NotEq)
            | (LiteralPosition::Above, Operator::Lt | Operator::LtEq)
            | (LiteralPosition::Below, Operator::Gt | Operator::GtEq) => always,
            (LiteralPosition::After(bound), Operator::Lt | Operator::LtEq) => (Operator::LtEq, bound),
            (LiteralPosition::After(bound), _) => (Operator::Gt, bound),
            (LiteralPosition::Above | LiteralPosition::Below, _) => never,
        };
        let literal = lit(expect_scalar(self.scalar(bound))?);
        Ok(Expr::BinaryExpr(BinaryExpr::new(
            Box::new(value),
            op,
            Box::new(literal),
        )))
    }
}
