//! A row of a batch answer.

use std::{fmt, str::FromStr};

use crate::{Error, Sample};

/// One sample's part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Index of the sample in the request, from 0.
    pub row: u32,
    /// How many steps the value has been through.
    pub stage: u8,
    /// What the steps took at the gateway: seconds of a thread, all threads together.
    pub seconds: f32,
    /// The value, or why there is none.
    pub value: Result<Sample, RowError>,
}

/// Why a sample has no value. As text, `code: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// An S3 error code (`NoSuchKey`), or one of [`ErrorKind::code`](crate::ErrorKind::code). No colon.
    pub code: String,
    /// For people.
    pub message: String,
}

impl RowError {
    /// An error from its two parts.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl From<&Error> for RowError {
    fn from(error: &Error) -> Self {
        Self::new(error.kind().code(), error.to_string())
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for RowError {}

/// Reads `code: message`; a text without a code is an `InternalError`.
impl FromStr for RowError {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once(": ") {
            Some((code, message))
                if !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_alphanumeric()) =>
            {
                Self::new(code, message)
            }
            _ => Self::new("InternalError", text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_from_its_text() {
        for error in [
            RowError::new("NoSuchKey", "The specified key does not exist."),
            RowError::new("UndecodableObject", "at 3: found: nothing"),
            RowError::new("SlowDown", ""),
        ] {
            assert_eq!(error.to_string().parse(), Ok(error));
        }
        assert_eq!("".parse(), Ok(RowError::new("InternalError", "")));
        assert_eq!(
            "went wrong: why".parse(),
            Ok(RowError::new("InternalError", "went wrong: why"))
        );
    }

    #[test]
    fn takes_the_code_of_an_error() {
        let error = RowError::from(&Error::undecodable("no image"));
        assert_eq!(error.to_string(), "UndecodableObject: no image");
    }
}
