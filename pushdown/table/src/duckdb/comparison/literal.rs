//! Resolves literals, and constant expressions, to positions among the values that they are compared with.

use arrow_array::{
    RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, cast::AsArray as _,
    types::TimestampMicrosecondType,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, Schema, TimeUnit};
use datafusion::{
    common::{
        DFSchema, ScalarValue,
        tree_node::{TreeNode as _, TreeNodeRecursion},
    },
    error::Result,
    execution::SessionState,
    logical_expr::{Cast, ColumnarValue, Expr},
};

use super::{
    number::number_position,
    ordered_type::{LiteralPosition, OrderedType},
    text::{self, Instant, TimeZone},
    unit::{DAY, INTERVAL, ValueKind, kind_and_unit, literal_nanoseconds},
};
use crate::fault;
use pushdown_core::{Error, language::excerpt};

/// Nanoseconds of a microsecond, `DuckDB`'s resolution of times and timestamps unless a column has nanoseconds.
const MICROSECOND: i128 = 1_000;

/// Finds the positions of literals.
pub(super) struct LiteralResolver<'a> {
    state: &'a SessionState,
}

impl<'a> LiteralResolver<'a> {
    pub(super) const fn new(state: &'a SessionState) -> Self {
        Self { state }
    }

    /// The position of an expression among the values of a type; `None` if it is not a literal of their kind.
    ///
    /// # Errors
    /// For a text that cannot be parsed as the type.
    pub(super) fn position(
        &self,
        expr: &Expr,
        ordered_type: &OrderedType,
    ) -> Result<Option<LiteralPosition>> {
        if !ordered_type.has_literals() {
            return Ok(None);
        }
        match expr {
            Expr::Literal(value, _) => value_position(value, ordered_type),
            // The engine parses fewer formats, and parses them to nanoseconds.
            Expr::Cast(cast)
                if let Expr::Literal(value, _) = cast.expr.as_ref()
                    && let Some(Some(text)) = value.try_as_str()
                    && text_kind(cast.field.data_type()) == Some(ordered_type.kind) =>
            {
                text_position(text, cast.field.data_type(), ordered_type).map(Some)
            }
            other => match self.evaluate_constant(other) {
                Some(value) => value_position(&value, ordered_type),
                None => Ok(None),
            },
        }
    }

    /// The value of a constant expression; `None` if it is not constant, or if it fails, as the query will then.
    fn evaluate_constant(&self, expr: &Expr) -> Option<ScalarValue> {
        if let Expr::Negative(operand) = expr
            && let Expr::Literal(value, _) = operand.as_ref()
        {
            return value.arithmetic_negate().ok();
        }
        let mut is_constant = true;
        let walked = expr.apply(|expr| {
            is_constant &= matches!(
                expr,
                Expr::Literal(..)
                    | Expr::Cast(_)
                    | Expr::TryCast(_)
                    | Expr::BinaryExpr(_)
                    | Expr::Negative(_)
                    | Expr::ScalarFunction(_)
            );
            Ok(if is_constant {
                TreeNodeRecursion::Continue
            } else {
                TreeNodeRecursion::Stop
            })
        });
        (is_constant && walked.is_ok()).then_some(())?;
        let physical = self
            .state
            .create_physical_expr(expr.clone(), &DFSchema::empty())
            .ok()?;
        let one_row = RecordBatchOptions::new().with_row_count(Some(1));
        let batch = RecordBatch::try_new_with_options(Schema::empty().into(), Vec::new(), &one_row).ok()?;
        match physical.evaluate(&batch).ok()? {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0).ok(),
        }
    }
}

/// The value of a text literal that is cast to a time or a timestamp, if the type can represent it. The engine parses fewer
/// formats.
///
/// # Errors
/// For a text that is not a time or a timestamp.
pub(super) fn parse_cast(cast: &Cast) -> Result<Option<ScalarValue>> {
    let to = cast.field.data_type();
    let Expr::Literal(value, _) = cast.expr.as_ref() else {
        return Ok(None);
    };
    let (Some(Some(text)), Some(ValueKind::Instant | ValueKind::TimeOfDay)) =
        (value.try_as_str(), text_kind(to))
    else {
        return Ok(None);
    };
    let Some(ordered_type) = OrderedType::for_type(to.clone()) else {
        return Ok(None);
    };
    Ok(ordered_type.literal(&text_position(text, to, &ordered_type)?))
}

/// The kind of values that a text is parsed as for a target type.
fn text_kind(data_type: &DataType) -> Option<ValueKind> {
    match data_type {
        DataType::FixedSizeBinary(16) => Some(ValueKind::Uuid),
        other => Some(kind_and_unit(other)?.0).filter(|kind| *kind != ValueKind::Interval),
    }
}

fn value_position(value: &ScalarValue, ordered_type: &OrderedType) -> Result<Option<LiteralPosition>> {
    if value.is_null() {
        return Ok(Some(LiteralPosition::Null));
    }
    if let Some(Some(text)) = value.try_as_str() {
        return match ordered_type.kind {
            // The engine parses numbers.
            ValueKind::Number => Ok(None),
            _ => text_position(text, &ordered_type.data_type, ordered_type).map(Some),
        };
    }
    Ok(match ordered_type.kind {
        ValueKind::Number => number_position(value, ordered_type),
        ValueKind::Uuid => match value {
            ScalarValue::FixedSizeBinary(16, Some(bytes)) => {
                let bytes = bytes.as_slice().try_into().ok();
                let number = bytes.map(u128::from_be_bytes);
                number.map(|number| LiteralPosition::Exact(i256::from_parts(number, 0)))
            }
            _ => None,
        },
        ValueKind::Instant | ValueKind::TimeOfDay | ValueKind::Interval => {
            nanoseconds(value, ordered_type.kind)
                .map(|nanoseconds| nanoseconds_position(nanoseconds, ordered_type))
        }
    })
}

fn nanoseconds_position(nanoseconds: i128, ordered_type: &OrderedType) -> LiteralPosition {
    ordered_type.position(
        i256::from_i128(nanoseconds),
        i256::ONE,
        i256::from_i128(ordered_type.unit_nanoseconds),
    )
}

/// Nanoseconds of a value of time, if it is of this kind.
fn nanoseconds(value: &ScalarValue, kind: ValueKind) -> Option<i128> {
    let (value_kind, unit_nanoseconds) = kind_and_unit(&value.data_type())?;
    (value_kind == kind).then_some(())?;
    if let Some(nanoseconds) = literal_nanoseconds(value) {
        return Some(nanoseconds);
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(value)) => Some(i128::from(value) * unit_nanoseconds),
        _ => None,
    }
}

/// The position of a text, parsed as a value of `target_type`.
fn text_position(text: &str, target_type: &DataType, ordered_type: &OrderedType) -> Result<LiteralPosition> {
    let truncated = |nanoseconds: i128, unit_nanoseconds: i128| {
        let truncated = nanoseconds.div_euclid(unit_nanoseconds) * unit_nanoseconds;
        nanoseconds_position(truncated, ordered_type)
    };
    let resolution = resolution_nanoseconds(target_type);
    let position = match (text_kind(target_type), target_type) {
        (Some(ValueKind::Uuid), _) => {
            text::parse_uuid(text).map(|number| LiteralPosition::Exact(i256::from_parts(number, 0)))
        }
        (Some(ValueKind::TimeOfDay), _) => {
            text::parse_time_of_day(text).map(|time| truncated(time, resolution))
        }
        (Some(ValueKind::Instant), target_type) => match text::parse_instant(text) {
            None => None,
            Some(Instant::Infinity { is_negative }) => Some(ordered_type.infinity(is_negative)),
            Some(Instant::Local(local, time_zone)) => match target_type {
                DataType::Timestamp(_, Some(_)) => {
                    to_utc(local, time_zone).map(|utc| truncated(utc, resolution))
                }
                // Without a time zone in the type, the zone of the text is ignored.
                DataType::Timestamp(..) => Some(truncated(local, resolution)),
                _ => Some(truncated(local, DAY)),
            },
        },
        _ => {
            let interval = ScalarValue::from(text).cast_to(&INTERVAL).ok();
            let nanoseconds = interval.as_ref().and_then(literal_nanoseconds);
            nanoseconds.map(|nanoseconds| nanoseconds_position(nanoseconds, ordered_type))
        }
    };
    position.ok_or_else(|| {
        let (name, format) = match text_kind(target_type) {
            Some(ValueKind::Uuid) => ("UUID", "32 hexadecimal digits"),
            Some(ValueKind::TimeOfDay) => ("time", "HH:MM[:SS[.fraction]]"),
            Some(ValueKind::Instant) => ("timestamp", "YYYY-MM-DD[ HH:MM[:SS[.fraction]][zone]]"),
            _ => ("interval", "a number and its unit"),
        };
        let text = excerpt(text, 60);
        fault::to_datafusion(Error::unsuitable(format!(
            "invalid {name}: expected {format}, found `{text}`"
        )))
    })
}

/// The resolution of texts parsed as this type: nanoseconds for types of nanoseconds, otherwise microseconds.
const fn resolution_nanoseconds(data_type: &DataType) -> i128 {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time64(TimeUnit::Nanosecond) => 1,
        _ => MICROSECOND,
    }
}

/// Converts nanoseconds of local time to UTC.
fn to_utc(local: i128, time_zone: TimeZone<'_>) -> Option<i128> {
    let name = match time_zone {
        TimeZone::Offset(offset) => return Some(local - offset),
        TimeZone::Named(name) => name,
    };
    let (microseconds, remainder) = (
        i64::try_from(local.div_euclid(MICROSECOND)).ok()?,
        local.rem_euclid(MICROSECOND),
    );
    let local = TimestampMicrosecondArray::from_value(microseconds, 1);
    let zoned_type = DataType::Timestamp(TimeUnit::Microsecond, Some(name.into()));
    let zoned = arrow_cast::cast(&local, &zoned_type).ok()?;
    let utc = zoned
        .as_primitive_opt::<TimestampMicrosecondType>()?
        .iter()
        .next()??;
    Some(i128::from(utc) * MICROSECOND + remainder)
}
