//! Keys as URL paths, percent-encoded once by S3's rules.

use pushdown_s3::escapes::{encode_component, encode_path};

/// The path of an object in path style: `/bucket/key`.
pub(crate) fn object_path(bucket: &str, key: &str) -> String {
    format!(
        "/{}/{}",
        encode_component(bucket.as_bytes()),
        encode_path(key.as_bytes())
    )
}

#[cfg(test)]
mod tests {
    use pushdown::wire::sample_id;

    use super::*;

    #[test]
    fn all_characters_but_the_unreserved_are_encoded() {
        assert_eq!(
            object_path("b", "photos/cat-1_a.b~c.jpg"),
            "/b/photos/cat-1_a.b~c.jpg"
        );
        assert_eq!(
            object_path("b", "a b+c%2F*'()!&=?#:@,;"),
            "/b/a%20b%2Bc%252F%2A%27%28%29%21%26%3D%3F%23%3A%40%2C%3B"
        );
        assert_eq!(object_path("b", "/lead//double/"), "/b//lead//double/");
        assert_eq!(object_path("b", "\u{e9}\u{1f600}\n"), "/b/%C3%A9%F0%9F%98%80%0A");
    }

    proptest::proptest! {
        #[test]
        fn the_gateway_reads_the_key_back(key in "\\PC{1,40}") {
            let path = object_path("bucket", &key);
            proptest::prop_assert!(path.is_ascii());
            proptest::prop_assert_eq!(sample_id(None, &path, None), key.as_bytes());
        }
    }
}
