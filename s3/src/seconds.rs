//! Durations in settings, as seconds: for `#[serde(with = "pushdown_s3::seconds")]`.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

/// Writes a duration as a number of seconds.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

/// Reads a duration from a number of seconds.
///
/// # Errors
/// Those of the deserializer; a negative, infinite or too large number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
}
