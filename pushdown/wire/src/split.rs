//! The split of a pipeline between gateway and host.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use pushdown_core::{Error, Result, limits::MAX_STEPS};

/// The number of steps that the gateway runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Split {
    /// All steps.
    #[default]
    Full,
    /// The steps up to the stage with the fewest bytes, among the stages of known size.
    Smallest,
    /// This number of steps.
    At(u8),
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("full"),
            Self::Smallest => f.write_str("smallest"),
            Self::At(stage) => stage.fmt(f),
        }
    }
}

impl FromStr for Split {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "full" => Ok(Self::Full),
            "smallest" => Ok(Self::Smallest),
            // `parse` alone would accept a sign.
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => number
                .parse()
                .ok()
                .and_then(Self::at)
                .ok_or_else(|| unknown(text)),
            _ => Err(unknown(text)),
        }
    }
}

impl Split {
    fn at(stage: u64) -> Option<Self> {
        u8::try_from(stage)
            .ok()
            .filter(|stage| usize::from(*stage) <= MAX_STEPS)
            .map(Self::At)
    }
}

fn unknown(found: impl fmt::Debug) -> Error {
    Error::wire(format!(
        "found split {found:?}, expected \"full\", \"smallest\" or a number from 0 to {MAX_STEPS}"
    ))
}

/// A JSON number for a stage, a string otherwise.
impl Serialize for Split {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(stage) => serializer.serialize_u8(*stage),
            name => serializer.collect_str(name),
        }
    }
}

/// From a string, which may be a quoted number, or from a number.
impl<'de> Deserialize<'de> for Split {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Split;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"full\", \"smallest\" or a number of steps")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Split, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, stage: u64) -> Result<Split, E> {
                Split::at(stage).ok_or_else(|| E::custom(unknown(stage)))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_parse_their_own_text_and_json() {
        for split in [Split::Full, Split::Smallest, Split::At(0), Split::At(64)] {
            assert_eq!(split.to_string().parse::<Split>().unwrap(), split);
            let json = serde_json::to_string(&split).unwrap();
            assert_eq!(serde_json::from_str::<Split>(&json).unwrap(), split);
        }
        assert_eq!(serde_json::to_string(&Split::At(3)).unwrap(), "3");
        assert_eq!(serde_json::from_str::<Split>("\"3\"").unwrap(), Split::At(3));
    }

    #[test]
    fn invalid_splits_are_errors() {
        for text in [
            "",
            "Full",
            "-1",
            "+1",
            "65",
            "256",
            "99999999999999999999",
            "1.0",
            " 1",
        ] {
            let error = text.parse::<Split>().unwrap_err();
            assert_eq!(
                error.kind(),
                pushdown_core::ErrorKind::InvalidWire,
                "{text:?}: {error}"
            );
        }
        for json in ["-1", "65", "1.5", "null", "[]", "\"half\""] {
            assert!(serde_json::from_str::<Split>(json).is_err(), "{json}");
        }
    }
}
