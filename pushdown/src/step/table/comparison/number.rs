//! Numbers among those of a column.

use std::cmp::Ordering;

use arrow_buffer::i256;
use arrow_schema::DataType;
use datafusion::common::ScalarValue;

use super::place::{Place, Scale};

/// The place of a number, with all digits that it has.
pub(super) fn number(value: &ScalarValue, scale: &Scale) -> Option<Place> {
    let (number, digits) = match value {
        ScalarValue::Decimal32(Some(number), _, digits) => (i256::from(*number), *digits),
        ScalarValue::Decimal64(Some(number), _, digits) => (i256::from(*number), *digits),
        ScalarValue::Decimal128(Some(number), _, digits) => (i256::from_i128(*number), *digits),
        ScalarValue::Decimal256(Some(number), _, digits) => (*number, *digits),
        ScalarValue::Float32(Some(number)) => return float(&format!("{number:e}"), scale),
        ScalarValue::Float64(Some(number)) => return float(&format!("{number:e}"), scale),
        whole if whole.data_type().is_integer() => match whole.cast_to(&DataType::Decimal128(20, 0)).ok()? {
            ScalarValue::Decimal128(Some(number), ..) => (i256::from_i128(number), 0),
            _ => return None,
        },
        _ => return None,
    };
    Some(of_digits(number, i32::from(digits), scale))
}

/// A number with a fraction by the fewest digits that stand for it, which are those that were written.
fn float(text: &str, scale: &Scale) -> Option<Place> {
    match text {
        "inf" | "NaN" => return Some(Place::Above),
        "-inf" => return Some(Place::Below),
        _ => {}
    }
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let behind = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(of_digits(i256::from_i128(number), behind, scale))
}

/// A number with so many of its digits behind the point.
fn of_digits(number: i256, digits: i32, scale: &Scale) -> Place {
    let power = |exponent: i32| i256::from(10_i64).checked_pow(u32::try_from(exponent).ok()?);
    let more = i32::from(scale.digits) - digits;
    let (mul, div) = if more < 0 {
        (Some(i256::ONE), power(-more))
    } else {
        (power(more), Some(i256::ONE))
    };
    let sign = number.cmp(&i256::ZERO);
    match (mul, div, sign) {
        (_, _, Ordering::Equal) => scale.place(i256::ZERO, i256::ONE, i256::ONE),
        (Some(mul), Some(div), _) => scale.place(number, mul, div),
        // So small that it is next to nothing, or larger than anything.
        (Some(_), None, Ordering::Greater) => scale.place(i256::ONE, i256::ONE, i256::from(2_i64)),
        (Some(_), None, _) => scale.place(i256::MINUS_ONE, i256::ONE, i256::from(2_i64)),
        (None, _, Ordering::Greater) => Place::Above,
        (None, ..) => Place::Below,
    }
}
