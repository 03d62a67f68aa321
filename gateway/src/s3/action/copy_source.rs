//! The source of a copy: `[/]BUCKET/KEY[?versionId=ID]`, percent-encoded.

use crate::access::{Access, Action};
use crate::s3::escapes;

const VERSION: &[u8] = b"versionId=";

/// What a copy from this source needs. `None` for what is not the path of an object, such as the ARN of an access point.
pub(super) fn accesses(source: &[u8]) -> Option<Vec<Access>> {
    let (path, has_version) = match source.iter().position(|byte| *byte == b'?') {
        Some(end) => {
            let (path, query) = source.split_at(end);
            if !query.get(1..)?.starts_with(VERSION) {
                return None;
            }
            (path, true)
        }
        None => (source, false),
    };
    let mut accesses = read_accesses(path, has_version)?;
    // Some stores read `+` as a space, others do not.
    if path.contains(&b'+') {
        let spaced: Vec<u8> = path
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte })
            .collect();
        accesses.extend(read_accesses(&spaced, has_version)?);
    }
    Some(accesses)
}

fn read_accesses(path: &[u8], has_version: bool) -> Option<Vec<Access>> {
    let path = escapes::decode(path)?;
    let path = path.strip_prefix(b"/").unwrap_or(&path);
    let end = path.iter().position(|byte| *byte == b'/')?;
    let (bucket, key) = (path.get(..end)?, path.get(end + 1..)?);
    // A store that decodes first, and splits then, would see a version.
    let names_version = key
        .windows(VERSION.len() + 1)
        .any(|window| window.strip_prefix(b"?") == Some(VERSION));
    if bucket.is_empty() || bucket.contains(&b':') || key.is_empty() || names_version {
        return None;
    }
    let mut accesses = vec![Access::object(Action::Read, bucket, key)];
    if has_version {
        accesses.push(Access::object(Action::Versions, bucket, key));
    }
    Some(accesses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str) -> Access {
        Access::object(Action::Read, "b", key)
    }

    fn versions(key: &str) -> Access {
        Access::object(Action::Versions, "b", key)
    }

    #[test]
    fn a_source_is_read() {
        let cases = [
            ("b/k", vec![read("k")]),
            ("/b/k", vec![read("k")]),
            ("b%2Fk%20%2F%3F", vec![read("k /?")]),
            ("b//k/../x", vec![read("/k/../x")]),
            ("/b/k?versionId=3%2F", vec![read("k"), versions("k")]),
            ("/b/k?versionId=", vec![read("k"), versions("k")]),
            ("b/a+b%2B", vec![read("a+b+"), read("a b+")]),
            (
                "b/a+?versionId=x",
                vec![read("a+"), versions("a+"), read("a "), versions("a ")],
            ),
        ];
        for (source, expected) in cases {
            assert_eq!(accesses(source.as_bytes()), Some(expected), "{source}");
        }
    }

    #[test]
    fn other_sources_are_refused() {
        for source in [
            "",
            "/",
            "b",
            "b/",
            "/b/",
            "//k",
            "/%2Fb/k",
            "b/k?",
            "b/k?versionid=1",
            "b/k?x&versionId=1",
            "b/k%3FversionId=1",
            "b/%zz",
            "arn:aws:s3:us-east-1:1:accesspoint/name/object/k",
        ] {
            assert_eq!(accesses(source.as_bytes()), None, "{source}");
        }
    }
}
