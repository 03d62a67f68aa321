//! The JSON form: an array with one object per step, `{"step": "resize", "short": 256}`.

use std::fmt::{self, Write as _};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
    ser::{SerializeMap as _, SerializeSeq as _},
};

use pushdown_core::language::{Value, excerpt, is_plain};

use super::{NoModels, Pipeline, Resolver};
use crate::{Error, Result, limits};

/// A step in JSON: an object with the name as `step`, and the arguments by name.
#[derive(Debug)]
struct JsonStep {
    step: String,
    arguments: Vec<(String, Value)>,
}

/// Parses the JSON form by conversion to the text form, so that one parser defines the rules. An error in a step has a position
/// in the text form, and the message quotes that text.
pub(super) fn parse(json: &str, models: &dyn Resolver) -> Result<Pipeline> {
    if json.len() > limits::MAX_PIPELINE_BYTES {
        return Err(Error::pipeline(
            limits::MAX_PIPELINE_BYTES,
            format!(
                "the pipeline has {} bytes, expected at most {}",
                json.len(),
                limits::MAX_PIPELINE_BYTES
            ),
        ));
    }
    let steps: Vec<JsonStep> = serde_json::from_str(json).map_err(|error| {
        let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
        let position = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let message = error.to_string();
        let message = excerpt(&message, 200);
        Error::pipeline(position, format!("invalid JSON pipeline: {message}"))
    })?;
    from_steps(&steps, models)
}

fn from_steps(steps: &[JsonStep], models: &dyn Resolver) -> Result<Pipeline> {
    if steps.is_empty() {
        return Err(Error::pipeline(
            0,
            "found an empty list, expected at least one step",
        ));
    }
    let mut text = String::new();
    for (index, JsonStep { step, arguments }) in steps.iter().enumerate() {
        text.push_str(if index > 0 { " | " } else { "" });
        // Names are copied without quoting, so they must not contain syntax.
        for name in std::iter::once(step).chain(arguments.iter().map(|(name, _)| name)) {
            if !is_plain(name) {
                let found = excerpt(name, 40);
                return Err(Error::pipeline(
                    text.len(),
                    format!("expected a name of letters, digits and `_`, found {found:?}"),
                ));
            }
        }
        text.push_str(step);
        for (index, (name, value)) in arguments.iter().enumerate() {
            let open = if index == 0 { "(" } else { ", " };
            // Writing to a string cannot fail.
            let _infallible = write!(text, "{open}{name}={value}");
        }
        text.push_str(if arguments.is_empty() { "" } else { ")" });
    }
    Pipeline::parse_text(&text, models).map_err(|error| {
        // The text is ASCII: values are escaped, and names are plain.
        let start = error.position().unwrap_or_default().saturating_sub(30) as usize;
        let shown = excerpt(text.get(start..).unwrap_or_default(), 80);
        error.with_suffix(format_args!(" in `{shown}`, the text form of the JSON"))
    })
}

impl Serialize for Pipeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.len()))?;
        for step in self.steps() {
            let arguments = step
                .arguments()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect();
            seq.serialize_element(&JsonStep {
                step: step.name().to_owned(),
                arguments,
            })?;
        }
        seq.end()
    }
}

/// From the JSON array, or from a string with the text form.
impl<'de> Deserialize<'de> for Pipeline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = Pipeline;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pipeline: its text, or a list of steps")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Pipeline, E> {
                Pipeline::parse(text).map_err(E::custom)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Pipeline, A::Error> {
                let mut steps = Vec::new();
                while let Some(step) = seq.next_element()? {
                    // One step more than the limit is enough for the error.
                    if steps.len() <= limits::MAX_STEPS {
                        steps.push(step);
                    }
                }
                from_steps(&steps, &NoModels).map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

impl Serialize for JsonStep {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.arguments.len()))?;
        map.serialize_entry("step", &self.step)?;
        for (name, value) in &self.arguments {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Keeps repeated names, so that the check of the arguments reports them.
impl<'de> Deserialize<'de> for JsonStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = JsonStep;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step: an object with its name as `step` and its arguments")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonStep, A::Error> {
                let (mut step, mut arguments) = (None, Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    if name != "step" {
                        arguments.push((name, map.next_value()?));
                    } else if step.replace(map.next_value()?).is_some() {
                        return Err(de::Error::duplicate_field("step"));
                    }
                }
                Ok(JsonStep {
                    step: step.ok_or_else(|| de::Error::missing_field("step"))?,
                    arguments,
                })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
