//! What was decided, as far as an error shows it.

use std::error::Error as StdError;
use std::iter;

use serde::Serialize;

use crate::access::Denied;
use crate::error::{Error, ErrorKind};
use crate::origin::DeniedByStore;
use crate::s3::auth::AuthError;
use crate::s3::auth::stream::StreamError;
use crate::s3::errors::{ACCESS_DENIED, ErrorAnswer};

/// What was decided on a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub(super) enum Verdict {
    /// It may be made.
    Allowed {
        /// The number of the grant that covers it, counted from 1. `None` if the store alone decides, or if no grant was asked.
        grant: Option<usize>,
    },
    /// It may not be made.
    Denied {
        /// The reason for operators, or the S3 code of the answer.
        reason: String,
    },
}

/// Why the gateway denied the request that failed with this error. `None` if it failed for another reason.
///
/// A verified request can be denied, too: when its body is read, when its models are known, and when its key is withdrawn.
pub(super) fn denial(error: &Error) -> Option<String> {
    if let Some(denied) = causes(error).find_map(|cause| cause.downcast_ref::<Denied>()) {
        return Some(denied.audit_reason());
    }
    let is_of_store = causes(error).any(<dyn StdError>::is::<DeniedByStore>);
    (!is_of_store && causes(error).any(is_denial)).then(|| code(error).to_owned())
}

/// The S3 code of the answer to an error.
pub(super) fn code(error: &Error) -> &'static str {
    ErrorAnswer::from_error(error).code
}

/// The access key that a request claims which fails verification, if the error names it.
pub(super) fn claimed_access_key(error: &Error) -> Option<&str> {
    match causes(error).find_map(|cause| cause.downcast_ref::<AuthError>())? {
        AuthError::UnknownKey { access_key } => Some(access_key),
        AuthError::SignatureMismatch(mismatch) => Some(&mismatch.access_key),
        _ => None,
    }
}

fn is_denial(cause: &(dyn StdError + 'static)) -> bool {
    // The store's own refusals have other messages.
    let is_refusal =
        |error: &Error| error.kind() == ErrorKind::AccessDenied && error.message() == ACCESS_DENIED;
    cause.is::<AuthError>()
        || cause.is::<StreamError>()
        || cause.downcast_ref::<Error>().is_some_and(is_refusal)
}

/// The error and its causes.
fn causes(error: &Error) -> impl Iterator<Item = &(dyn StdError + 'static)> {
    let first: &(dyn StdError + 'static) = error;
    iter::successors(Some(first), |cause| StdError::source(*cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unknown_key() -> Error {
        AuthError::UnknownKey {
            access_key: "TESTUNKNOWNKEY01".to_owned(),
        }
        .into()
    }

    #[test]
    fn a_denial_has_the_reason_for_operators_or_the_code() {
        let denied = Error::new(ErrorKind::AccessDenied, ACCESS_DENIED).with_source(Denied::NoPipelines);
        assert_eq!(denial(&denied).as_deref(), Some("no grant: pipelines"));
        let withdrawn = Error::new(ErrorKind::AccessDenied, ACCESS_DENIED);
        assert_eq!(denial(&withdrawn).as_deref(), Some("AccessDenied"));
        let wrapped = Error::new(ErrorKind::AccessDenied, "`a.csv`: Access Denied").with_source(withdrawn);
        assert_eq!(denial(&wrapped).as_deref(), Some("AccessDenied"));
        assert_eq!(denial(&unknown_key()).as_deref(), Some("InvalidAccessKeyId"));
        let body = Error::from(StreamError::HashMismatch);
        assert_eq!(denial(&body).as_deref(), Some("XAmzContentSHA256Mismatch"));
    }

    #[test]
    fn other_errors_deny_nothing() {
        let refusal = "AccessDenied: the store answered 403: Access Denied";
        for error in [
            Error::new(ErrorKind::AccessDenied, refusal),
            Error::new(ErrorKind::NotFound, "no such key"),
            Error::new(ErrorKind::OriginTimeout, "too slow"),
        ] {
            assert_eq!(denial(&error), None, "{error}");
        }
    }

    #[test]
    fn an_access_key_is_claimed_until_it_is_verified() {
        assert_eq!(claimed_access_key(&unknown_key()), Some("TESTUNKNOWNKEY01"));
        let anonymous = Error::from(AuthError::Anonymous);
        assert_eq!(claimed_access_key(&anonymous), None);
        assert_eq!(denial(&anonymous).as_deref(), Some("AccessDenied"));
    }
}
