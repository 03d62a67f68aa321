use super::*;
use crate::s3::auth::{Mismatch, Quoted};

/// Each answer on a line: status, code, message, and the other elements.
fn table(answers: impl IntoIterator<Item = ErrorAnswer>) -> Vec<String> {
    let line = |answer: ErrorAnswer| {
        let fields = answer
            .fields
            .iter()
            .fold(String::new(), |mut text, (name, value)| {
                text.push_str(" | ");
                text.push_str(name);
                text.push('=');
                text.push_str(value.as_str());
                text
            });
        let message: String = answer.message.chars().take(72).collect();
        format!("{} {}: {message}{fields}", answer.status.as_u16(), answer.code)
    };
    answers.into_iter().map(line).collect()
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn each_refused_head_has_its_answer() {
    let carriers = [Carrier::Header, Carrier::Query];
    let malformed = carriers.map(|carrier| AuthError::Malformed {
        carrier,
        reason: "missing.".into(),
    });
    let credential = carriers.map(|carrier| AuthError::MalformedCredential {
        carrier,
        reason: "missing.".into(),
    });
    let region = carriers.map(|carrier| AuthError::WrongRegion {
        carrier,
        found: text("mars"),
        expected: text("us-east-1"),
    });
    let others = [
        AuthError::Anonymous,
        AuthError::InvalidUri,
        AuthError::SeveralSignatures,
        AuthError::UnknownScheme,
        AuthError::UnsupportedVersion,
        AuthError::FormUpload,
        AuthError::MissingDate,
        AuthError::Skewed {
            request_time: text("early"),
            server_time: text("late"),
        },
        AuthError::Expired {
            expires_seconds: 60,
            expired_at: text("early"),
            server_time: text("late"),
        },
        AuthError::NotYetValid,
        AuthError::UnknownKey {
            access_key: text("AK"),
        },
        AuthError::SessionToken,
        AuthError::UnsignedHeaders {
            names: text("host, x-amz-acl"),
        },
        AuthError::MissingPayloadHash,
        AuthError::InvalidPayloadHash,
        AuthError::UnsupportedPayload,
        AuthError::SignatureMismatch(Box::new(Mismatch {
            access_key: text("AK"),
            string_to_sign: Quoted::new(b"AWS4"),
            signature_provided: Quoted::new(b"00ff"),
            canonical_request: Quoted::new(b"GET"),
        })),
    ];
    let errors = malformed
        .into_iter()
        .chain(credential)
        .chain(region)
        .chain(others);
    let found = table(errors.map(|error| auth_answer(&error)));
    let expected = [
        "400 AuthorizationHeaderMalformed: The authorization header is malformed; missing.",
        "400 AuthorizationQueryParametersError: missing.",
        "400 AuthorizationHeaderMalformed: The authorization header is malformed; missing.",
        "400 AuthorizationQueryParametersError: Error parsing the X-Amz-Credential parameter; missing.",
        "400 AuthorizationHeaderMalformed: The authorization header is malformed; the region 'mars' is wrong; expec | Region=us-east-1",
        "400 AuthorizationQueryParametersError: Error parsing the X-Amz-Credential parameter; the region 'mars' is wrong | Region=us-east-1",
        "403 AccessDenied: Access Denied",
        "400 InvalidURI: Couldn't parse the specified URI.",
        "400 InvalidArgument: Only one auth mechanism allowed; only the X-Amz-Algorithm query paramete | ArgumentName=Authorization",
        "400 InvalidArgument: Unsupported Authorization Type | ArgumentName=Authorization",
        "400 InvalidRequest: The authorization mechanism you have provided is not supported. Please u",
        "501 NotImplemented: Uploads by HTML forms are not supported.",
        "403 AccessDenied: AWS authentication requires a valid Date or x-amz-date header",
        "403 RequestTimeTooSkewed: The difference between the request time and the current time is too larg | RequestTime=early | \
         ServerTime=late | MaxAllowedSkewMilliseconds=900000",
        "403 AccessDenied: Request has expired | X-Amz-Expires=60 | Expires=early | ServerTime=late",
        "403 AccessDenied: Request is not valid yet",
        "403 InvalidAccessKeyId: The AWS Access Key Id you provided does not exist in our records. | AWSAccessKeyId=AK",
        "400 InvalidToken: The provided token is malformed or otherwise invalid.",
        "403 AccessDenied: There were headers present in the request which were not signed | HeadersNotSigned=host, x-amz-acl",
        "400 InvalidRequest: Missing required header for this request: x-amz-content-sha256",
        "400 InvalidArgument: x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-UNSIGNED-PAYLOA | ArgumentName=x-amz-content-sha256",
        "501 NotImplemented: A header you provided implies functionality that is not implemented.",
        "403 SignatureDoesNotMatch: The request signature we calculated does not match the signature you pro | AWSAccessKeyId=AK | \
         StringToSign=AWS4 | SignatureProvided=00ff | CanonicalRequest=GET",
    ];
    assert_eq!(found, expected);
}

#[test]
fn each_refused_body_has_its_answer() {
    let errors = [
        StreamError::HashMismatch,
        StreamError::IncompleteBody("cut"),
        StreamError::Client("reset".into()),
        StreamError::MalformedTrailer("cut"),
        StreamError::SignatureMismatch,
        StreamError::MissingContentLength,
    ];
    let found = table(errors.iter().map(body_answer));
    let expected = [
        "400 XAmzContentSHA256Mismatch: The provided 'x-amz-content-sha256' header does not match what was compu",
        "400 IncompleteBody: The request body terminated unexpectedly",
        "400 IncompleteBody: The request body terminated unexpectedly",
        "400 MalformedTrailerError: The request contained trailing data that was not well-formed or did not ",
        "403 SignatureDoesNotMatch: The request signature we calculated does not match the signature you pro",
        "411 MissingContentLength: You must provide the Content-Length HTTP header.",
    ];
    assert_eq!(found, expected);
}
