//! Positions of number literals among the values of a type.

use std::cmp::Ordering;

use arrow_buffer::i256;
use arrow_schema::DataType;
use datafusion::common::ScalarValue;

use super::ordered_type::{LiteralPosition, OrderedType};

/// The exact position of a number.
pub(super) fn number_position(value: &ScalarValue, ordered_type: &OrderedType) -> Option<LiteralPosition> {
    let (number, scale) = match value {
        ScalarValue::Decimal32(Some(number), _, scale) => (i256::from(*number), *scale),
        ScalarValue::Decimal64(Some(number), _, scale) => (i256::from(*number), *scale),
        ScalarValue::Decimal128(Some(number), _, scale) => (i256::from_i128(*number), *scale),
        ScalarValue::Decimal256(Some(number), _, scale) => (*number, *scale),
        ScalarValue::Float32(Some(number)) => return float_position(&format!("{number:e}"), ordered_type),
        ScalarValue::Float64(Some(number)) => return float_position(&format!("{number:e}"), ordered_type),
        whole if whole.data_type().is_integer() => match whole.cast_to(&DataType::Decimal128(20, 0)).ok()? {
            ScalarValue::Decimal128(Some(number), ..) => (i256::from_i128(number), 0),
            _ => return None,
        },
        _ => return None,
    };
    Some(decimal_position(number, i32::from(scale), ordered_type))
}

/// The position of a float by its shortest decimal form, which is the one that the query contains.
fn float_position(text: &str, ordered_type: &OrderedType) -> Option<LiteralPosition> {
    match text {
        "inf" | "NaN" => return Some(LiteralPosition::Above),
        "-inf" => return Some(LiteralPosition::Below),
        _ => {}
    }
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(decimal_position(i256::from_i128(number), scale, ordered_type))
}

/// The position of `number * 10^-scale`.
fn decimal_position(number: i256, scale: i32, ordered_type: &OrderedType) -> LiteralPosition {
    let power = |exponent: i32| i256::from(10_i64).checked_pow(u32::try_from(exponent).ok()?);
    let shift = i32::from(ordered_type.decimal_scale) - scale;
    let (mul, div) = if shift < 0 {
        (Some(i256::ONE), power(-shift))
    } else {
        (power(shift), Some(i256::ONE))
    };
    let sign = number.cmp(&i256::ZERO);
    match (mul, div, sign) {
        (_, _, Ordering::Equal) => ordered_type.position(i256::ZERO, i256::ONE, i256::ONE),
        (Some(mul), Some(div), _) => ordered_type.position(number, mul, div),
        // The power of ten does not fit in 256 bits: the number is almost zero, or larger than any value of the type.
        (Some(_), None, Ordering::Greater) => ordered_type.position(i256::ONE, i256::ONE, i256::from(2_i64)),
        (Some(_), None, _) => ordered_type.position(i256::MINUS_ONE, i256::ONE, i256::from(2_i64)),
        (None, _, Ordering::Greater) => LiteralPosition::Above,
        (None, ..) => LiteralPosition::Below,
    }
}
