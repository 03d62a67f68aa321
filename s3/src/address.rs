//! What a request addresses: the bucket and the key, from its path or its virtual host.

mod request;

use std::borrow::Cow;

pub use request::{AddressStyle, RequestAddress};

use crate::escapes;

/// The bucket and the key of an object, percent-decoded. Both are bytes: escapes need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address<'a> {
    /// Name of the bucket. Empty for a path that begins with `//`.
    pub bucket: Cow<'a, [u8]>,
    /// The key. Empty for a path that names only a bucket.
    pub key: Cow<'a, [u8]>,
}

impl<'a> Address<'a> {
    /// The address of a path `/bucket/key`, without a query. `None` without a leading slash, or without one after the bucket.
    ///
    /// The path is split before it is decoded, so that a bucket may contain an escaped slash; `+` and `%` without two hex digits are
    /// literal. This is the name of a sample, whoever serves it. What a request that the gateway verifies addresses, is [`RequestAddress`],
    /// which is decoded strictly and first.
    pub fn from_path(path: &'a str) -> Option<Self> {
        let (bucket, key) = path.strip_prefix('/')?.split_once('/')?;
        Some(Self {
            bucket: escapes::decode_lenient(bucket),
            key: escapes::decode_lenient(key),
        })
    }

    /// The address of a decoded path: `/bucket/key`, `/bucket` or `/`. `None` without a leading slash.
    fn from_decoded_path(path: &'a [u8]) -> Option<Self> {
        let path = path.strip_prefix(b"/")?;
        let end = path.iter().position(|byte| *byte == b'/');
        let (bucket, key) = path.split_at(end.unwrap_or(path.len()));
        Some(Self {
            bucket: bucket.into(),
            key: key.get(1..).unwrap_or_default().into(),
        })
    }

    fn into_owned(self) -> Address<'static> {
        Address {
            bucket: Cow::Owned(self.bucket.into_owned()),
            key: Cow::Owned(self.key.into_owned()),
        }
    }

    /// Whether the path names an object: neither bucket nor key is empty.
    pub fn is_object(&self) -> bool {
        !self.bucket.is_empty() && !self.key.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(path: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        let address = Address::from_path(path)?;
        Some((address.bucket.into_owned(), address.key.into_owned()))
    }

    fn both(bucket: &str, key: &str) -> (Vec<u8>, Vec<u8>) {
        (bucket.into(), key.into())
    }

    #[test]
    fn paths_are_split_and_decoded() {
        assert_eq!(parse("/b/k"), Some(both("b", "k")));
        assert_eq!(
            parse("/b%2Fc/a%20b+c/%2F%C3%A9.jpg"),
            Some(both("b/c", "a b+c//\u{e9}.jpg"))
        );
        assert_eq!(parse("/b//k/"), Some(both("b", "/k/")));
        assert_eq!(parse("/b/%fF"), Some((b"b".to_vec(), vec![0xff])));
        for path in ["", "/", "/b", "b", "b/k"] {
            assert_eq!(parse(path), None, "{path}");
        }
    }

    #[test]
    fn an_incomplete_escape_is_literal() {
        for key in ["%zz%4", "%", "%%", "100%", "%4g", "%+1", "a+b"] {
            assert_eq!(parse(&format!("/b/{key}")), Some(both("b", key)), "{key}");
        }
        assert_eq!(parse("/b/%%41"), Some(both("b", "%A")));
    }

    #[test]
    fn an_object_has_a_bucket_and_a_key() {
        let is_object = |path| Address::from_path(path).is_some_and(|address| address.is_object());
        assert!(is_object("/b/k") && is_object("/b//"));
        assert!(!is_object("//k") && !is_object("/b/") && !is_object("/b"));
    }
}
