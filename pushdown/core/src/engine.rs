//! The engine: versions of the steps and of the model runtime, which affect values besides object, pipeline and seed.

mod identity;

use std::{fmt, str::FromStr};

pub use identity::RuntimeIdentity;

use crate::{Error, Result};

/// Version of the steps. Incremented when the output of any step changes, by a decoder update for example, or the format of batch
/// answers. The model runtime has a version of its own, since it is loaded at run time.
pub const ENGINE: u32 = 4;

/// Maximum length of the text of an engine, which is untrusted input.
const MAX_BYTES: usize = 256;

/// The versions that a value was computed with: [`ENGINE`] of the host, and its model runtime if the steps have models.
///
/// Part of every ETag and every answer, as text `4` or
/// `4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma`. A reader whose engine is not
/// [compatible](Self::is_compatible_with) uses plain reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    steps: u32,
    models: Option<RuntimeIdentity>,
}

impl Engine {
    /// The engine of this host, for steps whose models run on `runtime`, or for steps without models.
    pub const fn new(runtime: Option<RuntimeIdentity>) -> Self {
        Self {
            steps: ENGINE,
            models: runtime,
        }
    }

    /// Whether values of both engines can be mixed: the versions of the steps are equal, and, if both run models, those of ONNX
    /// Runtime.
    ///
    /// Other providers or processors round differently, within the tolerance of law 1, and are compatible.
    pub fn is_compatible_with(&self, other: &Self) -> bool {
        let runtimes = self.models.as_ref().zip(other.models.as_ref());
        self.steps == other.steps && runtimes.is_none_or(|(one, other)| one.onnxruntime == other.onnxruntime)
    }

    /// Whether both engines run models, on different runtimes, providers or processors.
    pub fn has_other_rounding(&self, other: &Self) -> bool {
        let runtimes = self.models.as_ref().zip(other.models.as_ref());
        runtimes.is_some_and(|(one, other)| one != other)
    }

    /// The part of the text that compatible engines have in common.
    pub fn compatibility_key(&self) -> String {
        let Self { steps, models } = self;
        let version = models.as_ref().map(|models| &models.onnxruntime);
        version.map_or_else(
            || steps.to_string(),
            |version| format!("{steps}; onnxruntime={version}"),
        )
    }
}

/// The engine of steps without models.
impl Default for Engine {
    fn default() -> Self {
        Self::new(None)
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.steps)?;
        self.models
            .as_ref()
            .map_or(Ok(()), |models| write!(f, "; {models}"))
    }
}

impl FromStr for Engine {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (steps, models) = match text.split_once("; ") {
            _ if text.len() > MAX_BYTES => ("", None),
            Some((steps, models)) => (steps, Some(models.parse())),
            None => (text, None),
        };
        let read = steps.parse().ok().zip(models.transpose().ok());
        let (steps, models) = read.ok_or_else(|| {
            let found: String = text.chars().take(MAX_BYTES).flat_map(char::escape_default).collect();
            Error::wire(format!(
                "invalid engine: expected text like `{ENGINE}; onnxruntime=1.31.1; provider=cpu; processor=avx2`, found `{found}`"
            ))
        })?;
        Ok(Self { steps, models })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODELS: &str = "4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma";

    fn engine(text: &str) -> Engine {
        text.parse().unwrap()
    }

    #[test]
    fn engines_parse_their_own_text() {
        for text in ["4", MODELS] {
            assert_eq!(engine(text).to_string(), text);
        }
        assert_eq!(engine(&ENGINE.to_string()), Engine::default());
        for text in [
            "",
            "three",
            "4;",
            "4; avx2",
            "-1",
            "99999999999",
            "4; onnxruntime=1",
        ] {
            let error = text.parse::<Engine>().unwrap_err().to_string();
            assert!(error.contains(&format!("found `{text}`")), "{error}");
        }
    }

    #[test]
    fn errors_quote_invalid_engines_briefly() {
        let long = format!("{MODELS}{}", "+avx".repeat(1 << 18));
        for text in [long.as_str(), "4\u{1b}[2J"] {
            let error = text.parse::<Engine>().unwrap_err().to_string();
            assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn engines_of_equal_versions_are_compatible() {
        let own = engine(MODELS);
        // The expected compatibility, and whether the rounding differs.
        let cases = [
            (MODELS, true, false),
            (
                "4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma+avx512f",
                true,
                true,
            ),
            (
                "4; onnxruntime=1.31.1; provider=cuda; processor=avx2+fma",
                true,
                true,
            ),
            (
                "4; onnxruntime=1.30.0; provider=cpu; processor=avx2+fma",
                false,
                true,
            ),
            (
                "5; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma",
                false,
                false,
            ),
            // An engine without models has no values of models.
            ("4", true, false),
            ("5", false, false),
        ];
        for (text, is_compatible, has_other_rounding) in cases {
            let other = engine(text);
            assert_eq!(
                (own.is_compatible_with(&other), other.is_compatible_with(&own)),
                (is_compatible, is_compatible),
                "{text}"
            );
            assert_eq!(own.has_other_rounding(&other), has_other_rounding, "{text}");
            let same = own.compatibility_key() == other.compatibility_key();
            assert_eq!(same, is_compatible && text != "4", "{text}");
        }
    }
}
