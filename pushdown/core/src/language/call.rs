//! Calls: a parsed step name with its arguments, and the conversion of arguments to typed values.

use std::sync::Arc;

use super::{
    NamedModel, Param, Resolver,
    value::{Value, excerpt},
};
use crate::{Error, Result, step::InnerPipeline};

/// Parses the text of a pipeline inside a step, with models from the resolver.
pub type InnerParser = fn(&str, &dyn Resolver) -> Result<Arc<dyn InnerPipeline>>;

/// A parsed step, before its name and arguments are checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Name of the step.
    pub name: String,
    /// Byte offset of the name in the text; the index of the step for JSON.
    pub position: usize,
    /// The arguments in the order of the text.
    pub arguments: Vec<Argument>,
}

/// A parsed argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The name, unless the argument is positional.
    pub name: Option<String>,
    /// Byte offset of the argument in the text; the index of the step for JSON.
    pub position: usize,
    /// The value.
    pub value: Value,
    /// Byte offset of the value, after its opening quote.
    pub value_position: usize,
    /// Whether the value has no escapes, so that offsets in the value are offsets in the text.
    pub is_verbatim: bool,
}

/// The arguments of a call, bound to the parameters of its step.
#[derive(Debug)]
pub struct Args<'a> {
    step: &'static str,
    position: usize,
    params: &'static [Param],
    bound: Vec<Option<&'a Argument>>,
    models: &'a dyn Resolver,
    parse_inner: InnerParser,
}

impl<'a> Args<'a> {
    /// Binds positional arguments in the order of `params`, and named ones by name.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for unknown, repeated or surplus arguments.
    pub fn bind(
        call: &'a Call,
        step: &'static str,
        params: &'static [Param],
        models: &'a dyn Resolver,
        parse_inner: InnerParser,
    ) -> Result<Self> {
        let mut bound: Vec<Option<&Argument>> = vec![None; params.len()];
        let mut named = false;
        for (index, argument) in call.arguments.iter().enumerate() {
            let slot = match &argument.name {
                Some(name) => {
                    named = true;
                    params
                        .iter()
                        .position(|param| param.name == name)
                        .ok_or_else(|| {
                            Error::pipeline(
                                argument.position,
                                format!(
                                    "`{step}` has no argument `{}`, expected {}",
                                    excerpt(name, 40),
                                    names(params)
                                ),
                            )
                        })?
                }
                None if named => {
                    return Err(Error::pipeline(
                        argument.position,
                        "found a positional argument after a named one, expected a name",
                    ));
                }
                None if index < params.len() && !params[index].named_only => index,
                None => {
                    let count = params.iter().filter(|param| !param.named_only).count();
                    return Err(Error::pipeline(
                        argument.position,
                        format!(
                            "`{step}` takes at most {count} positional arguments; named ones: {}",
                            names(params)
                        ),
                    ));
                }
            };
            if bound[slot].replace(argument).is_some() {
                return Err(Error::pipeline(
                    argument.position,
                    format!("found `{}` twice, expected it once", params[slot].name),
                ));
            }
        }
        Ok(Self {
            step,
            position: call.position,
            params,
            bound,
            models,
            parse_inner,
        })
    }

    /// The value of the argument `name`, if present.
    pub fn optional<T: FromValue>(&self, name: &str) -> Result<Option<T>> {
        let slot = self.params.iter().position(|param| param.name == name);
        let Some(argument) = slot.and_then(|slot| self.bound[slot]) else {
            return Ok(None);
        };
        match T::from_value(&argument.value) {
            Ok(value) => Ok(Some(value)),
            Err(expected) => Err(Error::pipeline(
                argument.position,
                format!(
                    "`{name}` is {} `{}`, expected {expected}",
                    argument.value.describe(),
                    excerpt(&argument.value.to_string(), 40)
                ),
            )),
        }
    }

    /// The value of the required argument `name`.
    pub fn required<T: FromValue>(&self, name: &str) -> Result<T> {
        self.optional(name)?
            .ok_or_else(|| self.fault(format!("`{}` needs the argument `{name}`", self.step)))
    }

    /// The model `name`.
    ///
    /// # Errors
    /// As [`Resolver::resolve`], with the position of the step.
    pub fn model(&self, name: &str) -> Result<Arc<dyn NamedModel>> {
        self.models
            .resolve(name)
            .map_err(|error| error.with_position(self.position))
    }

    /// The pipeline in the required argument `name`.
    pub fn pipeline(&self, name: &str) -> Result<Arc<dyn InnerPipeline>> {
        let text: String = self.required(name)?;
        (self.parse_inner)(&text, self.models).map_err(|error| {
            let (offset, message) = error.split_position();
            self.fault_inside(name, offset, message)
        })
    }

    /// An error in the text of the argument `name`, at this byte offset of the text if known.
    pub fn fault_inside(&self, name: &str, offset: Option<usize>, message: impl std::fmt::Display) -> Error {
        let slot = self.params.iter().position(|param| param.name == name);
        match slot.and_then(|slot| self.bound[slot]) {
            Some(argument) => {
                let offset = offset.filter(|_| argument.is_verbatim).unwrap_or_default();
                Error::pipeline(argument.value_position + offset, message)
            }
            None => self.fault(message),
        }
    }

    /// An error at the position of the step, for rules about several arguments.
    pub fn fault(&self, message: impl std::fmt::Display) -> Error {
        Error::pipeline(self.position, message)
    }
}

fn names(params: &[Param]) -> String {
    match params {
        [] => "none".to_owned(),
        params => params
            .iter()
            .map(|param| format!("`{}`", param.name))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// A type of argument values.
pub trait FromValue: Sized {
    /// Converts the value. The error describes the expected value.
    fn from_value(value: &Value) -> Result<Self, String>;
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err("a name".to_owned()),
        }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) if text == "true" => Ok(true),
            Value::Text(text) if text == "false" => Ok(false),
            _ => Err("`true` or `false`".to_owned()),
        }
    }
}

impl FromValue for i64 {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(number) => Ok(*number),
            _ => Err("a whole number".to_owned()),
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(number) => Self::try_from(*number).map_err(|_| "a whole number from 0".to_owned()),
            _ => Err("a whole number from 0".to_owned()),
        }
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            #[expect(
                clippy::cast_precision_loss,
                reason = "a written number becomes the nearest float"
            )]
            Value::Int(number) => Ok(*number as Self),
            // -0.0 becomes 0.0: they are equal, but have different canonical texts.
            Value::Float(number) => Ok(*number + 0.0),
            _ => Err("a number".to_owned()),
        }
    }
}

impl FromValue for f32 {
    fn from_value(value: &Value) -> Result<Self, String> {
        let number = f64::from_value(value)?;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "rounds to nearest, as torch converts a Python float"
        )]
        let number = number as Self + 0.0;
        if number.is_finite() {
            Ok(number)
        } else {
            Err("a number within the range of f32".to_owned())
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    /// A single value is a list with one element.
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::List(values) => values.iter().map(T::from_value).collect(),
            single => Ok(vec![T::from_value(single)?]),
        }
    }
}

impl<T: FromValue, const N: usize> FromValue for [T; N] {
    fn from_value(value: &Value) -> Result<Self, String> {
        let values = match value {
            Value::List(values) => values.iter().map(T::from_value).collect::<Result<Vec<_>, _>>()?,
            _ => Vec::new(),
        };
        values.try_into().map_err(|_| format!("a list of {N} numbers"))
    }
}

/// Width or height of an image in pixels: 1 to 65,535, the maximum of JPEG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side(pub u32);

impl FromValue for Side {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Int(number @ 1..=65_535) => Ok(Self(u32::try_from(*number).unwrap_or_default())),
            _ => Err("a side of 1 to 65535 pixels".to_owned()),
        }
    }
}

/// Defines an enum whose variants are named argument values.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// The name in a pipeline.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl $crate::language::FromValue for $name {
            fn from_value(value: &$crate::language::Value) -> Result<Self, String> {
                let names: &[&str] = &[$($text),+];
                match value {
                    $($crate::language::Value::Text(text) if text == $text => Ok(Self::$variant),)+
                    _ => Err(format!("one of {}", names.join(", "))),
                }
            }
        }
    };
}
