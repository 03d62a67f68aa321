//! Parsing and formatting of sizes, durations and secrets in a configuration.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A setting as given: a flag, an environment variable, or a scalar of the TOML file.
///
/// Not validated, so that all faults of a configuration can be reported at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(pub String);

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string, an integer or a boolean")]
        enum Scalar {
            Text(String),
            Integer(i64),
            Boolean(bool),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => text,
            Scalar::Integer(number) => number.to_string(),
            Scalar::Boolean(flag) => flag.to_string(),
        }))
    }
}

/// A setting with several values: a scalar of the TOML file, or an array of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextList(pub Vec<Text>);

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a string or an array of strings")]
        enum Values {
            One(Text),
            Many(Vec<Text>),
        }
        Ok(Self(match Values::deserialize(deserializer)? {
            Values::One(text) => vec![text],
            Values::Many(texts) => texts,
        }))
    }
}

/// A value that is never shown in logs, error messages or the status page.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret.
    pub fn new(secret: String) -> Self {
        Self(secret)
    }

    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

const SIZE_UNITS: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

const DURATION_UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Parses a size in bytes: `4096`, `256MiB`, `1GB`. Whole numbers only; units are case-sensitive.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let fault = || format!("expected a size such as 4096, 64KiB or 256MiB, found `{text}`");
    let (number, unit) = split_unit(text);
    let factor = match unit {
        "" => 1,
        _ => {
            SIZE_UNITS
                .iter()
                .find(|(name, _)| *name == unit)
                .ok_or_else(fault)?
                .1
        }
    };
    let number: u64 = number.parse().map_err(|_| fault())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| format!("expected a size below 2^64 bytes, found `{text}`"))
}

/// Parses a duration: `250ms`, `30s`, `5m`, `1h`. The unit is required.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("expected a duration such as 250ms, 30s or 5m, found `{text}`");
    let (number, unit) = split_unit(text);
    let (_, factor) = DURATION_UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .ok_or_else(fault)?;
    let number: u64 = number.parse().map_err(|_| fault())?;
    number
        .checked_mul(*factor)
        .map(Duration::from_millis)
        .ok_or_else(fault)
}

/// Formats a size in the largest binary unit that divides it.
pub fn format_size(bytes: u64) -> String {
    SIZE_UNITS[..4]
        .iter()
        .rev()
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor))
        .map_or_else(
            || bytes.to_string(),
            |(unit, factor)| format!("{}{unit}", bytes / factor),
        )
}

/// Formats a duration in the largest unit that divides it.
pub fn format_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    DURATION_UNITS
        .iter()
        .rev()
        .find(|(_, factor)| milliseconds.is_multiple_of(u128::from(*factor)) && milliseconds > 0)
        .map_or_else(
            || "0s".to_owned(),
            |(unit, factor)| format!("{}{unit}", milliseconds / u128::from(*factor)),
        )
}

/// `serde(serialize_with)` for a size in bytes.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub fn size<S: Serializer>(bytes: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_size(*bytes))
}

/// `serde(serialize_with)` for a duration.
pub fn duration<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format_duration(*duration))
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_strictly() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("1 GB"), Ok(1_000_000_000));
        for wrong in [
            "",
            "MiB",
            "1.5GiB",
            "-1",
            "12 parsecs",
            "1mib",
            "99999999999999TiB",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations_are_parsed_strictly() {
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_mins(5)));
        for wrong in ["", "30", "s", "1.5s", "3 fortnights"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn formatted_values_parse_to_the_same_value() {
        for bytes in [0, 1, 1000, 1 << 10, 3 << 19, 256 << 20, 1 << 40] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        for milliseconds in [0, 1, 1500, 30_000, 60_000, 7_200_000] {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
        assert_eq!(secret.reveal(), "hunter2");
    }
}
