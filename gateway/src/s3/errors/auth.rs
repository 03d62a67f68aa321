//! Answers to requests that fail verification, as AWS words them.

use std::borrow::Cow;

use http::StatusCode;

use super::{ACCESS_DENIED, ErrorAnswer};
use crate::s3::auth::AuthError;
use crate::s3::auth::stream::StreamError;
use crate::s3::sign::Carrier;

const WRONG_SIGNATURE: &str = "The request signature we calculated does not match the signature you provided. Check your key and \
     signing method.";

const MAX_SKEW_MILLISECONDS: &str = "900000";

/// The answer to a request whose head fails verification.
pub fn auth_answer(error: &AuthError) -> ErrorAnswer {
    match error {
        AuthError::Anonymous => denied(ACCESS_DENIED),
        AuthError::InvalidUri => bad_request("InvalidURI", "Couldn't parse the specified URI."),
        AuthError::SeveralSignatures => bad_request(
            "InvalidArgument",
            "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or \
             the Authorization header should be specified",
        )
        .with("ArgumentName", "Authorization"),
        AuthError::UnknownScheme => bad_request("InvalidArgument", "Unsupported Authorization Type")
            .with("ArgumentName", "Authorization"),
        AuthError::UnsupportedVersion => bad_request(
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
        ),
        AuthError::FormUpload => not_implemented("Uploads by HTML forms are not supported."),
        AuthError::Malformed { carrier, reason } => malformed(*carrier, "", reason),
        AuthError::MalformedCredential { carrier, reason } => malformed(*carrier, CREDENTIAL, reason),
        AuthError::WrongRegion {
            carrier,
            found,
            expected,
        } => malformed(
            *carrier,
            CREDENTIAL,
            &format!("the region '{found}' is wrong; expecting '{expected}'"),
        )
        .with("Region", expected),
        AuthError::MissingDate => denied("AWS authentication requires a valid Date or x-amz-date header"),
        AuthError::Skewed {
            request_time,
            server_time,
        } => forbidden(
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
        )
        .with("RequestTime", request_time)
        .with("ServerTime", server_time)
        .with("MaxAllowedSkewMilliseconds", MAX_SKEW_MILLISECONDS),
        AuthError::Expired {
            expires_seconds,
            expired_at,
            server_time,
        } => denied("Request has expired")
            .with("X-Amz-Expires", &expires_seconds.to_string())
            .with("Expires", expired_at)
            .with("ServerTime", server_time),
        AuthError::NotYetValid => denied("Request is not valid yet"),
        AuthError::UnknownKey { access_key } => forbidden(
            "InvalidAccessKeyId",
            "The AWS Access Key Id you provided does not exist in our records.",
        )
        .with("AWSAccessKeyId", access_key),
        AuthError::SessionToken => bad_request(
            "InvalidToken",
            "The provided token is malformed or otherwise invalid.",
        ),
        AuthError::UnsignedHeaders { names } => {
            denied("There were headers present in the request which were not signed")
                .with("HeadersNotSigned", names)
        }
        AuthError::MissingPayloadHash => bad_request(
            "InvalidRequest",
            "Missing required header for this request: x-amz-content-sha256",
        ),
        AuthError::InvalidPayloadHash => bad_request(
            "InvalidArgument",
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOAD-TRAILER, \
             STREAMING-AWS4-HMAC-SHA256-PAYLOAD, STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER or a valid sha256 value.",
        )
        .with("ArgumentName", "x-amz-content-sha256"),
        AuthError::UnsupportedPayload => {
            not_implemented("A header you provided implies functionality that is not implemented.")
        }
        AuthError::SignatureMismatch(mismatch) => forbidden("SignatureDoesNotMatch", WRONG_SIGNATURE)
            .with("AWSAccessKeyId", &mismatch.access_key)
            .with("StringToSign", mismatch.string_to_sign.as_str())
            .with("SignatureProvided", mismatch.signature_provided.as_str())
            .with("CanonicalRequest", mismatch.canonical_request.as_str()),
    }
}

/// The answer to a request whose body fails verification.
pub fn body_answer(error: &StreamError) -> ErrorAnswer {
    match error {
        StreamError::HashMismatch => bad_request(
            "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        ),
        StreamError::IncompleteBody(_) | StreamError::Client(_) => {
            bad_request("IncompleteBody", "The request body terminated unexpectedly")
        }
        StreamError::MalformedTrailer(_) => bad_request(
            "MalformedTrailerError",
            "The request contained trailing data that was not well-formed or did not conform to our published schema.",
        ),
        StreamError::SignatureMismatch => forbidden("SignatureDoesNotMatch", WRONG_SIGNATURE),
        StreamError::MissingContentLength => ErrorAnswer::new(
            StatusCode::LENGTH_REQUIRED,
            "MissingContentLength",
            "You must provide the Content-Length HTTP header.",
        ),
    }
}

/// How AWS begins the explanation of a wrong credential in a query.
const CREDENTIAL: &str = "Error parsing the X-Amz-Credential parameter; ";

/// A malformed signature. `place` is what a query's explanation begins with.
fn malformed(carrier: Carrier, place: &str, reason: &str) -> ErrorAnswer {
    match carrier {
        Carrier::Query => bad_request("AuthorizationQueryParametersError", format!("{place}{reason}")),
        Carrier::Header | Carrier::None => bad_request(
            "AuthorizationHeaderMalformed",
            format!("The authorization header is malformed; {reason}"),
        ),
    }
}

fn denied(message: &'static str) -> ErrorAnswer {
    forbidden("AccessDenied", message)
}

fn forbidden(code: &'static str, message: &'static str) -> ErrorAnswer {
    ErrorAnswer::new(StatusCode::FORBIDDEN, code, message)
}

fn bad_request(code: &'static str, message: impl Into<Cow<'static, str>>) -> ErrorAnswer {
    ErrorAnswer::new(StatusCode::BAD_REQUEST, code, message)
}

fn not_implemented(message: &'static str) -> ErrorAnswer {
    ErrorAnswer::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
}

#[cfg(test)]
mod tests;
