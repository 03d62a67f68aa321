//! What the head of a request declares about a body in `aws-chunked` framing.

use http::HeaderMap;

use super::StreamError;

/// The most trailers of a body.
pub(super) const MAX_TRAILERS: usize = 8;

const DECODED_CONTENT_LENGTH: &str = "x-amz-decoded-content-length";
const TRAILER: &str = "x-amz-trailer";
/// S3 defines trailers only for checksums. Others are refused: a store could read them as headers, which are authorized.
const CHECKSUM_PREFIX: &str = "x-amz-checksum-";

/// The declared length and trailers of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Declared {
    /// Length of the decoded body.
    pub(super) decoded_bytes: u64,
    /// Names of the trailers in lower case, each once.
    pub(super) trailers: Vec<String>,
}

impl Declared {
    /// Reads `x-amz-decoded-content-length` and `x-amz-trailer`.
    pub(super) fn from_headers(headers: &HeaderMap) -> Result<Self, StreamError> {
        Ok(Self {
            decoded_bytes: decoded_bytes(headers).ok_or(StreamError::MissingContentLength)?,
            trailers: trailer_names(headers)?,
        })
    }
}

fn decoded_bytes(headers: &HeaderMap) -> Option<u64> {
    let mut values = headers.get_all(DECODED_CONTENT_LENGTH).iter();
    let (value, None) = (values.next()?, values.next()) else {
        return None;
    };
    let digits = value.to_str().ok()?.trim();
    // `parse` accepts a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

fn trailer_names(headers: &HeaderMap) -> Result<Vec<String>, StreamError> {
    let mut names = Vec::new();
    for value in headers.get_all(TRAILER) {
        let value = value
            .to_str()
            .map_err(|_| StreamError::MalformedTrailer("x-amz-trailer is not text"))?;
        for name in value.split(',') {
            let name = name.trim().to_ascii_lowercase();
            if !is_checksum(&name) {
                return Err(StreamError::MalformedTrailer(
                    "x-amz-trailer names no checksum header",
                ));
            }
            if names.contains(&name) {
                return Err(StreamError::MalformedTrailer(
                    "x-amz-trailer names a header twice",
                ));
            }
            if names.len() == MAX_TRAILERS {
                return Err(StreamError::MalformedTrailer(
                    "x-amz-trailer names more than 8 headers",
                ));
            }
            names.push(name);
        }
    }
    Ok(names)
}

fn is_checksum(name: &str) -> bool {
    let is_name_byte = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.strip_prefix(CHECKSUM_PREFIX)
        .is_some_and(|algorithm| !algorithm.is_empty() && algorithm.bytes().all(is_name_byte))
}

/// Length of a checksum in base64. `None` for unknown algorithms.
pub(super) fn checksum_bytes(name: &str) -> Option<usize> {
    match name.strip_prefix(CHECKSUM_PREFIX)? {
        "crc32" | "crc32c" => Some(8),
        "crc64nvme" => Some(12),
        "sha1" => Some(28),
        "sha256" => Some(44),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn declared(pairs: &[(&'static str, &'static str)]) -> Result<Declared, StreamError> {
        let mut headers = HeaderMap::new();
        for &(name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Declared::from_headers(&headers)
    }

    #[test]
    fn length_and_trailers_are_read() {
        let found = declared(&[
            (DECODED_CONTENT_LENGTH, "66560"),
            (TRAILER, "x-amz-checksum-CRC32C, x-amz-checksum-sha1"),
        ]);
        let expected = Declared {
            decoded_bytes: 66_560,
            trailers: vec![
                "x-amz-checksum-crc32c".to_owned(),
                "x-amz-checksum-sha1".to_owned(),
            ],
        };
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn exactly_one_decoded_length_is_required() {
        let lengths: [&[&'static str]; 6] = [
            &[],
            &[""],
            &["+1"],
            &["1", "1"],
            &["0x1"],
            &["18446744073709551616"],
        ];
        for values in lengths {
            let pairs: Vec<_> = values
                .iter()
                .map(|value| (DECODED_CONTENT_LENGTH, *value))
                .collect();
            assert!(
                matches!(declared(&pairs), Err(StreamError::MissingContentLength)),
                "{values:?}"
            );
        }
    }

    #[test]
    fn only_checksums_can_be_trailers() {
        let trailers = [
            "",
            "x-amz-acl",
            "x-amz-checksum-",
            "x-amz-checksum-a:b",
            "x-amz-checksum-crc32,x-amz-checksum-CRC32",
            "x-amz-checksum-a,x-amz-checksum-b,x-amz-checksum-c,x-amz-checksum-d,x-amz-checksum-e,x-amz-checksum-f,\
             x-amz-checksum-g,x-amz-checksum-h,x-amz-checksum-i",
        ];
        for value in trailers {
            let found = declared(&[(DECODED_CONTENT_LENGTH, "1"), (TRAILER, value)]);
            assert!(matches!(found, Err(StreamError::MalformedTrailer(_))), "{value}");
        }
    }
}
