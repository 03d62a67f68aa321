//! What values depend on beside object, pipeline and seed: the version of the steps, and what runs models.

use std::{fmt, str::FromStr};

use crate::{Error, Result, Step, step::model::Identity};

/// Raised whenever the output of any step changes, a decoder's update included, or the form of batch answers. What runs
/// models is no part of this number: the library is loaded at run time.
pub const ENGINE: u32 = 4;

/// The most bytes of an engine's text: it comes from whoever answers.
const MAX_BYTES: usize = 256;

/// What computes values: [`ENGINE`] of a host, and what runs its models where they are behind one.
///
/// It is part of every ETag and stands in every answer: as text `4`, or
/// `4; onnxruntime=1.31.1; provider=cpu; processor=avx2+fma`. A reader whose own does not [agree](Self::agrees_with) reads
/// plainly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    steps: u32,
    models: Option<Identity>,
}

impl Engine {
    /// What computes these steps here.
    ///
    /// # Errors
    /// [`ModelRuntime`](crate::ErrorKind::ModelRuntime) with the reason why nothing runs the models among them.
    pub fn of(steps: &[Step]) -> Result<Self> {
        // One runs them all.
        let model = steps.iter().flat_map(Step::models).next();
        let runtime = model.map(|model| model.runtime()).transpose()?;
        Ok(Self {
            models: runtime.map(|runtime| runtime.identity()),
            ..Self::default()
        })
    }

    /// Whether values of one may stand beside values of the other: the steps are of one version, and so is ONNX Runtime
    /// where both run models.
    ///
    /// Another provider or processor rounds otherwise, within the tolerance of law 1: those agree, though they are not equal.
    pub fn agrees_with(&self, other: &Self) -> bool {
        let both = self.models.as_ref().zip(other.models.as_ref());
        self.steps == other.steps && both.is_none_or(|(here, there)| here.onnxruntime == there.onnxruntime)
    }

    /// Whether both run models, and not in the same way.
    pub fn rounds_otherwise(&self, other: &Self) -> bool {
        let both = self.models.as_ref().zip(other.models.as_ref());
        both.is_some_and(|(here, there)| here != there)
    }

    /// What is the same wherever values agree, as text.
    pub fn agreeing(&self) -> String {
        let Self { steps, models } = self;
        let version = models.as_ref().map(|models| &models.onnxruntime);
        version.map_or_else(
            || steps.to_string(),
            |version| format!("{steps}; onnxruntime={version}"),
        )
    }
}

/// Of steps without models.
impl Default for Engine {
    fn default() -> Self {
        Self {
            steps: ENGINE,
            models: None,
        }
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
                "found the engine `{found}`, expected one such as `{ENGINE}; onnxruntime=1.31.1; provider=cpu; processor=avx2`"
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
    fn it_is_read_as_it_is_written() {
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
            assert!(error.contains(&format!("found the engine `{text}`")), "{error}");
        }
    }

    #[test]
    fn whoever_answers_with_anything_is_told_of_in_few_words() {
        let long = format!("{MODELS}{}", "+avx".repeat(1 << 18));
        for text in [long.as_str(), "4\u{1b}[2J"] {
            let error = text.parse::<Engine>().unwrap_err().to_string();
            assert!(error.len() < 1000 && !error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn values_stand_beside_those_of_the_same_version_of_everything() {
        let here = engine(MODELS);
        // Whether they may, and whether it is worth a word.
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
            // Whoever runs no models has none of those values.
            ("4", true, false),
            ("5", false, false),
        ];
        for (text, agrees, otherwise) in cases {
            let there = engine(text);
            assert_eq!(
                (here.agrees_with(&there), there.agrees_with(&here)),
                (agrees, agrees),
                "{text}"
            );
            assert_eq!(here.rounds_otherwise(&there), otherwise, "{text}");
            let same = here.agreeing() == there.agreeing();
            assert_eq!(same, agrees && text != "4", "{text}");
        }
    }
}
