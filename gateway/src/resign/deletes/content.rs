//! The body of `DeleteObjects`: its content without framing, compared with its checksums; and the headers of the new body.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::Crc;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use md5::Md5;
use sha2::{Digest as _, Sha256};

use crate::{
    error::{Error, ErrorKind, Result},
    s3::auth::{PayloadMode, stream::StreamError},
};

const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// Headers about the old body, besides those with [`OLD_PREFIXES`], and what could compress the answer.
const OLD: [&str; 8] = [
    "accept-encoding",
    "expect",
    "te",
    "trailer",
    "transfer-encoding",
    "x-amz-decoded-content-length",
    "x-amz-sdk-checksum-algorithm",
    "x-amz-trailer",
];

const OLD_PREFIXES: [&str; 2] = ["content-", "x-amz-checksum-"];

/// Names in lower case, and values.
type Trailers = Vec<(String, String)>;

/// The content of a body that was verified as `mode` says. The store gets another body, so its checksums are verified here.
///
/// # Errors
/// [`ErrorKind::BadDigest`] for a wrong checksum, [`ErrorKind::InvalidRequest`] if neither the signature nor a known checksum
/// covers the body.
pub(super) fn verified_content<'a>(
    mode: PayloadMode,
    body: &'a [u8],
    headers: &HeaderMap,
) -> Result<Cow<'a, [u8]>> {
    let (is_framed, is_signed) = match mode {
        PayloadMode::Hash(_) | PayloadMode::SignedChunks => (false, true),
        PayloadMode::Unsigned => (false, false),
        PayloadMode::UnsignedTrailer => (true, false),
        PayloadMode::SignedChunksTrailer => (true, true),
    };
    let (content, trailers): (Cow<'a, [u8]>, Trailers) = if is_framed {
        let (content, trailers) =
            decode(body).ok_or(StreamError::IncompleteBody("its chunks are malformed"))?;
        (Cow::Owned(content), trailers)
    } else {
        (Cow::Borrowed(body), Trailers::new())
    };
    if has_checksum(headers, &trailers, &content)? || is_signed {
        return Ok(content);
    }
    Err(Error::new(
        ErrorKind::InvalidRequest,
        "missing checksum: expected Content-MD5, x-amz-checksum-crc32 or x-amz-checksum-sha256 with a body that is not signed",
    ))
}

/// Replaces the headers about the body.
pub(super) fn replace_headers(headers: &mut HeaderMap, body: &[u8]) {
    let is_old = |name: &HeaderName| {
        let name = name.as_str();
        OLD.contains(&name) || OLD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let old: Vec<HeaderName> = headers.keys().filter(|name| is_old(name)).cloned().collect();
    for name in old {
        headers.remove(name);
    }
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    // S3 requires a checksum; all stores know this one.
    if let Ok(checksum) = HeaderValue::from_str(&STANDARD.encode(Md5::digest(body))) {
        headers.insert(CONTENT_MD5, checksum);
    }
}

/// Whether the request has a checksum of its content that the gateway can compute.
fn has_checksum(headers: &HeaderMap, trailers: &[(String, String)], content: &[u8]) -> Result<bool> {
    let mut crc = Crc::new();
    crc.update(content);
    let computed = [
        ("content-md5", STANDARD.encode(Md5::digest(content))),
        ("x-amz-checksum-crc32", STANDARD.encode(crc.sum().to_be_bytes())),
        ("x-amz-checksum-sha256", STANDARD.encode(Sha256::digest(content))),
    ];
    let mut is_checked = false;
    for (name, expected) in &computed {
        let in_head = headers.get_all(*name).iter().map(HeaderValue::as_bytes);
        let in_trailers = trailers.iter().filter(|(found, _)| found == name);
        let in_trailers = in_trailers.map(|(_, value)| value.as_bytes());
        for value in in_head.chain(in_trailers) {
            if value.trim_ascii() != expected.as_bytes() {
                return Err(Error::new(
                    ErrorKind::BadDigest,
                    "The Content-MD5 or checksum value that you specified did not match what the server received.",
                ));
            }
            is_checked = true;
        }
    }
    Ok(is_checked)
}

/// Decodes unsigned `aws-chunked` framing, which was verified before. `None` if it is malformed.
fn decode(framed: &[u8]) -> Option<(Vec<u8>, Trailers)> {
    let mut rest = framed;
    let mut content = Vec::with_capacity(framed.len());
    loop {
        let length = usize::from_str_radix(take_line(&mut rest)?, 16).ok()?;
        if length == 0 {
            break;
        }
        content.extend_from_slice(rest.get(..length)?);
        rest = rest.get(length..)?.strip_prefix(b"\r\n")?;
    }
    let mut trailers = Trailers::new();
    loop {
        let line = take_line(&mut rest)?;
        if line.is_empty() {
            return Some((content, trailers));
        }
        let (name, value) = line.split_once(':')?;
        trailers.push((name.to_ascii_lowercase(), value.trim_ascii().to_owned()));
    }
}

/// Takes a line without its CRLF.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let current = *rest;
    let end = current.windows(2).position(|pair| pair == b"\r\n")?;
    let (line, after) = current.split_at(end);
    *rest = after.get(2..)?;
    std::str::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MD5_OF_ABC: &str = "kAFQmDzST7DWlj99KOF/cg==";
    const CRC32_OF_ABC: &str = "NSRBwg==";
    const SHA256_OF_ABC: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for &(name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn read(
        mode: PayloadMode,
        body: &str,
        pairs: &[(&'static str, &'static str)],
    ) -> Result<String, ErrorKind> {
        let content = verified_content(mode, body.as_bytes(), &headers(pairs));
        let content = content.map_err(|error| error.kind())?;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }

    #[test]
    fn checksums_are_compared() {
        let checksums = [
            ("content-md5", MD5_OF_ABC),
            ("x-amz-checksum-crc32", CRC32_OF_ABC),
            ("x-amz-checksum-sha256", SHA256_OF_ABC),
        ];
        let abc = Ok("abc".to_owned());
        let signed = PayloadMode::Hash([0; 32]);
        assert_eq!(read(PayloadMode::Unsigned, "abc", &checksums), abc);
        assert_eq!(read(signed, "abc", &[]), abc);
        for checksum in checksums {
            assert_eq!(read(PayloadMode::Unsigned, "abc", &[checksum]), abc);
            for mode in [PayloadMode::Unsigned, signed] {
                assert_eq!(read(mode, "abd", &[checksum]), Err(ErrorKind::BadDigest));
            }
        }
        let unknown = [("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=")];
        for pairs in [&[][..], &unknown] {
            let found = read(PayloadMode::Unsigned, "abc", pairs);
            assert_eq!(found, Err(ErrorKind::InvalidRequest));
        }
    }

    #[test]
    fn framing_is_decoded() {
        let body = "2\r\nab\r\n1\r\nc\r\n0\r\nX-Amz-Checksum-Crc32: NSRBwg==\n\r\n\r\n";
        let abc = Ok("abc".to_owned());
        assert_eq!(read(PayloadMode::UnsignedTrailer, body, &[]), abc);
        assert_eq!(read(PayloadMode::SignedChunksTrailer, body, &[]), abc);
        let other = body.replace("\r\nab\r\n", "\r\nxb\r\n");
        let found = read(PayloadMode::UnsignedTrailer, &other, &[]);
        assert_eq!(found, Err(ErrorKind::BadDigest));
        let bare = "3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(read(PayloadMode::SignedChunksTrailer, bare, &[]), abc);
        let found = read(PayloadMode::UnsignedTrailer, bare, &[]);
        assert_eq!(found, Err(ErrorKind::InvalidRequest));
        for malformed in [
            "",
            "3\r\nabc",
            "3\r\nabc\r\n",
            "4\r\nabc\r\n0\r\n\r\n",
            "x\r\n\r\n",
        ] {
            assert!(decode(malformed.as_bytes()).is_none(), "{malformed:?}");
        }
    }

    #[test]
    fn headers_of_the_old_body_are_replaced() {
        let mut headers = headers(&[
            ("content-md5", "old"),
            ("content-encoding", "aws-chunked"),
            ("content-type", "text/xml; charset=utf-16"),
            ("accept-encoding", "gzip"),
            ("transfer-encoding", "chunked"),
            ("x-amz-checksum-crc64nvme", "old"),
            ("x-amz-sdk-checksum-algorithm", "CRC64NVME"),
            ("x-amz-trailer", "x-amz-checksum-crc32"),
            ("x-amz-expected-bucket-owner", "owner"),
        ]);
        replace_headers(&mut headers, b"abc");
        let mut found: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        found.sort_unstable();
        let expected = [
            ("content-length", "3"),
            ("content-md5", MD5_OF_ABC),
            ("content-type", "application/xml"),
            ("x-amz-expected-bucket-owner", "owner"),
        ];
        assert_eq!(found, expected);
    }
}
