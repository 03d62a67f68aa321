//! Percent-encoding. It is written as signatures of version 4 define it: all bytes but `A-Za-z0-9-_.~` are escaped, with upper-case digits. It
//! is read strictly where a signature covers it, and otherwise as stores read it.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode, utf8_percent_encode};

/// What is escaped in names and values of a query.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What is escaped in a path.
const PATH: &AsciiSet = &COMPONENT.remove(b'/');

/// Decodes escapes. `None` if a `%` has no two hex digits after it: servers disagree about its meaning.
pub fn decode(text: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_escape = |at: usize| {
        text.get(at + 1..at + 3)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let mut percents = text.iter().enumerate().filter(|(_, byte)| **byte == b'%');
    percents
        .all(|(at, _)| is_escape(at))
        .then(|| percent_decode(text).into())
}

/// Decodes escapes. A `%` without two hex digits after it is literal.
pub fn decode_lenient(text: &str) -> Cow<'_, [u8]> {
    percent_decode(text.as_bytes()).into()
}

/// Decodes a value of a form: a `+` is a space, and a `%` without two hex digits after it is literal.
pub fn decode_form(text: &str) -> Vec<u8> {
    percent_decode(text.replace('+', " ").as_bytes()).collect()
}

/// Encodes a name or a value of a query.
pub fn encode_component(bytes: &[u8]) -> String {
    percent_encode(bytes, COMPONENT).to_string()
}

/// Encodes a path. Slashes stay, and nothing is normalized: `//` and `..` are parts of S3 keys.
pub fn encode_path(bytes: &[u8]) -> String {
    percent_encode(bytes, PATH).to_string()
}

/// Encodes text for a header: all characters but `A-Za-z0-9` are escaped.
pub fn encode_for_header(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_decoding_are_inverse() {
        let all: Vec<u8> = (0..=255).collect();
        for encoded in [encode_component(&all), encode_path(&all)] {
            assert!(encoded.is_ascii());
            assert_eq!(decode(encoded.as_bytes()).unwrap(), all);
        }
        assert_eq!(encode_component(b"aZ09-_.~ +/\xff"), "aZ09-_.~%20%2B%2F%FF");
        assert_eq!(encode_path(b"/a//../b c"), "/a//../b%20c");
        assert_eq!(encode_for_header("a-b/\u{e9}"), "a%2Db%2F%C3%A9");
    }

    #[test]
    fn incomplete_escapes_are_literal_where_stores_read_them_so() {
        for (text, lenient, form) in [
            ("a+b%2B", "a+b+", "a b+"),
            ("100%", "100%", "100%"),
            ("%zz%41", "%zzA", "%zzA"),
        ] {
            assert_eq!(decode_lenient(text), lenient.as_bytes(), "{text}");
            assert_eq!(decode_form(text), form.as_bytes(), "{text}");
        }
    }

    #[test]
    fn incomplete_escapes_are_refused() {
        for text in ["%", "%4", "%zz", "a%", "%%41", "%4g", "%+1", "%41%"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decode(b"%2541+%fF").unwrap(), &b"%41+\xff"[..]);
    }
}
