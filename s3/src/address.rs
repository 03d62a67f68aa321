//! What a request addresses: the bucket and the key, from its path, its store or its virtual host.

mod region;
mod request;

use std::borrow::Cow;

pub use region::{authority_in_region, is_aws_host, is_label};
pub use request::{AddressStyle, RequestAddress};

use crate::{StoreEndpoint, escapes};

/// The bucket and the key of an object, percent-decoded. Both are bytes: escapes need not be UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address<'a> {
    /// Name of the bucket. Empty for a path that begins with `//`.
    pub bucket: Cow<'a, [u8]>,
    /// The key. Empty for a path that names only a bucket.
    pub key: Cow<'a, [u8]>,
}

impl<'a> Address<'a> {
    /// The address of an object, by its path without a query and the `store` that the path is for, as the request states it. Without one the
    /// request went to an endpoint with paths `/bucket/key`, as do those for a store whose host names no bucket; at the host of a bucket the
    /// whole path is the key. `None` without a leading slash, or without one after the bucket.
    ///
    /// This is the name of a sample, whoever serves it: ids for random draws, data sets of the cache and members follow from it, at either end.
    /// The path is split before it is decoded, so that a bucket may contain an escaped slash; `+` and `%` without two hex digits are
    /// literal. What a request that the gateway verifies addresses, is [`RequestAddress`], which is decoded strictly and first.
    pub fn new(store: Option<&'a StoreEndpoint>, path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        if let Some(bucket) = store.and_then(StoreEndpoint::bucket) {
            return Some(Self {
                bucket: bucket.as_bytes().into(),
                key: escapes::decode_lenient(path),
            });
        }
        let (bucket, key) = path.split_once('/')?;
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
        let address = Address::new(None, path)?;
        Some((address.bucket.into_owned(), address.key.into_owned()))
    }

    fn both(bucket: &str, key: &str) -> (Vec<u8>, Vec<u8>) {
        (bucket.into(), key.into())
    }

    /// The first segment of the path would be lost otherwise, and random steps would draw other pixels in silence.
    #[test]
    fn the_path_at_the_host_of_a_bucket_is_a_key() {
        let photos: StoreEndpoint = "https://photos.s3.example; bucket=photos".parse().unwrap();
        let store: StoreEndpoint = "https://s3.example".parse().unwrap();
        for (path, key) in [
            ("/train/1.jpg", "train/1.jpg"),
            ("/1.jpg", "1.jpg"),
            ("//a//b/", "/a//b/"),
            ("/photos/1.jpg", "photos/1.jpg"),
            ("/a%2Fb%20c+%zz", "a/b c+%zz"),
        ] {
            let found = Address::new(Some(&photos), path).unwrap();
            assert_eq!(
                (&*found.bucket, &*found.key),
                (&b"photos"[..], key.as_bytes()),
                "{path}"
            );
            assert!(found.is_object());
            let path_style = format!("/photos{path}");
            assert_eq!(Address::new(Some(&store), &path_style), Some(found), "{path}");
        }
        assert!(!Address::new(Some(&photos), "/").unwrap().is_object());
        for path in ["", "train/1.jpg"] {
            assert_eq!(Address::new(Some(&photos), path), None, "{path}");
        }
        assert_eq!(Address::new(Some(&store), "/photos"), None);
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
        let is_object = |path| Address::new(None, path).is_some_and(|address| address.is_object());
        assert!(is_object("/b/k") && is_object("/b//"));
        assert!(!is_object("//k") && !is_object("/b/") && !is_object("/b"));
    }
}
