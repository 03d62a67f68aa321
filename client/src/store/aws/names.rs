//! Names in the answer to a listing, which are encoded if the store says so: XML cannot hold all characters of keys. Those in the CSV of an
//! inventory are encoded as well.

use pushdown_s3::escapes::decode_form;

/// How the names of an answer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Names {
    /// As they are: by a store that does not know the parameter `encoding-type`.
    Raw,
    /// As in the query of a form: percent-encoded, with `+` for a space.
    Url,
}

/// A name that is no text. It holds the name as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected names in UTF-8, found `{0}`")]
pub(in crate::store) struct InvalidName(String);

impl Names {
    /// What an answer says by its `EncodingType`.
    pub(super) fn of(encoding: Option<&str>) -> Self {
        match encoding {
            Some(encoding) if encoding.eq_ignore_ascii_case("url") => Self::Url,
            _ => Self::Raw,
        }
    }

    /// The name that was written. A percent sign without two hex digits stays as it is.
    pub(in crate::store) fn read(self, name: String) -> Result<String, InvalidName> {
        if self == Self::Raw {
            return Ok(name);
        }
        String::from_utf8(decode_form(&name)).map_err(|_| InvalidName(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_the_answer_says() {
        let url = Names::of(Some("url"));
        let raw = Names::of(None);
        for (name, expected) in [
            ("a/b", "a/b"),
            ("a%2Fb", "a/b"),
            ("a+b", "a b"),
            ("a%20b", "a b"),
            ("a%2Bb", "a+b"),
            ("a%17b", "a\u{17}b"),
            ("%C3%A9", "\u{e9}"),
            ("\u{e9}", "\u{e9}"),
            ("100%25", "100%"),
            ("100%", "100%"),
            ("%zz", "%zz"),
        ] {
            assert_eq!(url.read(name.to_owned()).unwrap(), expected);
            assert_eq!(raw.read(name.to_owned()).unwrap(), name);
        }
        let error = url.read("a/%FF".to_owned()).unwrap_err();
        assert_eq!(error.to_string(), "expected names in UTF-8, found `a/%FF`");
        assert_eq!(Names::of(Some("none")), Names::Raw);
    }
}
