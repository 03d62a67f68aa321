//! Argument values, in text and in JSON.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
};

use serde::{Deserialize, Serialize, de};

/// An argument's value.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// A plain name or a quoted string, which are equivalent.
    Text(String),
    /// Values in brackets.
    List(Vec<Value>),
}

/// Whether `text` needs no quotes: a letter or `_`, followed by letters, digits and `_`.
pub fn is_plain(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The first `max_chars` characters of `text`, for error messages.
pub fn excerpt(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => Cow::Owned(format!("{}..", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

impl Value {
    /// A description of the type for error messages.
    pub const fn describe(&self) -> &'static str {
        match self {
            Self::Int(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a name",
            Self::List(_) => "a list",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            // Debug is the shortest text that parses as the same number, and always has a point or an exponent.
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Text(text) if is_plain(text) => f.write_str(text),
            Self::Text(text) => quote(f, text),
            Self::List(values) => {
                f.write_str("[")?;
                for (index, value) in values.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{value}")?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Writes `text` in double quotes and ASCII, so that it can be a header value.
fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for char in text.chars() {
        match char {
            '"' | '\\' => write!(f, "\\{char}")?,
            ' '..='~' => f.write_char(char)?,
            _ => write!(f, "\\u{{{:x}}}", u32::from(char))?,
        }
    }
    f.write_char('"')
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, a string or a list of them")
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
                Ok(Value::Text(value.to_string()))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Int(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
                i64::try_from(value)
                    .map(Value::Int)
                    .map_err(|_| E::custom("whole number out of range"))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
                Ok(Value::Float(value))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
                Ok(Value::Text(value.to_owned()))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = seq.next_element()? {
                    values.push(value);
                }
                Ok(Value::List(values))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Converts by the shortest text of the f32, so that 0.485 stays 0.485.
impl From<f32> for Value {
    fn from(number: f32) -> Self {
        Self::Float(
            format!("{number:?}")
                .parse()
                .unwrap_or_else(|_| f64::from(number)),
        )
    }
}
