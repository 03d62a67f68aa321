//! Names of members: which are valid, and how they split into sample and column.

use std::borrow::Cow;

use crate::{ShardError, limits::MAX_NAME_BYTES};

/// Most bytes of a name in a message.
const MAX_QUOTED_BYTES: usize = 200;

/// Checks that a member may have this name: not empty, relative, without `..` as a part, without NUL, not the name of a
/// directory, and at most [`MAX_NAME_BYTES`] long.
///
/// # Errors
/// [`ShardError::InvalidName`].
pub fn check_name(name: &str) -> Result<(), ShardError> {
    checked_name(name.as_bytes()).map(drop)
}

/// The name as text, if a member may have it.
pub(crate) fn checked_name(name: &[u8]) -> Result<&str, ShardError> {
    let invalid = |reason| ShardError::InvalidName {
        name: quoted(name),
        reason,
    };
    if name.len() > MAX_NAME_BYTES {
        return Err(invalid("expected at most 1,024 bytes, found more"));
    }
    let Ok(text) = str::from_utf8(name) else {
        return Err(invalid("expected UTF-8, found other bytes"));
    };
    if text.is_empty() {
        Err(invalid("expected a name, found an empty one"))
    } else if text.contains('\0') {
        Err(invalid("expected no NUL, found one"))
    } else if text.starts_with('/') {
        Err(invalid("expected a relative path, found an absolute one"))
    } else if text.split('/').any(|part| part == "..") {
        Err(invalid("expected no `..` as a part, found one"))
    } else if text.ends_with('/') {
        Err(invalid("expected the name of a file, found that of a directory"))
    } else {
        Ok(text)
    }
}

/// Why a file with this name is left out of a tar, if it is: programs read it, and no member can have it.
pub(crate) fn left_out_name(name: &[u8]) -> Option<&'static str> {
    if str::from_utf8(name).is_err() {
        Some("a name that is not UTF-8")
    } else if name.starts_with(b"/") {
        Some("an absolute name")
    } else if name.split(|byte| *byte == b'/').any(|part| part == b"..") {
        Some("a name with a part `..`")
    } else {
        None
    }
}

/// A name for a message: escaped, and cut if it is long.
pub(crate) fn quoted(name: &[u8]) -> String {
    let (start, dots) = match name.get(..MAX_QUOTED_BYTES) {
        Some(start) if start.len() < name.len() => (start, "..."),
        _ => (name, ""),
    };
    let escaped = start.utf8_chunks().map(|chunk| {
        let other = chunk.invalid().escape_ascii();
        format!("{}{other}", chunk.valid().escape_debug())
    });
    escaped.chain([dots.to_owned()]).collect()
}

/// Splits a name into the sample that it belongs to and its column, as `WebDataset` does: at the first dot after the last slash,
/// the column in lower case. `a/b.seg.PNG` is the column `seg.png` of the sample `a/b`.
///
/// `None` for a name without such a dot, and if it is the first character after the slash.
pub fn split_name(name: &str) -> Option<(&str, Cow<'_, str>)> {
    let start = name.rfind('/').map_or(0, |slash| slash + 1);
    let dot = start + name[start..].find('.')?;
    if dot == start {
        return None;
    }
    let column = &name[dot + 1..];
    let is_lower_case = column.is_ascii() && !column.bytes().any(|byte| byte.is_ascii_uppercase());
    let column = if is_lower_case {
        Cow::Borrowed(column)
    } else {
        Cow::Owned(column.to_lowercase())
    };
    Some((&name[..dot], column))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_split_at_the_first_dot_after_the_last_slash() {
        let split = |name| split_name(name).map(|(sample, column)| (sample, column.into_owned()));
        for (name, sample, column) in [
            ("0001.jpg", "0001", "jpg"),
            ("a/b.seg.PNG", "a/b", "seg.png"),
            ("a.b/c.cls", "a.b/c", "cls"),
            ("./0001.json", "./0001", "json"),
            ("a.", "a", ""),
            ("a..b", "a", ".b"),
            ("ä/ö.ÄX", "ä/ö", "äx"),
        ] {
            assert_eq!(split(name), Some((sample, column.to_owned())), "{name}");
        }
        for name in ["", "a", "a.b/c", ".jpg", "a/.jpg", "a/"] {
            assert_eq!(split(name), None, "{name}");
        }
    }

    #[test]
    fn a_column_in_lower_case_is_borrowed() {
        assert!(matches!(split_name("a.jpg"), Some((_, Cow::Borrowed("jpg")))));
    }

    #[test]
    fn only_relative_paths_of_files_are_names() {
        for name in [
            "a",
            "a/b.jpg",
            "./a",
            "a//b",
            "..a/b..",
            "...",
            "a\\b",
            "ä",
            &"a".repeat(1024),
        ] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "/a",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "a/",
            "a\0",
            &"a".repeat(1025),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(checked_name(b"a\xff").is_err());
    }

    #[test]
    fn names_that_no_member_can_have_are_left_out() {
        for (name, expected) in [
            (&b"a\xff"[..], "not UTF-8"),
            (b"/a", "absolute"),
            (b"a/../b", "`..`"),
            (b"..", "`..`"),
        ] {
            assert!(left_out_name(name).is_some_and(|reason| reason.contains(expected)));
        }
        for name in [&b""[..], b"a", b"..a", b"a\0", &[b'a'; 1025]] {
            assert_eq!(left_out_name(name), None);
        }
    }

    #[test]
    fn names_in_messages_are_escaped_and_cut() {
        assert_eq!(quoted("a\n\u{1b}ä".as_bytes()), "a\\n\\u{1b}ä");
        assert_eq!(quoted(&[b'a'; 300]), format!("{}...", "a".repeat(200)));
        assert_eq!(quoted(b"a\xff\xe7b"), "a\\xff\\xe7b");
    }
}
