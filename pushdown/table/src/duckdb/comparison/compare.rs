//! Comparisons of times and intervals of different units, neither of which is a literal, in nanoseconds.

use std::cmp::Ordering;

use arrow_array::{
    Array, ArrayRef, BooleanArray,
    cast::AsArray as _,
    types::{Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType},
};
use arrow_buffer::{IntervalDayTime, IntervalMonthDayNano};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit};
use datafusion::{
    error::Result,
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility,
    },
};

use super::unit::{INTERVAL, interval_nanoseconds, kind_and_unit};

/// Whether values of these types require a comparison in nanoseconds.
pub(super) fn is_required(left: &DataType, right: &DataType) -> bool {
    let is_interval = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    if (is_interval(left) && right.is_string()) || (left.is_string() && is_interval(right)) {
        return true;
    }
    match (kind_and_unit(value_type(left)), kind_and_unit(value_type(right))) {
        (Some((one, _)), Some((other, _))) => {
            one == other && (value_type(left) != value_type(right) || is_interval(left))
        }
        _ => false,
    }
}

/// The type of the values, without a dictionary.
fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// `left op right`.
pub(super) fn compare_nanoseconds(left: Expr, op: Operator, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(CompareNanoseconds { op, signature }).call(vec![left, right])
}

/// A comparison of two values of time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct CompareNanoseconds {
    op: Operator,
    signature: Signature,
}

impl CompareNanoseconds {
    fn evaluate(&self, left: Option<i128>, right: Option<i128>) -> Option<bool> {
        match self.op {
            Operator::IsDistinctFrom => return Some(left != right),
            Operator::IsNotDistinctFrom => return Some(left == right),
            _ => {}
        }
        let order = left?.cmp(&right?);
        Some(match self.op {
            Operator::Eq => order == Ordering::Equal,
            Operator::NotEq => order != Ordering::Equal,
            Operator::Lt => order == Ordering::Less,
            Operator::LtEq => order != Ordering::Greater,
            Operator::Gt => order == Ordering::Greater,
            _ => order != Ordering::Less,
        })
    }
}

impl ScalarUDFImpl for CompareNanoseconds {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Field::new(self.name(), DataType::Boolean, nullable).into())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = datafusion::common::utils::take_function_args(self.name(), &arrays)?;
        let (left, right) = (nanoseconds(left)?, nanoseconds(right)?);
        let pairs = left.into_iter().zip(right);
        let results: BooleanArray = pairs.map(|(left, right)| self.evaluate(left, right)).collect();
        Ok(ColumnarValue::Array(std::sync::Arc::new(results)))
    }
}

/// Converts values of time to nanoseconds.
fn nanoseconds(values: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let values = match values.data_type() {
        DataType::Dictionary(_, value_type) => cast(values, value_type)?,
        text if text.is_string() => cast(values, &INTERVAL)?,
        _ => ArrayRef::clone(values),
    };
    if let DataType::Interval(unit) = values.data_type() {
        return Ok(match unit {
            IntervalUnit::YearMonth => {
                let months = values.as_primitive::<IntervalYearMonthType>().iter();
                months
                    .map(|months| Some(interval_nanoseconds(months?, 0, 0)))
                    .collect()
            }
            IntervalUnit::DayTime => {
                let intervals = values.as_primitive::<IntervalDayTimeType>().iter();
                let convert = |value: IntervalDayTime| {
                    interval_nanoseconds(0, value.days, i64::from(value.milliseconds) * 1_000_000)
                };
                intervals.map(|value| value.map(convert)).collect()
            }
            IntervalUnit::MonthDayNano => {
                let intervals = values.as_primitive::<IntervalMonthDayNanoType>().iter();
                let convert = |value: IntervalMonthDayNano| {
                    interval_nanoseconds(value.months, value.days, value.nanoseconds)
                };
                intervals.map(|value| value.map(convert)).collect()
            }
        });
    }
    let no_unit = || datafusion::common::internal_datafusion_err!("{} has no unit", values.data_type());
    let (_, nanoseconds) = kind_and_unit(values.data_type()).ok_or_else(no_unit)?;
    let ticks = cast(&values, &DataType::Int64)?;
    Ok(ticks
        .as_primitive::<Int64Type>()
        .iter()
        .map(|ticks| Some(i128::from(ticks?) * nanoseconds))
        .collect())
}
