//! Columns of a type, of their values' texts.

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
    time::Moment,
    types::{boolean, local, zoned},
};

/// The values of a column.
///
/// # Errors
/// The first text that the type does not hold without loss.
pub(super) fn read<'a>(texts: &'a StringArray, data_type: &DataType) -> Result<ArrayRef, &'a str> {
    match data_type {
        DataType::Boolean => {
            let values = texts.iter().map(|text| fit(text, boolean));
            let values = values.collect::<Result<BooleanArray, _>>()?;
            Ok(Arc::new(values))
        }
        DataType::Int64 => primitive::<Int64Type>(texts, number::int),
        DataType::Float64 => primitive::<Float64Type>(texts, number::float),
        DataType::Date32 => primitive::<Date32Type>(texts, |text| Moment::parse(text)?.days()),
        DataType::Timestamp(TimeUnit::Second, zone) => times::<TimestampSecondType>(texts, zone.as_ref()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => {
            times::<TimestampMillisecondType>(texts, zone.as_ref())
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            times::<TimestampMicrosecondType>(texts, zone.as_ref())
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            times::<TimestampNanosecondType>(texts, zone.as_ref())
        }
        _ => Ok(Arc::new(texts.clone())),
    }
}

fn fit<T>(text: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, &str> {
    text.map(|text| parse(text).ok_or(text)).transpose()
}

fn primitive<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<ArrayRef, &str> {
    Ok(Arc::new(values::<T>(texts, parse)?))
}

fn times<'a, T: ArrowTimestampType>(
    texts: &'a StringArray,
    zone: Option<&Arc<str>>,
) -> Result<ArrayRef, &'a str> {
    let units = if zone.is_some() { zoned } else { local };
    let times = values::<T>(texts, |text| units(Moment::parse(text)?, T::UNIT))?;
    Ok(Arc::new(times.with_timezone_opt(zone.cloned())))
}

fn values<T: ArrowPrimitiveType>(
    texts: &StringArray,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<PrimitiveArray<T>, &str> {
    let mut values = PrimitiveArray::<T>::builder(texts.len());
    for text in texts {
        values.append_option(fit(text, &parse)?);
    }
    Ok(values.finish())
}
