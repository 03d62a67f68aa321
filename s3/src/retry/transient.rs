//! Which answers may be others later.

use std::time::Duration;

use http::StatusCode;

/// Whether a later answer to the same request may have another status.
pub fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether a later answer may have another error code for the same row of a batch. Covers the codes of the gateway, of S3, and of
/// statuses without a code, such as `Http503`.
pub fn is_transient_code(code: &str) -> bool {
    match code {
        "SlowDown"
        | "ServiceUnavailable"
        | "InternalError"
        | "RequestTimeout"
        | "OriginUnavailable"
        | "OriginTimeout"
        | "TooManyRequests"
        | "ThrottlingException"
        | "ExpiredToken" => true,
        _ => code
            .strip_prefix("Http")
            .and_then(|status| status.parse().ok())
            .is_some_and(is_transient),
    }
}

/// The pause that a header `Retry-After` asks for. `None` for a date.
pub fn parse_retry_after(value: &str) -> Option<Duration> {
    value.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_final_and_overload_is_not() {
        for (code, expected) in [
            ("SlowDown", true),
            ("Http503", true),
            ("NoSuchKey", false),
            ("Http404", false),
            ("ShardReplaced", false),
            ("InvalidShard", false),
            ("Http", false),
        ] {
            assert_eq!(is_transient_code(code), expected, "{code}");
        }
        assert!(is_transient(StatusCode::TOO_MANY_REQUESTS) && !is_transient(StatusCode::FORBIDDEN));
    }

    #[test]
    fn a_pause_is_a_number_of_seconds() {
        assert_eq!(parse_retry_after(" 7 "), Some(Duration::from_secs(7)));
        for value in ["", "-1", "0.5", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(parse_retry_after(value), None, "{value}");
        }
    }
}
