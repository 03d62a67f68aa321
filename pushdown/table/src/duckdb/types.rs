//! `DuckDB`'s type names.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, TimeUnit};
use datafusion::sql::sqlparser::ast::{DataType as Named, ExactNumberInfo, TimezoneInfo};

/// The time zone of `TIMESTAMPTZ`.
const UTC: &str = "UTC";
/// Metadata key of a field that names an Arrow extension type.
pub(crate) const EXTENSION: &str = arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
/// The extension type for UUIDs of 16 bytes.
pub(crate) const UUID: &str = pushdown_core::uuid::NAME;

/// The type of a name that DataFusion does not know, or reads differently: timestamps and times have microseconds, a decimal
/// without a precision has 18 digits, 3 of them after the point, and the length of a text type is ignored.
pub(super) fn arrow_field(named: &Named) -> Option<FieldRef> {
    let data_type = match named {
        Named::Timestamp(digits, zone) => {
            let zone = match zone {
                TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => None,
                TimezoneInfo::Tz | TimezoneInfo::WithTimeZone => Some(UTC.into()),
            };
            timestamp(*digits).map(|unit| DataType::Timestamp(unit, zone))
        }
        Named::Datetime(None) => Some(DataType::Timestamp(TimeUnit::Microsecond, None)),
        Named::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Some(DataType::Time64(TimeUnit::Microsecond))
        }
        Named::Decimal(ExactNumberInfo::None)
        | Named::Numeric(ExactNumberInfo::None)
        | Named::Dec(ExactNumberInfo::None) => Some(DataType::Decimal128(18, 3)),
        Named::Varchar(_)
        | Named::Char(_)
        | Named::Character(_)
        | Named::CharacterVarying(_)
        | Named::CharVarying(_)
        | Named::Text
        | Named::String(_) => Some(DataType::Utf8),
        Named::UTinyInt => Some(DataType::UInt8),
        Named::USmallInt => Some(DataType::UInt16),
        Named::IntegerUnsigned(None) => Some(DataType::UInt32),
        Named::UBigInt => Some(DataType::UInt64),
        Named::Blob(None) | Named::Binary(None) | Named::Varbinary(None) => Some(DataType::Binary),
        Named::Uuid => return Some(Arc::new(uuid())),
        Named::Custom(name, arguments) if arguments.is_empty() => {
            timestamp_by_name(&name.to_string()).map(|unit| DataType::Timestamp(unit, None))
        }
        _ => None,
    };
    data_type.map(|data_type| Arc::new(Field::new("", data_type, true)))
}

fn uuid() -> Field {
    let metadata = [(EXTENSION.to_owned(), UUID.to_owned())].into();
    Field::new("", DataType::FixedSizeBinary(16), true).with_metadata(metadata)
}

fn timestamp_by_name(name: &str) -> Option<TimeUnit> {
    match name.to_ascii_uppercase().as_str() {
        "TIMESTAMP_S" => Some(TimeUnit::Second),
        "TIMESTAMP_MS" => Some(TimeUnit::Millisecond),
        "TIMESTAMP_US" => Some(TimeUnit::Microsecond),
        "TIMESTAMP_NS" => Some(TimeUnit::Nanosecond),
        _ => None,
    }
}

fn timestamp(digits: Option<u64>) -> Option<TimeUnit> {
    match digits {
        Some(0) => Some(TimeUnit::Second),
        Some(1..=3) => Some(TimeUnit::Millisecond),
        None | Some(4..=6) => Some(TimeUnit::Microsecond),
        Some(7..=9) => Some(TimeUnit::Nanosecond),
        Some(_) => None,
    }
}
