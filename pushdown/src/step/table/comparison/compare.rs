//! Comparisons of times and spans of different units, none of which is a literal: by whole nanoseconds.

use std::cmp::Ordering;

use arrow_array::{
    Array, ArrayRef, BooleanArray,
    cast::AsArray as _,
    types::{Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType},
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, IntervalUnit};
use datafusion::{
    error::Result,
    logical_expr::{
        ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility,
    },
};

use super::unit::{INTERVAL, span, unit};

/// Whether values of these types are compared here.
pub(super) fn needed(left: &DataType, right: &DataType) -> bool {
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
    if (is_interval(left) && right.is_string()) || (left.is_string() && is_interval(right)) {
        return true;
    }
    match (unit(plain(left)), unit(plain(right))) {
        (Some((one, _)), Some((other, _))) => {
            one == other && (plain(left) != plain(right) || is_interval(left))
        }
        _ => false,
    }
}

/// The type of values that may stand in a dictionary.
fn plain(of: &DataType) -> &DataType {
    match of {
        DataType::Dictionary(_, value) => value,
        other => other,
    }
}

/// `left op right`.
pub(super) fn call(left: Expr, op: Operator, right: Expr) -> Expr {
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(Compare { op, signature }).call(vec![left, right])
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Compare {
    op: Operator,
    signature: Signature,
}

impl Compare {
    fn holds(&self, left: Option<i128>, right: Option<i128>) -> Option<bool> {
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

impl ScalarUDFImpl for Compare {
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
        let found: BooleanArray = pairs.map(|(left, right)| self.holds(left, right)).collect();
        Ok(ColumnarValue::Array(std::sync::Arc::new(found)))
    }
}

/// The nanoseconds of values of time.
fn nanoseconds(values: &ArrayRef) -> Result<Vec<Option<i128>>> {
    let values = match values.data_type() {
        DataType::Dictionary(_, of) => cast(values, of)?,
        text if text.is_string() => cast(values, &INTERVAL)?,
        _ => ArrayRef::clone(values),
    };
    if let DataType::Interval(unit) = values.data_type() {
        return Ok(match unit {
            IntervalUnit::YearMonth => {
                let months = values.as_primitive::<IntervalYearMonthType>().iter();
                months.map(|months| Some(span(months?, 0, 0))).collect()
            }
            IntervalUnit::DayTime => {
                let spans = values.as_primitive::<IntervalDayTimeType>().iter();
                let of = |days, milliseconds| span(0, days, i64::from(milliseconds) * 1_000_000);
                spans
                    .map(|found| found.map(|found| of(found.days, found.milliseconds)))
                    .collect()
            }
            IntervalUnit::MonthDayNano => {
                let spans = values.as_primitive::<IntervalMonthDayNanoType>().iter();
                let of =
                    spans.map(|found| found.map(|found| span(found.months, found.days, found.nanoseconds)));
                of.collect()
            }
        });
    }
    let lacks = || datafusion::common::internal_datafusion_err!("{} has no unit", values.data_type());
    let (_, nanoseconds) = unit(values.data_type()).ok_or_else(lacks)?;
    let ticks = cast(&values, &DataType::Int64)?;
    let ticks = ticks.as_primitive::<Int64Type>().iter();
    Ok(ticks
        .map(|ticks| Some(i128::from(ticks?) * nanoseconds))
        .collect())
}
