//! Converts the texts of a column to its type.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, StringArray,
    types::{
        ArrowTimestampType, Date32Type, Float64Type, Int64Type, TimestampMicrosecondType,
        TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use arrow_schema::{DataType, TimeUnit};

use super::{
    super::number,
    time::DateTime,
    types::{local_units, parse_boolean, zoned_units},
};

/// Parses the values of a column.
///
/// # Errors
/// The first text that the type cannot hold without loss.
pub(super) fn parse<'a>(texts: &'a StringArray, data_type: &DataType) -> Result<ArrayRef, &'a str> {
    match data_type {
        DataType::Boolean => {
            let values = texts.iter().map(|text| parse_value(text, parse_boolean));
            let values = values.collect::<Result<BooleanArray, _>>()?;
            Ok(Arc::new(values))
        }
        DataType::Int64 => parse_primitives::<Int64Type>(texts, number::parse_int),
        DataType::Float64 => parse_primitives::<Float64Type>(texts, number::parse_float),
        DataType::Date32 => parse_primitives::<Date32Type>(texts, |text| DateTime::parse(text)?.days()),
        DataType::Timestamp(TimeUnit::Second, zone) => {
            parse_times::<TimestampSecondType>(texts, zone.as_ref())
        }
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            parse_times::<TimestampMillisecondType>(texts, zone.as_ref())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            parse_times::<TimestampMicrosecondType>(texts, zone.as_ref())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            parse_times::<TimestampNanosecondType>(texts, zone.as_ref())
        }
        _ => Ok(Arc::new(texts.clone())),
    }
}

fn parse_value<T>(text: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, &str> {
    text.map(|text| parse(text).ok_or(text)).transpose()
}

fn parse_primitives<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef, &str> {
    Ok(Arc::new(primitive_array::<T>(texts, parse)?))
}

fn parse_times<'a, T: ArrowTimestampType>(
    texts: &'a StringArray,
    zone: Option<&Arc<str>>,
) -> Result<ArrayRef, &'a str> {
    let units = if zone.is_some() { zoned_units } else { local_units };
    let times = primitive_array::<T>(texts, |text| units(DateTime::parse(text)?, T::UNIT))?;
    Ok(Arc::new(times.with_timezone_opt(zone.cloned())))
}

fn primitive_array<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>, &str> {
    let mut values = PrimitiveArray::<T>::builder(texts.len());
    for text in texts {
        values.append_option(parse_value(text, &parse)?);
    }
    Ok(values.finish())
}
