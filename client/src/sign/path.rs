//! Keys as URL paths, percent-encoded once by S3's rules.

use pushdown_s3::escapes::{encode_component, encode_path};

/// The paths of a bucket's objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectPaths {
    /// What is before `/key`: `/bucket`, or nothing if the host names the bucket.
    prefix: String,
}

impl ObjectPaths {
    /// Paths in path style: `/bucket/key`.
    pub(crate) fn with_bucket(bucket: &str) -> Self {
        Self {
            prefix: format!("/{}", encode_component(bucket.as_bytes())),
        }
    }

    /// Paths at a virtual host, which names the bucket: `/key`.
    pub(crate) const fn of_virtual_host() -> Self {
        Self {
            prefix: String::new(),
        }
    }

    /// The path of an object.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("{}/{}", self.prefix, encode_path(key.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use pushdown::wire::sample_id;

    use super::*;

    #[test]
    fn all_characters_but_the_unreserved_are_encoded() {
        let path = |key: &str| {
            let path = ObjectPaths::with_bucket("b").path(key);
            assert_eq!(format!("/b{}", ObjectPaths::of_virtual_host().path(key)), path);
            path
        };
        assert_eq!(path("photos/cat-1_a.b~c.jpg"), "/b/photos/cat-1_a.b~c.jpg");
        assert_eq!(
            path("a b+c%2F*'()!&=?#:@,;"),
            "/b/a%20b%2Bc%252F%2A%27%28%29%21%26%3D%3F%23%3A%40%2C%3B"
        );
        assert_eq!(path("/lead//double/"), "/b//lead//double/");
        assert_eq!(path("\u{e9}\u{1f600}\n"), "/b/%C3%A9%F0%9F%98%80%0A");
    }

    proptest::proptest! {
        #[test]
        fn the_gateway_reads_the_key_back(key in "\\PC{1,40}") {
            let path = ObjectPaths::with_bucket("bucket").path(&key);
            proptest::prop_assert!(path.is_ascii());
            proptest::prop_assert_eq!(sample_id(None, &path, None), key.as_bytes());
        }
    }
}
