//! The canonical request: what a signature of version 4 covers.

use http::HeaderMap;

use super::signed_headers::SignedHeaders;
use crate::s3::query::Query;

/// The parts of a canonical request that its readings share. They differ in path and host.
pub(super) struct CanonicalRequest<'a> {
    pub(super) method: &'a str,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) signed_headers: &'a SignedHeaders<'a>,
    /// `x-amz-content-sha256`, or the keyword that stands for it.
    pub(super) payload: &'a str,
}

impl CanonicalRequest<'_> {
    /// The canonical request of a path and a host. Header values are bytes: they need not be UTF-8.
    pub(super) fn render(&self, path: &str, host: &[u8]) -> Vec<u8> {
        let mut text = format!("{}\n{path}\n{}\n", self.method, self.query).into_bytes();
        for name in self.signed_headers.names() {
            text.extend_from_slice(name.as_bytes());
            text.push(b':');
            if *name == "host" {
                append_value(&mut text, host);
            } else {
                for (index, value) in self.headers.get_all(*name).iter().enumerate() {
                    if index > 0 {
                        text.push(b',');
                    }
                    append_value(&mut text, value.as_bytes());
                }
            }
            text.push(b'\n');
        }
        text.push(b'\n');
        text.extend_from_slice(self.signed_headers.names().join(";").as_bytes());
        text.push(b'\n');
        text.extend_from_slice(self.payload.as_bytes());
        text
    }
}

/// Appends a value without surrounding spaces, and with single spaces within. S3 leaves other white space as it is.
fn append_value(text: &mut Vec<u8>, value: &[u8]) {
    let words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_have_single_spaces() {
        let mut text = Vec::new();
        append_value(&mut text, b"  a  b\t c\xff ");
        assert_eq!(text, b"a b\t c\xff");
    }
}
