//! `s3://bucket/key`.

use std::{fmt, str::FromStr};

/// A bucket, and a key or a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) bucket: String,
    pub(crate) key: String,
}

impl FromStr for Location {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix("s3://").ok_or("expected s3://bucket/key")?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err("no bucket found, expected s3://bucket/key".to_owned());
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
        })
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_decoded() {
        for text in ["s3://b/k", "s3://b/", "s3://b//a b%2F+?#/\u{e9}"] {
            assert_eq!(text.parse::<Location>().unwrap().to_string(), text);
        }
        assert_eq!("s3://b".parse::<Location>().unwrap().to_string(), "s3://b/");
        for text in ["", "b/k", "s3:///k", "http://b/k"] {
            assert!(text.parse::<Location>().is_err(), "{text}");
        }
    }
}
