//! Who may read the pages of the admin port.

use axum::response::IntoResponse as _;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use subtle::ConstantTimeEq as _;

use crate::body::Body;
use crate::config::Secret;

/// Pages that everyone may read: orchestrators probe them, and they only say whether the gateway works.
const HEALTH_PAGES: [&str; 2] = ["/healthz", "/readyz"];

/// Who may read the pages besides those about health.
#[derive(Debug, Clone)]
pub(super) enum PageAccess {
    /// Everyone who reaches the port.
    Everyone,
    /// Whoever sends this token, as `Authorization: Bearer TOKEN`.
    Token(Secret),
    /// Nobody: the port needs a token, and has none.
    Nobody,
}

impl PageAccess {
    /// The answer to a request that may not be made.
    pub(super) fn refusal(&self, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        if HEALTH_PAGES.contains(&path) {
            return None;
        }
        let (status, text) = match self {
            Self::Everyone => return None,
            Self::Token(token) if has_token(headers, token) => return None,
            Self::Token(_) => (StatusCode::UNAUTHORIZED, "expected the admin token\n"),
            Self::Nobody => (
                StatusCode::FORBIDDEN,
                "in re-sign mode this port needs admin-token, unless it listens on loopback\n",
            ),
        };
        let mut answer = (status, text).into_response();
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            answer.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        Some(answer.map(|body| body.map_err(Into::into).boxed_unsync()))
    }
}

fn has_token(headers: &HeaderMap, token: &Secret) -> bool {
    let value = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    value
        .and_then(|value| value.strip_prefix(b"Bearer "))
        .is_some_and(|found| found.ct_eq(token.reveal().as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(access: &PageAccess, path: &str, authorization: Option<&'static str>) -> Option<u16> {
        let value = authorization.map(|text| (header::AUTHORIZATION, HeaderValue::from_static(text)));
        let refusal = access.refusal(path, &HeaderMap::from_iter(value));
        refusal.map(|answer| answer.status().as_u16())
    }

    #[test]
    fn pages_need_the_token_and_health_needs_none() {
        let token = PageAccess::Token(Secret::new("a-token-of-a-test".to_owned()));
        assert_eq!(status(&token, "/metrics", Some("Bearer a-token-of-a-test")), None);
        for wrong in [
            None,
            Some("Bearer a-token-of-a-tes"),
            Some("Bearer "),
            Some("a-token-of-a-test"),
            Some("Basic a-token-of-a-test"),
        ] {
            assert_eq!(status(&token, "/metrics", wrong), Some(401), "{wrong:?}");
        }
        for access in [token, PageAccess::Nobody, PageAccess::Everyone] {
            for page in HEALTH_PAGES {
                assert_eq!(status(&access, page, None), None);
            }
        }
        assert_eq!(status(&PageAccess::Nobody, "/status.json", None), Some(403));
        assert_eq!(status(&PageAccess::Everyone, "/status.json", None), None);
    }
}
