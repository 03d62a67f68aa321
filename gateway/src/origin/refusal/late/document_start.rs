//! The start of an XML document, as far as it has arrived.

/// What can precede the root element besides white space: its first and its last bytes.
const MARKUP: [(&[u8], &[u8]); 3] = [
    // The byte order mark.
    (b"\xef\xbb\xbf", b""),
    (b"<?", b"?>"),
    (b"<!--", b"-->"),
];

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DocumentStart {
    /// White space, the declaration or a comment, of this many bytes. More of them can follow.
    Prolog(usize),
    /// More bytes must arrive to say.
    Incomplete,
    /// An element `Error`.
    Error,
    /// Another element, or no XML.
    Other,
}

impl DocumentStart {
    /// Reads the first bytes of a document, or those after a part of its prolog.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let white_space = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if white_space > 0 {
            return Self::Prolog(white_space);
        }
        for (first, last) in MARKUP {
            if let Some(rest) = bytes.strip_prefix(first) {
                let content = find(rest, last);
                return content.map_or(Self::Incomplete, |content| {
                    Self::Prolog(first.len() + content + last.len())
                });
            }
            if first.starts_with(bytes) {
                return Self::Incomplete;
            }
        }
        let Some(tag) = bytes.strip_prefix(b"<") else {
            return Self::Other;
        };
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        match tag.iter().position(is_end).map(|end| &tag[..end]) {
            Some(name) if name == b"Error" || name.ends_with(b":Error") => Self::Error,
            Some(_) => Self::Other,
            None => Self::Incomplete,
        }
    }
}

/// The number of bytes before the first occurrence of a pattern.
fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    if pattern.is_empty() {
        return Some(0);
    }
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_starts_with_a_prolog_an_error_or_something_else() {
        for (text, expected) in [
            (" \r\n\t<Error>", DocumentStart::Prolog(4)),
            (
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>",
                DocumentStart::Prolog(38),
            ),
            ("<!-- <Error> --> ", DocumentStart::Prolog(16)),
            ("\u{feff}<Error>", DocumentStart::Prolog(3)),
            ("<Error>", DocumentStart::Error),
            ("<Error/>", DocumentStart::Error),
            ("<s3:Error xmlns:s3=\"x\">", DocumentStart::Error),
            ("<Errors>", DocumentStart::Other),
            ("<CopyObjectResult>", DocumentStart::Other),
            ("<!DOCTYPE Error>", DocumentStart::Other),
            ("Error", DocumentStart::Other),
            ("{\"Error\": 1}", DocumentStart::Other),
            ("\0\0\0\u{1}", DocumentStart::Other),
        ] {
            assert_eq!(DocumentStart::read(text.as_bytes()), expected, "{text}");
        }
        for text in ["", "<", "<?", "<?xml version", "<!-", "<!-- -", "<Err", "<Error"] {
            let start = DocumentStart::read(text.as_bytes());
            assert_eq!(start, DocumentStart::Incomplete, "{text}");
        }
        assert_eq!(DocumentStart::read(b"\xef\xbb"), DocumentStart::Incomplete);
    }
}
