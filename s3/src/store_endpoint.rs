//! A store as a request to a gateway states it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{InvalidStore, StoreUrl};

/// The store that the path of an object is for: where it is, and the bucket if its host names one.
///
/// As JSON `{"url": "https://photos.s3.eu-central-1.amazonaws.com", "bucket": "photos"}`, as text `URL; bucket=photos`; without `bucket` if
/// paths name it, `/bucket/key`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct StoreEndpoint {
    #[serde(serialize_with = "as_text")]
    url: StoreUrl,
    #[serde(skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
}

/// The JSON form, not checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatedStore {
    url: String,
    bucket: Option<String>,
}

impl StoreEndpoint {
    /// The store at `url`. With a `bucket` its host is that of the bucket, and paths are keys.
    ///
    /// # Errors
    /// A bucket that is not the first label of a host name with other labels.
    pub fn new(url: StoreUrl, bucket: Option<String>) -> Result<Self, InvalidStore> {
        let label = url.host().split_first_label().map(|(label, _)| label);
        match &bucket {
            Some(bucket) if label != Some(bucket) => Err(InvalidStore::new(format!(
                "expected `bucket` to be the first label of the host `{}`; without it, paths name the bucket",
                url.host()
            ))),
            _ => Ok(Self { url, bucket }),
        }
    }

    /// Scheme, host and port.
    pub const fn url(&self) -> &StoreUrl {
        &self.url
    }

    /// The bucket that the host names; `None` if paths name it.
    pub fn bucket(&self) -> Option<&str> {
        self.bucket.as_deref()
    }
}

impl fmt::Display for StoreEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.url)?;
        match &self.bucket {
            Some(bucket) => write!(f, "; bucket={bucket}"),
            None => Ok(()),
        }
    }
}

impl FromStr for StoreEndpoint {
    type Err = InvalidStore;

    fn from_str(text: &str) -> Result<Self, InvalidStore> {
        let (url, parameter) = match text.split_once(';') {
            Some((url, parameter)) => (url, Some(parameter)),
            None => (text, None),
        };
        let bucket = parameter.map(|parameter| {
            parameter
                .trim_start_matches(' ')
                .strip_prefix("bucket=")
                .map(str::to_owned)
                .ok_or_else(|| InvalidStore::new("expected `URL` or `URL; bucket=NAME`"))
        });
        Self::new(url.parse()?, bucket.transpose()?)
    }
}

impl<'de> Deserialize<'de> for StoreEndpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Errors of serde show the value, which can be a presigned URL.
        let stated = StatedStore::deserialize(deserializer).map_err(|_| {
            D::Error::custom(
                "invalid store: expected an object with `url`, and `bucket` if the host names it",
            )
        })?;
        let url = stated.url.parse().map_err(D::Error::custom)?;
        Self::new(url, stated.bucket).map_err(D::Error::custom)
    }
}

fn as_text<S: Serializer>(url: &StoreUrl, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_the_first_label_of_the_host() {
        let read = |text: &str| text.parse::<StoreEndpoint>();
        let photos = read("https://Photos.S3.example.:443; bucket=photos").unwrap();
        assert_eq!(photos.to_string(), "https://photos.s3.example; bucket=photos");
        assert_eq!(photos.bucket(), Some("photos"));
        assert_eq!(read(&photos.to_string()).as_ref(), Ok(&photos));
        let store = read("http://127.0.0.1:8333").unwrap();
        assert_eq!(
            (store.bucket(), &*store.to_string()),
            (None, "http://127.0.0.1:8333")
        );
        for (wrong, expected) in [
            (
                "http://photos.s3.example; bucket=photo",
                "the first label of the host",
            ),
            (
                "http://photos.s3.example; bucket=photos.s3",
                "the first label of the host",
            ),
            (
                "http://photos.s3.example; bucket=Photos",
                "the first label of the host",
            ),
            ("http://photos.s3.example; bucket=", "the first label of the host"),
            ("http://photos; bucket=photos", "the first label of the host"),
            ("http://127.0.0.1; bucket=127", "the first label of the host"),
            ("http://photos.s3.example; key=photos", "`URL; bucket=NAME`"),
            ("http://photos.s3.example;", "`URL; bucket=NAME`"),
            (
                "http://photos.s3.example; bucket=photos; bucket=b",
                "the first label of the host",
            ),
            ("; bucket=photos", "begins with http:// or https://"),
        ] {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }
}
