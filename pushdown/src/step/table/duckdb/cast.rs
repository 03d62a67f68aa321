//! Casts that round, read and write as `DuckDB` does.

use std::{mem, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, PrimitiveArray, StringArray,
    cast::AsArray as _,
    types::{
        ArrowPrimitiveType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
        DurationNanosecondType, DurationSecondType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, IntervalMonthDayNanoType, Time64NanosecondType, TimestampMicrosecondType,
        TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
        UInt32Type, UInt64Type,
    },
};
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::{
    arrow::compute::cast as arrow_cast,
    common::{DFSchema, ScalarValue, exec_err, plan_err, tree_node::Transformed},
    error::Result,
    logical_expr::{
        Cast, ColumnarValue, Expr, ExprSchemable as _, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, TryCast, Volatility,
    },
};

use super::{number, text};

/// `CAST`, which fails where a value has none of the type.
pub(super) fn in_place_of(to: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let from = to.expr.get_type(schema)?;
    match Conversion::between(&from, to.field.data_type()) {
        Some(conversion) => Ok(Transformed::yes(conversion.call(*to.expr, false))),
        None => Ok(Transformed::no(Expr::Cast(to))),
    }
}

/// `TRY_CAST`, which gives NULL there.
pub(super) fn in_place_of_try(to: TryCast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let from = to.expr.get_type(schema)?;
    match Conversion::between(&from, to.field.data_type()) {
        Some(conversion) => Ok(Transformed::yes(conversion.call(*to.expr, true))),
        None => Ok(Transformed::no(Expr::TryCast(to))),
    }
}

/// Puts the text of an expression of this type in its place, where Arrow writes it otherwise. Whether it does.
pub(super) fn as_text(expr: &mut Expr, found: &DataType) -> bool {
    let Some(conversion) = Conversion::between(found, &DataType::Utf8) else {
        return false;
    };
    *expr = conversion.call(mem::take(expr), false);
    true
}

/// A cast for which Arrow has other values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Conversion {
    /// Of a number or a text to whole numbers of this type.
    Whole(DataType),
    /// Of a text to decimals of this precision and scale.
    Decimal(u8, i8),
    /// Of a text.
    Truth,
    /// To a text.
    Text,
}

impl Conversion {
    fn between(from: &DataType, to: &DataType) -> Option<Self> {
        let from = match from {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        let is_number = from.is_floating()
            || matches!(
                from,
                DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..)
            );
        match to {
            whole if whole.is_integer() && (is_number || is_text(from)) => Some(Self::Whole(whole.clone())),
            DataType::Decimal128(precision, scale) if is_text(from) => {
                Some(Self::Decimal(*precision, *scale))
            }
            DataType::Boolean if is_text(from) => Some(Self::Truth),
            text if is_text(text) && is_written_otherwise(from) => Some(Self::Text),
            _ => None,
        }
    }

    fn call(self, expr: Expr, or_null: bool) -> Expr {
        let function = Converted {
            conversion: self,
            or_null,
            signature: Signature::any(1, Volatility::Immutable),
        };
        ScalarUDF::new_from_impl(function).call(vec![expr])
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Whole(data_type) => data_type.clone(),
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Self::Truth => DataType::Boolean,
            Self::Text => DataType::Utf8,
        }
    }
}

const fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

const fn is_written_otherwise(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float16
            | DataType::Float32
            | DataType::Float64
            | DataType::Timestamp(..)
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Duration(_)
            | DataType::Interval(IntervalUnit::MonthDayNano)
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Converted {
    conversion: Conversion,
    or_null: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Converted {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.conversion.data_type())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = self.or_null || args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), self.conversion.data_type(), nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return plan_err!("a cast takes one value");
        };
        let converted = self.converted(&value.to_array(1)?)?;
        Ok(match value {
            ColumnarValue::Array(_) => ColumnarValue::Array(converted),
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?),
        })
    }
}

impl Converted {
    fn converted(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = match values.data_type() {
            DataType::Dictionary(_, of) => arrow_cast(values, of)?,
            DataType::LargeUtf8 | DataType::Utf8View => arrow_cast(values, &DataType::Utf8)?,
            DataType::Float16 => arrow_cast(values, &DataType::Float32)?,
            DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
                arrow_cast(values, &DataType::Decimal128(*precision, *scale))?
            }
            DataType::Time32(_) | DataType::Time64(_) => {
                arrow_cast(values, &DataType::Time64(TimeUnit::Nanosecond))?
            }
            _ => Arc::clone(values),
        };
        match &self.conversion {
            Conversion::Text => texts(&values),
            Conversion::Truth => {
                let truths = self.each(values.as_string::<i32>().iter(), number::truth)?;
                Ok(Arc::new(BooleanArray::from(truths)))
            }
            Conversion::Decimal(precision, scale) => {
                let most = 10_i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
                let numbers = self.each(values.as_string::<i32>().iter(), |text| {
                    number::scaled(text, *scale).filter(|number| number.unsigned_abs() < most.unsigned_abs())
                })?;
                let numbers = Decimal128Array::from(numbers);
                Ok(Arc::new(numbers.with_precision_and_scale(*precision, *scale)?))
            }
            Conversion::Whole(data_type) => {
                let numbers = self.wholes(&values)?;
                match data_type {
                    DataType::Int8 => self.narrowed::<Int8Type>(numbers),
                    DataType::Int16 => self.narrowed::<Int16Type>(numbers),
                    DataType::Int32 => self.narrowed::<Int32Type>(numbers),
                    DataType::Int64 => self.narrowed::<Int64Type>(numbers),
                    DataType::UInt8 => self.narrowed::<UInt8Type>(numbers),
                    DataType::UInt16 => self.narrowed::<UInt16Type>(numbers),
                    DataType::UInt32 => self.narrowed::<UInt32Type>(numbers),
                    _ => self.narrowed::<UInt64Type>(numbers),
                }
            }
        }
    }

    fn wholes(&self, values: &ArrayRef) -> Result<Vec<Option<i128>>> {
        match values.data_type() {
            DataType::Float32 => {
                let floats = values.as_primitive::<Float32Type>().iter();
                self.each(floats, |value| number::rounded(f64::from(value)))
            }
            DataType::Float64 => self.each(values.as_primitive::<Float64Type>().iter(), number::rounded),
            DataType::Decimal128(_, scale) => {
                let decimals = values.as_primitive::<Decimal128Type>().iter();
                self.each(decimals, |value| number::whole(value, *scale))
            }
            _ => self.each(values.as_string::<i32>().iter(), |text| number::scaled(text, 0)),
        }
    }

    fn narrowed<T: ArrowPrimitiveType>(&self, numbers: Vec<Option<i128>>) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let narrow = self.each(numbers.into_iter(), |number| T::Native::try_from(number).ok())?;
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(narrow)))
    }

    /// What each value that is there is converted to.
    fn each<V: Copy + std::fmt::Debug, C>(
        &self,
        values: impl Iterator<Item = Option<V>>,
        convert: impl Fn(V) -> Option<C>,
    ) -> Result<Vec<Option<C>>> {
        values
            .map(|value| match value {
                None => Ok(None),
                Some(value) => match convert(value) {
                    None if !self.or_null => exec_err!(
                        "found {value:?}, expected a value that {} has",
                        self.conversion.data_type()
                    ),
                    converted => Ok(converted),
                },
            })
            .collect()
    }
}

fn texts(values: &ArrayRef) -> Result<ArrayRef> {
    let texts: StringArray = match values.data_type() {
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>().iter();
            let text = |value: f32| text::float(f64::from(value), &format!("{value:e}"));
            floats.map(|value| value.map(text)).collect()
        }
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>().iter();
            let text = |value: f64| text::float(value, &format!("{value:e}"));
            floats.map(|value| value.map(text)).collect()
        }
        DataType::Time64(unit) => integers::<Time64NanosecondType>(values, |value| text::time(value, *unit)),
        DataType::Timestamp(unit, zone) => {
            let text = |value| text::timestamp(value, *unit, zone.is_some());
            match unit {
                TimeUnit::Second => integers::<TimestampSecondType>(values, text),
                TimeUnit::Millisecond => integers::<TimestampMillisecondType>(values, text),
                TimeUnit::Microsecond => integers::<TimestampMicrosecondType>(values, text),
                TimeUnit::Nanosecond => integers::<TimestampNanosecondType>(values, text),
            }
        }
        DataType::Duration(unit) => {
            let text = |value| text::duration(value, *unit);
            match unit {
                TimeUnit::Second => integers::<DurationSecondType>(values, text),
                TimeUnit::Millisecond => integers::<DurationMillisecondType>(values, text),
                TimeUnit::Microsecond => integers::<DurationMicrosecondType>(values, text),
                TimeUnit::Nanosecond => integers::<DurationNanosecondType>(values, text),
            }
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>().iter();
            intervals.map(|value| value.map(text::interval)).collect()
        }
        other => return exec_err!("a {other} has no text of its own"),
    };
    Ok(Arc::new(texts))
}

fn integers<T: ArrowPrimitiveType<Native = i64>>(
    values: &ArrayRef,
    text: impl Fn(i64) -> String,
) -> StringArray {
    let values = values.as_primitive::<T>().iter();
    values.map(|value| value.map(&text)).collect()
}
