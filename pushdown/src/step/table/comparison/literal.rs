//! What a literal is, and what is computed of literals alone, among the values that it is compared with.

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
    number::number,
    place::{Place, Scale},
    text::{self, Moment, Zone},
    unit::{DAY, INTERVAL, Kind, interval, unit},
};
use crate::{Error, pipeline::excerpt, step::table::fault};

/// Nanoseconds of a microsecond, which is what `DuckDB` has of times and timestamps unless a column has more.
const MICROSECOND: i128 = 1_000;

/// Finds the places of literals.
pub(super) struct Literals<'a> {
    state: &'a SessionState,
}

impl<'a> Literals<'a> {
    pub(super) const fn new(state: &'a SessionState) -> Self {
        Self { state }
    }

    /// Where an expression is among the values of `scale`; `None` where it is no literal of their kind.
    ///
    /// # Errors
    /// For a text that is none of them.
    pub(super) fn place(&self, expr: &Expr, scale: &Scale) -> Result<Option<Place>> {
        if !scale.is_plain() {
            return Ok(None);
        }
        match expr {
            Expr::Literal(value, _) => of_value(value, scale),
            // The engine would read fewer texts, and have nanoseconds of them.
            Expr::Cast(cast)
                if let Expr::Literal(value, _) = cast.expr.as_ref()
                    && let Some(Some(text)) = value.try_as_str()
                    && of_kind(cast.field.data_type()) == Some(scale.kind) =>
            {
                of_text(text, cast.field.data_type(), scale).map(Some)
            }
            other => match self.computed(other) {
                Some(value) => of_value(&value, scale),
                None => Ok(None),
            },
        }
    }

    /// What an expression of literals gives; `None` where it has others, or fails: the query will.
    fn computed(&self, expr: &Expr) -> Option<ScalarValue> {
        if let Expr::Negative(of) = expr
            && let Expr::Literal(value, _) = of.as_ref()
        {
            return value.arithmetic_negate().ok();
        }
        let mut constant = true;
        let walked = expr.apply(|expr| {
            constant &= matches!(
                expr,
                Expr::Literal(..)
                    | Expr::Cast(_)
                    | Expr::TryCast(_)
                    | Expr::BinaryExpr(_)
                    | Expr::Negative(_)
                    | Expr::ScalarFunction(_)
            );
            Ok(if constant {
                TreeNodeRecursion::Continue
            } else {
                TreeNodeRecursion::Stop
            })
        });
        (constant && walked.is_ok()).then_some(())?;
        let computed = self
            .state
            .create_physical_expr(expr.clone(), &DFSchema::empty())
            .ok()?;
        let row = RecordBatchOptions::new().with_row_count(Some(1));
        let row = RecordBatch::try_new_with_options(Schema::empty().into(), Vec::new(), &row).ok()?;
        match computed.evaluate(&row).ok()? {
            ColumnarValue::Scalar(value) => Some(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0).ok(),
        }
    }
}

/// The value of a text that is cast to a time or a timestamp, if the type has it: the engine reads fewer texts.
///
/// # Errors
/// For a text that is none.
pub(super) fn of_cast(cast: &Cast) -> Result<Option<ScalarValue>> {
    let to = cast.field.data_type();
    let Expr::Literal(value, _) = cast.expr.as_ref() else {
        return Ok(None);
    };
    let (Some(Some(text)), Some(Kind::Instant | Kind::TimeOfDay)) = (value.try_as_str(), of_kind(to)) else {
        return Ok(None);
    };
    let Some(scale) = Scale::of_type(to.clone()) else {
        return Ok(None);
    };
    Ok(scale.literal(&of_text(text, to, &scale)?))
}

/// The kind of values that a text is cast to.
fn of_kind(data_type: &DataType) -> Option<Kind> {
    match data_type {
        DataType::FixedSizeBinary(16) => Some(Kind::Identifier),
        other => Some(unit(other)?.0).filter(|kind| *kind != Kind::Span),
    }
}

fn of_value(value: &ScalarValue, scale: &Scale) -> Result<Option<Place>> {
    if value.is_null() {
        return Ok(Some(Place::Null));
    }
    if let Some(Some(text)) = value.try_as_str() {
        return match scale.kind {
            // The engine's.
            Kind::Number => Ok(None),
            _ => of_text(text, &scale.data_type, scale).map(Some),
        };
    }
    Ok(match scale.kind {
        Kind::Number => number(value, scale),
        Kind::Identifier => match value {
            ScalarValue::FixedSizeBinary(16, Some(bytes)) => {
                let bytes = bytes.as_slice().try_into().ok();
                let number = bytes.map(u128::from_be_bytes);
                number.map(|number| Place::At(i256::from_parts(number, 0)))
            }
            _ => None,
        },
        Kind::Instant | Kind::TimeOfDay | Kind::Span => {
            nanoseconds(value, scale.kind).map(|nanoseconds| of_nanoseconds(nanoseconds, scale))
        }
    })
}

fn of_nanoseconds(nanoseconds: i128, scale: &Scale) -> Place {
    scale.place(
        i256::from_i128(nanoseconds),
        i256::ONE,
        i256::from_i128(scale.nanoseconds),
    )
}

/// Nanoseconds of a value of time.
fn nanoseconds(value: &ScalarValue, kind: Kind) -> Option<i128> {
    let (found, nanoseconds) = unit(&value.data_type())?;
    (found == kind).then_some(())?;
    if let Some(span) = interval(value) {
        return Some(span);
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(Some(value)) => Some(i128::from(value) * nanoseconds),
        _ => None,
    }
}

/// A text, read as a value of `of`.
fn of_text(text: &str, of: &DataType, scale: &Scale) -> Result<Place> {
    let cut = |nanoseconds: i128, unit: i128| of_nanoseconds(nanoseconds.div_euclid(unit) * unit, scale);
    let found = match (of_kind(of), of) {
        (Some(Kind::Identifier), _) => text::uuid(text).map(|number| Place::At(i256::from_parts(number, 0))),
        (Some(Kind::TimeOfDay), of) => text::time_of_day(text).map(|time| cut(time, resolution(of))),
        (Some(Kind::Instant), of) => match text::moment(text) {
            None => None,
            Some(Moment::Infinity { is_negative }) => Some(scale.infinity(is_negative)),
            Some(Moment::At(at, zone)) => match of {
                DataType::Timestamp(_, Some(_)) => utc(at, zone).map(|at| cut(at, resolution(of))),
                // Without a zone what a clock shows counts, in whichever zone it is.
                DataType::Timestamp(..) => Some(cut(at, resolution(of))),
                _ => Some(cut(at, DAY)),
            },
        },
        _ => {
            let span = ScalarValue::from(text).cast_to(&INTERVAL).ok();
            let span = span.as_ref().and_then(interval);
            span.map(|span| of_nanoseconds(span, scale))
        }
    };
    found.ok_or_else(|| {
        let (name, form) = match of_kind(of) {
            Some(Kind::Identifier) => ("UUID", "32 hexadecimal digits"),
            Some(Kind::TimeOfDay) => ("time", "HH:MM[:SS[.fraction]]"),
            Some(Kind::Instant) => ("timestamp", "YYYY-MM-DD[ HH:MM[:SS[.fraction]][zone]]"),
            _ => ("interval", "a number and its unit"),
        };
        let text = excerpt(text, 60);
        fault::outward(Error::unsuitable(format!(
            "invalid {name}: expected {form}, found `{text}`"
        )))
    })
}

/// Nanoseconds of what a text of this type can say: those of nanoseconds have them, others microseconds.
const fn resolution(of: &DataType) -> i128 {
    match of {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time64(TimeUnit::Nanosecond) => 1,
        _ => MICROSECOND,
    }
}

/// Nanoseconds in UTC of what a clock in a zone shows.
fn utc(at: i128, zone: Zone<'_>) -> Option<i128> {
    let name = match zone {
        Zone::Ahead(ahead) => return Some(at - ahead),
        Zone::Named(name) => name,
    };
    let (micros, below) = (
        i64::try_from(at.div_euclid(MICROSECOND)).ok()?,
        at.rem_euclid(MICROSECOND),
    );
    let clock = TimestampMicrosecondArray::from_value(micros, 1);
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some(name.into()));
    let zoned = arrow_cast::cast(&clock, &zoned).ok()?;
    let zoned = zoned
        .as_primitive_opt::<TimestampMicrosecondType>()?
        .iter()
        .next()??;
    Some(i128::from(zoned) * MICROSECOND + below)
}
