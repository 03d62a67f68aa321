//! Values of columns as Python objects: those that pyarrow's `to_pylist` returns.

use std::collections::HashMap;

use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, OffsetSizeTrait, PrimitiveArray, cast::AsArray as _, types,
};
use arrow_schema::{DataType, Field, TimeUnit};
use pyo3::{
    IntoPyObjectExt as _,
    prelude::*,
    types::{PyBytes, PyDict, PyList, PyTuple},
};

use crate::error::config;

/// Ordinal of 1970-01-01 in Python's `datetime`.
const EPOCH_ORDINAL: i64 = 719_163;
const MILLIS_PER_DAY: i64 = 86_400_000;

/// The objects of one array.
type Objects<'py> = PyResult<Vec<Bound<'py, PyAny>>>;

/// Converts the values of a column.
#[derive(Clone, Copy)]
pub(crate) struct Converter<'a, 'py> {
    pub(crate) py: Python<'py>,
    /// Name of the column, for errors.
    pub(crate) column: &'a str,
}

impl<'py> Converter<'_, 'py> {
    /// The values of an array of this field, `None` for a null.
    ///
    /// # Errors
    /// `ConfigError` for a type without a Python object, and for a value that its Python type does not hold.
    pub(crate) fn objects(&self, field: &Field, array: &ArrayRef) -> Objects<'py> {
        match array.data_type() {
            DataType::Null => Ok(vec![self.py.None().into_bound(self.py); array.len()]),
            DataType::Boolean => self.each(array.as_boolean().iter(), |value| self.any(value)),
            DataType::Int8 => self.numbers::<types::Int8Type>(array),
            DataType::Int16 => self.numbers::<types::Int16Type>(array),
            DataType::Int32 => self.numbers::<types::Int32Type>(array),
            DataType::Int64 => self.numbers::<types::Int64Type>(array),
            DataType::UInt8 => self.numbers::<types::UInt8Type>(array),
            DataType::UInt16 => self.numbers::<types::UInt16Type>(array),
            DataType::UInt32 => self.numbers::<types::UInt32Type>(array),
            DataType::UInt64 => self.numbers::<types::UInt64Type>(array),
            DataType::Float16 => {
                let halves = array.as_primitive::<types::Float16Type>();
                self.each(halves.iter(), |value| self.any(value.to_f32()))
            }
            DataType::Float32 => self.numbers::<types::Float32Type>(array),
            DataType::Float64 => self.numbers::<types::Float64Type>(array),
            DataType::Utf8 => self.each(array.as_string::<i32>().iter(), |text| self.any(text)),
            DataType::LargeUtf8 => self.each(array.as_string::<i64>().iter(), |text| self.any(text)),
            DataType::Utf8View => self.each(array.as_string_view().iter(), |text| self.any(text)),
            DataType::Binary => self.bytes(array.as_binary::<i32>().iter()),
            DataType::LargeBinary => self.bytes(array.as_binary::<i64>().iter()),
            DataType::BinaryView => self.bytes(array.as_binary_view().iter()),
            DataType::FixedSizeBinary(_) => self.fixed_size_bytes(field, array),
            DataType::Decimal32(..) => self.decimals::<types::Decimal32Type>(array),
            DataType::Decimal64(..) => self.decimals::<types::Decimal64Type>(array),
            DataType::Decimal128(..) => self.decimals::<types::Decimal128Type>(array),
            DataType::Decimal256(..) => self.decimals::<types::Decimal256Type>(array),
            DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(..)
            | DataType::Duration(_) => self.dates_and_times(array),
            DataType::Dictionary(_, value) => {
                self.dictionary(&Field::new("", DataType::clone(value), true), array)
            }
            DataType::List(item) => self.lists::<i32>(item, array),
            DataType::LargeList(item) => self.lists::<i64>(item, array),
            DataType::FixedSizeList(item, size) => self.fixed_size_lists(item, *size, array),
            DataType::Struct(_) => self.structs(array),
            DataType::Map(..) => self.maps(array),
            other => Err(config(format!(
                "the column `{}` is {other}, which has no Python value: expected numbers, texts, bytes, dates and times, \
                 decimals, lists or structs",
                self.column
            ))),
        }
    }

    /// The object of each value, `None` for a null.
    fn each<T>(
        &self,
        values: impl Iterator<Item = Option<T>>,
        object: impl Fn(T) -> PyResult<Bound<'py, PyAny>>,
    ) -> Objects<'py> {
        let none = || self.py.None().into_bound(self.py);
        values
            .map(|value| value.map_or_else(|| Ok(none()), &object))
            .collect()
    }

    fn any<T: IntoPyObject<'py>>(&self, value: T) -> PyResult<Bound<'py, PyAny>> {
        value.into_bound_py_any(self.py)
    }

    fn bytes<'b>(&self, values: impl Iterator<Item = Option<&'b [u8]>>) -> Objects<'py> {
        self.each(values, |bytes| Ok(PyBytes::new(self.py, bytes).into_any()))
    }

    fn numbers<T: ArrowPrimitiveType>(&self, array: &ArrayRef) -> Objects<'py>
    where
        T::Native: IntoPyObject<'py>,
    {
        self.each(array.as_primitive::<T>().iter(), |number| self.any(number))
    }

    fn fixed_size_bytes(&self, field: &Field, array: &ArrayRef) -> Objects<'py> {
        let values = array.as_fixed_size_binary().iter();
        if !pushdown::uuid::is_uuid(field) {
            return self.bytes(values);
        }
        let uuid = self.py.import("uuid")?.getattr("UUID")?;
        self.each(values, |bytes| uuid.call1((pushdown::uuid::to_text(bytes),)))
    }

    fn decimals<T: types::DecimalType>(&self, array: &ArrayRef) -> Objects<'py> {
        let decimal = self.py.import("decimal")?.getattr("Decimal")?;
        let array: &PrimitiveArray<T> = array.as_primitive::<T>();
        let rows = (0..array.len()).map(|row| array.is_valid(row).then_some(row));
        self.each(rows, |row| decimal.call1((array.value_as_string(row),)))
    }

    fn dates_and_times(&self, array: &ArrayRef) -> Objects<'py> {
        let times = Times::new(self.py, array.data_type()).map_err(|error| self.invalid(array, &error))?;
        self.each(numbers_of(array).into_iter(), |number| {
            times.object(number).map_err(|error| self.invalid(array, &error))
        })
    }

    /// Converts the values that occur only: a dictionary may have many more than a batch has rows.
    fn dictionary(&self, value: &Field, array: &ArrayRef) -> Objects<'py> {
        let dictionary = array.as_any_dictionary();
        let values = dictionary.values();
        let keys = if values.is_empty() {
            vec![0; array.len()]
        } else {
            dictionary.normalized_keys()
        };
        let none = self.py.None().into_bound(self.py);
        let mut known: HashMap<usize, Bound<'py, PyAny>> = HashMap::new();
        let object = |(row, key): (usize, usize)| {
            if array.is_null(row) || key >= values.len() {
                return Ok(none.clone());
            }
            if let Some(object) = known.get(&key) {
                return Ok(object.clone());
            }
            let object = self.objects(value, &values.slice(key, 1))?.pop();
            let object = object.unwrap_or_else(|| none.clone());
            known.insert(key, object.clone());
            Ok(object)
        };
        keys.into_iter().enumerate().map(object).collect()
    }

    fn lists<Offset: OffsetSizeTrait>(&self, item: &Field, array: &ArrayRef) -> Objects<'py> {
        let list = array.as_list::<Offset>();
        let offsets: Vec<usize> = list.offsets().iter().map(|offset| offset.as_usize()).collect();
        self.slices(item, list.values(), &offsets, array)
    }

    fn fixed_size_lists(&self, item: &Field, size: i32, array: &ArrayRef) -> Objects<'py> {
        let size = usize::try_from(size).unwrap_or_default();
        let offsets: Vec<usize> = (0..=array.len()).map(|row| row * size).collect();
        self.slices(item, array.as_fixed_size_list().values(), &offsets, array)
    }

    /// A list of the values between two offsets for each row.
    fn slices(&self, item: &Field, values: &ArrayRef, offsets: &[usize], rows: &ArrayRef) -> Objects<'py> {
        let (first, last) = match offsets {
            [first, .., last] => (*first, *last),
            _ => return Ok(Vec::new()),
        };
        let objects = self.objects(item, &values.slice(first, last - first))?;
        let ranges = offsets.windows(2).enumerate().map(|(row, range)| {
            let range = range[0] - first..range[1] - first;
            rows.is_valid(row).then(|| objects.get(range).unwrap_or_default())
        });
        self.each(ranges, |items| Ok(PyList::new(self.py, items)?.into_any()))
    }

    fn structs(&self, array: &ArrayRef) -> Objects<'py> {
        let array = array.as_struct();
        let columns = array.fields().iter().zip(array.columns());
        let columns = columns.map(|(field, column)| Ok((field.name(), self.objects(field, column)?)));
        let columns: Vec<_> = columns.collect::<PyResult<_>>()?;
        let rows = (0..array.len()).map(|row| array.is_valid(row).then_some(row));
        self.each(rows, |row| {
            let dict = PyDict::new(self.py);
            for (name, values) in &columns {
                dict.set_item(name, values.get(row))?;
            }
            Ok(dict.into_any())
        })
    }

    /// A list of pairs for each row.
    fn maps(&self, array: &ArrayRef) -> Objects<'py> {
        let map = array.as_map();
        let (keys, values) = (map.keys(), map.values());
        let field = |array: &ArrayRef, index: usize| {
            let field = map.entries().fields().get(index);
            field.map_or_else(
                || Field::new("", array.data_type().clone(), true),
                |field| Field::clone(field),
            )
        };
        let keys = self.objects(&field(keys, 0), keys)?;
        let values = self.objects(&field(values, 1), values)?;
        let pairs = keys.into_iter().zip(values);
        let pairs = pairs.map(|(key, value)| PyTuple::new(self.py, [key, value]));
        let pairs: Vec<_> = pairs.collect::<PyResult<_>>()?;
        let rows = map.offsets().windows(2).enumerate().map(|(row, range)| {
            let index = |offset: i32| usize::try_from(offset).unwrap_or_default();
            let range = index(range[0])..index(range[1]);
            array.is_valid(row).then(|| pairs.get(range).unwrap_or_default())
        });
        self.each(rows, |pairs| Ok(PyList::new(self.py, pairs)?.into_any()))
    }

    fn invalid(&self, array: &ArrayRef, error: &PyErr) -> PyErr {
        config(format!(
            "the column `{}` of type {} has a value that Python's `datetime` does not hold: {error}",
            self.column,
            array.data_type()
        ))
    }
}

/// The numbers that dates and times are stored as.
fn numbers_of(array: &ArrayRef) -> Vec<Option<i64>> {
    fn longs<T: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<Option<i64>>
    where
        i64: From<T::Native>,
    {
        let numbers = array.as_primitive::<T>().iter();
        numbers.map(|number| number.map(i64::from)).collect()
    }
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    match array.data_type() {
        DataType::Date32 => longs::<types::Date32Type>(array),
        DataType::Date64 => longs::<types::Date64Type>(array),
        DataType::Time32(Second) => longs::<types::Time32SecondType>(array),
        DataType::Time32(_) => longs::<types::Time32MillisecondType>(array),
        DataType::Time64(Nanosecond) => longs::<types::Time64NanosecondType>(array),
        DataType::Time64(_) => longs::<types::Time64MicrosecondType>(array),
        DataType::Timestamp(Second, _) => longs::<types::TimestampSecondType>(array),
        DataType::Timestamp(Millisecond, _) => longs::<types::TimestampMillisecondType>(array),
        DataType::Timestamp(Microsecond, _) => longs::<types::TimestampMicrosecondType>(array),
        DataType::Timestamp(Nanosecond, _) => longs::<types::TimestampNanosecondType>(array),
        DataType::Duration(Second) => longs::<types::DurationSecondType>(array),
        DataType::Duration(Millisecond) => longs::<types::DurationMillisecondType>(array),
        DataType::Duration(Microsecond) => longs::<types::DurationMicrosecondType>(array),
        DataType::Duration(Nanosecond) => longs::<types::DurationNanosecondType>(array),
        _ => Vec::new(),
    }
}

/// Makes objects of Python's `datetime`.
struct Times<'py> {
    data_type: DataType,
    date: Bound<'py, PyAny>,
    timedelta: Bound<'py, PyAny>,
    /// 1970-01-01, in UTC if the times have a zone.
    epoch: Bound<'py, PyAny>,
    zone: Option<Bound<'py, PyAny>>,
}

impl<'py> Times<'py> {
    fn new(py: Python<'py>, data_type: &DataType) -> PyResult<Self> {
        let module = py.import("datetime")?;
        let epoch = module.getattr("datetime")?.call1((1970, 1, 1))?;
        let (epoch, zone) = match data_type {
            DataType::Timestamp(_, Some(zone)) => {
                let utc = module.getattr("timezone")?.getattr("utc")?;
                let options = PyDict::new(py);
                options.set_item("tzinfo", utc)?;
                let epoch = epoch.call_method("replace", (), Some(&options))?;
                (epoch, Some(time_zone(py, zone)?))
            }
            _ => (epoch, None),
        };
        Ok(Self {
            data_type: data_type.clone(),
            date: module.getattr("date")?,
            timedelta: module.getattr("timedelta")?,
            epoch,
            zone,
        })
    }

    fn object(&self, number: i64) -> PyResult<Bound<'py, PyAny>> {
        match &self.data_type {
            DataType::Date32 => self.day(number),
            DataType::Date64 => self.day(number.div_euclid(MILLIS_PER_DAY)),
            DataType::Time32(unit) | DataType::Time64(unit) => {
                let at = self
                    .epoch
                    .call_method1("__add__", (self.delta(number, *unit)?,))?;
                at.call_method0("time")
            }
            DataType::Timestamp(unit, _) => {
                let at = self
                    .epoch
                    .call_method1("__add__", (self.delta(number, *unit)?,))?;
                match &self.zone {
                    Some(zone) => at.call_method1("astimezone", (zone,)),
                    None => Ok(at),
                }
            }
            DataType::Duration(unit) => self.delta(number, *unit),
            other => Err(config(format!("expected a time, found {other}"))),
        }
    }

    fn day(&self, number: i64) -> PyResult<Bound<'py, PyAny>> {
        self.date.call_method1("fromordinal", (number + EPOCH_ORDINAL,))
    }

    fn delta(&self, number: i64, unit: TimeUnit) -> PyResult<Bound<'py, PyAny>> {
        let microseconds = match unit {
            TimeUnit::Second => i128::from(number) * 1_000_000,
            TimeUnit::Millisecond => i128::from(number) * 1000,
            TimeUnit::Microsecond => i128::from(number),
            TimeUnit::Nanosecond if number % 1000 == 0 => i128::from(number / 1000),
            TimeUnit::Nanosecond => {
                return Err(config(format!(
                    "expected whole microseconds, found {number} nanoseconds"
                )));
            }
        };
        // Python divides whole numbers exactly.
        let (days, rest) = (
            microseconds.div_euclid(86_400_000_000),
            microseconds.rem_euclid(86_400_000_000),
        );
        let narrow = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
        self.timedelta.call1((narrow(days), 0, narrow(rest)))
    }
}

/// A zone of Arrow: the name of a zone, or an offset such as `+05:30`.
fn time_zone<'py>(py: Python<'py>, zone: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("datetime")?;
    let offset = || {
        let (hours, minutes) = zone.get(1..)?.split_once(':')?;
        let minutes = hours.parse::<i32>().ok()? * 60 + minutes.parse::<i32>().ok()?;
        match zone.as_bytes().first()? {
            b'+' => Some(minutes),
            b'-' => Some(-minutes),
            _ => None,
        }
    };
    match offset() {
        _ if zone == "UTC" => module.getattr("timezone")?.getattr("utc"),
        Some(minutes) => {
            let delta = module.getattr("timedelta")?.call1((0, 60 * minutes))?;
            module.getattr("timezone")?.call1((delta,))
        }
        None => py.import("zoneinfo")?.getattr("ZoneInfo")?.call1((zone,)),
    }
}
