//! Where a pipeline is cut.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{BytesKind, Error, Pipeline, Result, limits::MAX_STEPS};

/// How much of a pipeline the gateway runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Split {
    /// All of it.
    #[default]
    Full,
    /// Up to the stage with the fewest bytes, as far as that can be predicted without computing it.
    Smallest,
    /// The first so many steps.
    At(u8),
}

impl Split {
    /// The stage to stop at, for an object of which something is known.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for a split beyond the pipeline's last step.
    pub fn resolve(self, pipeline: &Pipeline, object: &BytesKind) -> Result<usize> {
        self.check(pipeline)?;
        Ok(match self {
            Self::Full => pipeline.len(),
            Self::Smallest => pipeline.smallest_stage(object),
            Self::At(stage) => usize::from(stage),
        })
    }

    /// Checks that the pipeline has as many steps as the split asks for.
    pub(super) fn check(self, pipeline: &Pipeline) -> Result<()> {
        match self {
            Self::At(stage) if usize::from(stage) > pipeline.len() => Err(Error::wire(format!(
                "found split {stage}, expected 0 to {}: the pipeline has no more steps",
                pipeline.len()
            ))),
            _ => Ok(()),
        }
    }
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
            // `parse` would take a sign, too.
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

/// A string for a word, a number for a number.
impl Serialize for Split {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::At(stage) => serializer.serialize_u8(*stage),
            word => serializer.collect_str(word),
        }
    }
}

/// From a string, a number in quotes included, or from a number.
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

    fn pipeline() -> Pipeline {
        Pipeline::parse("decode | resize(8, 8) | to_float").unwrap()
    }

    #[test]
    fn reads_back_from_text_and_json() {
        for split in [Split::Full, Split::Smallest, Split::At(0), Split::At(64)] {
            assert_eq!(split.to_string().parse::<Split>().unwrap(), split);
            let json = serde_json::to_string(&split).unwrap();
            assert_eq!(serde_json::from_str::<Split>(&json).unwrap(), split);
        }
        assert_eq!(serde_json::to_string(&Split::At(3)).unwrap(), "3");
        assert_eq!(serde_json::from_str::<Split>("\"3\"").unwrap(), Split::At(3));
    }

    #[test]
    fn refuses_what_is_no_split() {
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
            assert_eq!(error.kind(), crate::ErrorKind::InvalidWire, "{text:?}: {error}");
        }
        for json in ["-1", "65", "1.5", "null", "[]", "\"half\""] {
            assert!(serde_json::from_str::<Split>(json).is_err(), "{json}");
        }
    }

    #[test]
    fn resolves_within_the_pipeline() {
        let object = BytesKind {
            length: Some(100_000),
            ..BytesKind::default()
        };
        assert_eq!(Split::Full.resolve(&pipeline(), &object).unwrap(), 3);
        assert_eq!(Split::At(0).resolve(&pipeline(), &object).unwrap(), 0);
        assert_eq!(Split::At(3).resolve(&pipeline(), &object).unwrap(), 3);
        assert_eq!(
            Split::Smallest.resolve(&pipeline(), &object).unwrap(),
            2,
            "192 bytes of pixels"
        );
        assert_eq!(
            Split::At(4).resolve(&pipeline(), &object).unwrap_err().kind(),
            crate::ErrorKind::InvalidWire
        );
    }
}
