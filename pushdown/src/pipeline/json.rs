//! The JSON form: an array with one object per step, `{"step": "resize", "short": 256}`.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeSeq};

use super::{Pipeline, value::Value, value::is_plain};
use crate::{Error, Result, limits};

/// A step in JSON: its name, and its arguments by name beside it.
#[derive(Debug, Serialize, Deserialize)]
struct JsonStep {
    step: String,
    #[serde(flatten)]
    arguments: BTreeMap<String, Value>,
}

/// Parses the JSON form by way of the text form, so that there is one parser, one set of rules and one kind of
/// position. A fault in a step is reported at its place in the text form, which the message shows.
pub(super) fn parse(json: &str) -> Result<Pipeline> {
    if json.len() > limits::MAX_PIPELINE_BYTES {
        return Err(Error::pipeline(
            limits::MAX_PIPELINE_BYTES,
            format!("the pipeline has {} bytes, expected at most {}", json.len(), limits::MAX_PIPELINE_BYTES),
        ));
    }
    let steps: Vec<JsonStep> = serde_json::from_str(json).map_err(|error| {
        Error::pipeline(error.column().saturating_sub(1), format!("found JSON that is no list of steps: {error}"))
    })?;
    from_steps(&steps)
}

fn from_steps(steps: &[JsonStep]) -> Result<Pipeline> {
    let mut text = String::new();
    for (index, JsonStep { step, arguments }) in steps.iter().enumerate() {
        // Names are the only part that is written as it came; anything else would be read as grammar.
        for name in std::iter::once(step).chain(arguments.keys()) {
            if !is_plain(name) {
                return Err(Error::pipeline(text.len(), format!("found {name:?}, expected a plain name")));
            }
        }
        text.push_str(if index > 0 { " | " } else { "" });
        text.push_str(step);
        for (index, (name, value)) in arguments.iter().enumerate() {
            let open = if index == 0 { "(" } else { ", " };
            // Writing to a string cannot fail.
            let _infallible = write!(text, "{open}{name}={value}");
        }
        text.push_str(if arguments.is_empty() { "" } else { ")" });
    }
    Pipeline::parse(&text)
        .map_err(|error| Error::pipeline(error.position().unwrap_or_default() as usize, format!("{error} in `{text}`")))
}

impl Serialize for Pipeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for step in self.steps() {
            let arguments = step.arguments().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            seq.serialize_element(&JsonStep { step: step.name().to_owned(), arguments })?;
        }
        seq.end()
    }
}

/// From the JSON array, or from a string that holds the text form.
impl<'de> Deserialize<'de> for Pipeline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Text(String),
            Steps(Vec<JsonStep>),
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::parse(&text),
            Form::Steps(steps) => from_steps(&steps),
        }
        .map_err(de::Error::custom)
    }
}
