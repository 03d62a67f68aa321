//! A row of a batch answer.

use std::{fmt, str::FromStr};

use bytes::Bytes;

use super::CacheStatus;
use pushdown_core::{Error, Sample};

/// The row of one sample in an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Index of the sample in the request, from 0.
    pub row: u32,
    /// The number of steps applied to the value.
    pub stage: u8,
    /// Thread seconds of the steps at the gateway, summed over all threads.
    pub seconds: f32,
    /// Where the value comes from. [`Computed`](CacheStatus::Computed) in an answer without the column `cache`.
    pub cache: CacheStatus,
    /// The value, or the error of the sample. Empty bytes in an answer without values.
    pub value: Result<Sample, RowError>,
    /// The further columns, as stored, in the order of the request: `None` where the sample has none. Empty without columns, and for a
    /// failed row.
    pub columns: Vec<Option<Bytes>>,
    /// Whether the value is in the result cache now, in an answer without values; `None` in an answer with values, and for a failed row.
    pub stored: Option<bool>,
}

/// The error of a sample. As text, `code: message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// An S3 error code (`NoSuchKey`), or a code of [`ErrorKind::code`](pushdown_core::ErrorKind::code), without a colon.
    pub code: String,
    /// The message for people.
    pub message: String,
}

impl RowError {
    /// An error with a code and a message.
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

/// Parses `code: message`. Text without a code becomes an `InternalError`.
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
    fn row_errors_parse_their_own_text() {
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
    fn row_errors_have_the_code_of_their_error() {
        let error = RowError::from(&Error::undecodable("no image"));
        assert_eq!(error.to_string(), "UndecodableObject: no image");
    }
}
