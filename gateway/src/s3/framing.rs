//! Refuses requests whose end another server could see elsewhere: the rest of one would be the next request for it.

use http::HeaderMap;
use http::header::TRANSFER_ENCODING;

use crate::error::{Error, ErrorKind, Result};

/// Refuses a request that was sent with more than one length, with a length and an encoding, or with another encoding than
/// `chunked`. The headers have at most one of these, so `is_ambiguous` says what was sent.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`].
pub(super) fn check(headers: &HeaderMap, is_ambiguous: bool) -> Result<()> {
    let fault = |message| Err(Error::new(ErrorKind::InvalidRequest, message));
    if is_ambiguous {
        return fault("invalid framing: expected one Content-Length or Transfer-Encoding, found several");
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    match (encodings.next(), encodings.next()) {
        (None, _) => Ok(()),
        (Some(encoding), None) if encoding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => fault("invalid Transfer-Encoding: expected `chunked` alone, found another encoding or several"),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn chunked_is_the_only_encoding() {
        let check = |encodings: &[&'static str], is_ambiguous| {
            let mut headers = HeaderMap::new();
            for encoding in encodings {
                headers.append(TRANSFER_ENCODING, HeaderValue::from_static(encoding));
            }
            check(&headers, is_ambiguous).map_err(|error| error.kind())
        };
        for right in [&[][..], &["chunked"], &["Chunked"]] {
            assert_eq!(check(right, false), Ok(()), "{right:?}");
            assert_eq!(check(right, true), Err(ErrorKind::InvalidRequest), "{right:?}");
        }
        for wrong in [
            &["gzip, chunked"][..],
            &["identity, chunked"],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["identity", "chunked"],
            &["chunked;a=b"],
        ] {
            assert_eq!(check(wrong, false), Err(ErrorKind::InvalidRequest), "{wrong:?}");
        }
    }
}
