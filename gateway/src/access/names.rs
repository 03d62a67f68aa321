//! Names of buckets and keys on which a decision is safe.

use std::net::Ipv4Addr;

/// Whether `name` is a bucket name by the rules of S3: 3 to 63 lower-case letters, digits, dots and hyphens; a letter or digit at
/// both ends; no two dots in a row, and no IPv4 address.
pub(super) fn is_bucket_name(name: &[u8]) -> bool {
    let is_alphanumeric = |byte: Option<&u8>| matches!(byte, Some(b'a'..=b'z' | b'0'..=b'9'));
    (3..=63).contains(&name.len())
        && is_alphanumeric(name.first())
        && is_alphanumeric(name.last())
        && name
            .iter()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
        && !name.windows(2).any(|pair| pair == b"..")
        && !std::str::from_utf8(name).is_ok_and(|name| name.parse::<Ipv4Addr>().is_ok())
}

/// The message about an unsafe key.
pub const UNSAFE_KEY: &str = "invalid key: expected one without NUL, and without a segment . or ..";

/// Whether `key` has a NUL, or a segment `.` or `..`. A store that cleans paths would serve another object, or another bucket,
/// than the one that was decided on. A backslash separates segments, too, as on Windows.
pub fn is_unsafe_key(key: &[u8]) -> bool {
    key.contains(&0)
        || key
            .split(|byte| matches!(byte, b'/' | b'\\'))
            .any(|segment| matches!(segment, b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_follow_the_rules_of_s3() {
        for valid in ["abc", "photos", "my.bucket-1", "1-2", &"a".repeat(63)] {
            assert!(is_bucket_name(valid.as_bytes()), "{valid}");
        }
        for invalid in [
            "",
            "ab",
            &"a".repeat(64),
            "Photos",
            "-abc",
            "abc-",
            ".abc",
            "abc.",
            "a..b",
            "..",
            "*",
            "pho*",
            "a/b",
            "a_b",
            "a b",
            "192.168.0.1",
            "caf\u{e9}",
            "abc\0",
        ] {
            assert!(!is_bucket_name(invalid.as_bytes()), "{invalid}");
        }
        assert!(!is_bucket_name(b"abc\xff"));
    }

    #[test]
    fn a_key_that_a_store_might_clean_is_unsafe() {
        for key in [
            "..", ".", "../a", "a/..", "a/../b", "./a", "a/.", "a/./b", "a\0", "a\\..\\b", "//..//",
        ] {
            assert!(is_unsafe_key(key.as_bytes()), "{key}");
        }
        for key in [
            "",
            "a",
            "a//b",
            "/a",
            "a/",
            "...",
            "..a/b..",
            "a/.hidden",
            "a%2e%2e/b",
        ] {
            assert!(!is_unsafe_key(key.as_bytes()), "{key}");
        }
    }
}
