//! `s3://bucket/key`, and patterns of several keys.

use std::{fmt, str::FromStr};

use pushdown::shard::expand_braces;

use crate::errors::Usage;

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

/// The bucket and the keys of patterns such as `s3://b/train-{000..120}.tar`, in their order. Braces are expanded in keys.
///
/// # Errors
/// For invalid braces, and for patterns in several buckets.
pub(crate) fn expand(patterns: &[Location]) -> Result<(String, Vec<String>), Usage> {
    let mut keys = Vec::new();
    for pattern in patterns {
        let first = &patterns[0].bucket;
        if pattern.bucket != *first {
            return Err(Usage(format!(
                "found the buckets {first} and {}, expected all shards in one",
                pattern.bucket
            )));
        }
        let expanded = expand_braces(&pattern.key).map_err(|error| Usage(error.to_string()))?;
        keys.extend(expanded);
    }
    let bucket = patterns.first().map(|pattern| pattern.bucket.clone());
    Ok((bucket.unwrap_or_default(), keys))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_expanded_in_one_bucket() {
        let expanded = |patterns: &[&str]| {
            let patterns: Vec<Location> = patterns.iter().map(|pattern| pattern.parse().unwrap()).collect();
            expand(&patterns).map_err(|error| error.to_string())
        };
        let (bucket, keys) = expanded(&["s3://b/train-{08..10}.tar", "s3://b/val.tar"]).unwrap();
        assert_eq!(bucket, "b");
        assert_eq!(keys, ["train-08.tar", "train-09.tar", "train-10.tar", "val.tar"]);
        assert_eq!(
            expanded(&["s3://b/a.tar", "s3://c/a.tar"]).unwrap_err(),
            "found the buckets b and c, expected all shards in one"
        );
        assert!(
            expanded(&["s3://b/{a.tar"])
                .unwrap_err()
                .contains("invalid braces")
        );
    }

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
