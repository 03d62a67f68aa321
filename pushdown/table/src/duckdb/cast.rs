//! Casts with `DuckDB`'s rounding, parsing and formatting.

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

/// `CAST`: fails if a value has no equivalent in the target type.
pub(super) fn rewrite_cast(to: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let from = to.expr.get_type(schema)?;
    match Conversion::for_types(&from, to.field.data_type()) {
        Some(conversion) => Ok(Transformed::yes(conversion.call(*to.expr, false))),
        None => Ok(Transformed::no(Expr::Cast(to))),
    }
}

/// `TRY_CAST`: NULL if a value has no equivalent in the target type.
pub(super) fn rewrite_try_cast(to: TryCast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let from = to.expr.get_type(schema)?;
    match Conversion::for_types(&from, to.field.data_type()) {
        Some(conversion) => Ok(Transformed::yes(conversion.call(*to.expr, true))),
        None => Ok(Transformed::no(Expr::TryCast(to))),
    }
}

/// Casts an expression of this type to text, if Arrow would format it differently; returns whether it did.
pub(super) fn cast_to_text(expr: &mut Expr, data_type: &DataType) -> bool {
    let Some(conversion) = Conversion::for_types(data_type, &DataType::Utf8) else {
        return false;
    };
    *expr = conversion.call(mem::take(expr), false);
    true
}

/// A cast whose results differ from Arrow's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Conversion {
    /// From numbers or texts to integers of this type.
    Integer(DataType),
    /// From texts to decimals of this precision and scale.
    Decimal(u8, i8),
    /// From texts to Booleans.
    Boolean,
    /// To texts.
    Text,
}

impl Conversion {
    fn for_types(from: &DataType, to: &DataType) -> Option<Self> {
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
            integer if integer.is_integer() && (is_number || is_text(from)) => {
                Some(Self::Integer(integer.clone()))
            }
            DataType::Decimal128(precision, scale) if is_text(from) => {
                Some(Self::Decimal(*precision, *scale))
            }
            DataType::Boolean if is_text(from) => Some(Self::Boolean),
            text if is_text(text) && is_formatted_differently(from) => Some(Self::Text),
            _ => None,
        }
    }

    fn call(self, expr: Expr, or_null: bool) -> Expr {
        let function = CastFunction {
            conversion: self,
            or_null,
            signature: Signature::any(1, Volatility::Immutable),
        };
        ScalarUDF::new_from_impl(function).call(vec![expr])
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Integer(data_type) => data_type.clone(),
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Self::Boolean => DataType::Boolean,
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

const fn is_formatted_differently(data_type: &DataType) -> bool {
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
struct CastFunction {
    conversion: Conversion,
    or_null: bool,
    signature: Signature,
}

impl ScalarUDFImpl for CastFunction {
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
            return plan_err!("invalid arguments of a cast: expected one value");
        };
        let converted = self.convert(&value.to_array(1)?)?;
        Ok(match value {
            ColumnarValue::Array(_) => ColumnarValue::Array(converted),
            ColumnarValue::Scalar(_) => ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?),
        })
    }
}

impl CastFunction {
    fn convert(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let values = match values.data_type() {
            DataType::Dictionary(_, value_type) => arrow_cast(values, value_type)?,
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
            Conversion::Text => format_texts(&values),
            Conversion::Boolean => {
                let booleans = self.convert_each(values.as_string::<i32>().iter(), number::parse_bool)?;
                Ok(Arc::new(BooleanArray::from(booleans)))
            }
            Conversion::Decimal(precision, scale) => {
                let bound = 10_i128.checked_pow(u32::from(*precision)).unwrap_or(i128::MAX);
                let numbers = self.convert_each(values.as_string::<i32>().iter(), |text| {
                    number::parse_scaled(text, *scale)
                        .filter(|number| number.unsigned_abs() < bound.unsigned_abs())
                })?;
                let decimals = Decimal128Array::from(numbers);
                Ok(Arc::new(decimals.with_precision_and_scale(*precision, *scale)?))
            }
            Conversion::Integer(data_type) => {
                let numbers = self.round(&values)?;
                match data_type {
                    DataType::Int8 => self.narrow::<Int8Type>(numbers),
                    DataType::Int16 => self.narrow::<Int16Type>(numbers),
                    DataType::Int32 => self.narrow::<Int32Type>(numbers),
                    DataType::Int64 => self.narrow::<Int64Type>(numbers),
                    DataType::UInt8 => self.narrow::<UInt8Type>(numbers),
                    DataType::UInt16 => self.narrow::<UInt16Type>(numbers),
                    DataType::UInt32 => self.narrow::<UInt32Type>(numbers),
                    _ => self.narrow::<UInt64Type>(numbers),
                }
            }
        }
    }

    fn round(&self, values: &ArrayRef) -> Result<Vec<Option<i128>>> {
        match values.data_type() {
            DataType::Float32 => {
                let floats = values.as_primitive::<Float32Type>().iter();
                self.convert_each(floats, |value| number::round_float(f64::from(value)))
            }
            DataType::Float64 => {
                self.convert_each(values.as_primitive::<Float64Type>().iter(), number::round_float)
            }
            DataType::Decimal128(_, scale) => {
                let decimals = values.as_primitive::<Decimal128Type>().iter();
                self.convert_each(decimals, |value| number::round_decimal(value, *scale))
            }
            _ => self.convert_each(values.as_string::<i32>().iter(), |text| {
                number::parse_scaled(text, 0)
            }),
        }
    }

    fn narrow<T: ArrowPrimitiveType>(&self, numbers: Vec<Option<i128>>) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let narrowed = self.convert_each(numbers.into_iter(), |number| T::Native::try_from(number).ok())?;
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(narrowed)))
    }

    /// Converts each value that is not null.
    fn convert_each<V: Copy + std::fmt::Debug, C>(
        &self,
        values: impl Iterator<Item = Option<V>>,
        convert: impl Fn(V) -> Option<C>,
    ) -> Result<Vec<Option<C>>> {
        values
            .map(|value| match value {
                None => Ok(None),
                Some(value) => match convert(value) {
                    None if !self.or_null => {
                        exec_err!("cannot cast {value:?} to {}", self.conversion.data_type())
                    }
                    converted => Ok(converted),
                },
            })
            .collect()
    }
}

fn format_texts(values: &ArrayRef) -> Result<ArrayRef> {
    let texts: StringArray = match values.data_type() {
        DataType::Float32 => {
            let floats = values.as_primitive::<Float32Type>().iter();
            let text = |value: f32| text::format_float(f64::from(value), &format!("{value:e}"));
            floats.map(|value| value.map(text)).collect()
        }
        DataType::Float64 => {
            let floats = values.as_primitive::<Float64Type>().iter();
            let text = |value: f64| text::format_float(value, &format!("{value:e}"));
            floats.map(|value| value.map(text)).collect()
        }
        DataType::Time64(unit) => {
            format_integers::<Time64NanosecondType>(values, |value| text::format_time(value, *unit))
        }
        DataType::Timestamp(unit, zone) => {
            let text = |value| text::format_timestamp(value, *unit, zone.is_some());
            match unit {
                TimeUnit::Second => format_integers::<TimestampSecondType>(values, text),
                TimeUnit::Millisecond => format_integers::<TimestampMillisecondType>(values, text),
                TimeUnit::Microsecond => format_integers::<TimestampMicrosecondType>(values, text),
                TimeUnit::Nanosecond => format_integers::<TimestampNanosecondType>(values, text),
            }
        }
        DataType::Duration(unit) => {
            let text = |value| text::format_duration(value, *unit);
            match unit {
                TimeUnit::Second => format_integers::<DurationSecondType>(values, text),
                TimeUnit::Millisecond => format_integers::<DurationMillisecondType>(values, text),
                TimeUnit::Microsecond => format_integers::<DurationMicrosecondType>(values, text),
                TimeUnit::Nanosecond => format_integers::<DurationNanosecondType>(values, text),
            }
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = values.as_primitive::<IntervalMonthDayNanoType>().iter();
            intervals.map(|value| value.map(text::format_interval)).collect()
        }
        other => return exec_err!("{other} has no text format of its own"),
    };
    Ok(Arc::new(texts))
}

fn format_integers<T: ArrowPrimitiveType<Native = i64>>(
    values: &ArrayRef,
    text: impl Fn(i64) -> String,
) -> StringArray {
    let values = values.as_primitive::<T>().iter();
    values.map(|value| value.map(&text)).collect()
}
