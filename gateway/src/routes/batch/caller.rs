//! The caller of a batch in re-sign mode: whoever signed its first sample. Until it is verified, nothing of the request is resolved.

use std::fmt;

use http::{HeaderMap, HeaderValue, Method, Request, header};
use pushdown::wire::BatchSample;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use crate::{error::Result, resign::Resign, s3::auth::AuthError};

/// The part of a batch request that is signed.
#[derive(Deserialize)]
struct SignedPart {
    #[serde(default)]
    presign: String,
    #[serde(default, deserialize_with = "first")]
    samples: Option<BatchSample>,
}

/// Verifies the signature of the first sample.
///
/// # Errors
/// Those of verification; [`AuthError::Anonymous`] for a request without a sample, and for one that cannot be read.
pub(super) fn verify(resign: &Resign, host: &HeaderValue, json: &[u8]) -> Result<()> {
    let signed: Option<SignedPart> = serde_json::from_slice(json).ok();
    let sample = signed.and_then(|signed| Some((signed.presign, signed.samples?)));
    let (presign, sample) = sample.ok_or(AuthError::Anonymous)?;
    let mut request = Request::new(());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = sample
        .target(&presign)
        .parse()
        .map_err(|_| AuthError::InvalidUri)?;
    *request.headers_mut() = HeaderMap::from_iter([(header::HOST, host.clone())]);
    resign.verify(&request.into_parts().0)
}

/// The first element of a list.
fn first<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<BatchSample>, D::Error> {
    struct First;

    impl<'de> Visitor<'de> for First {
        type Value = Option<BatchSample>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of samples")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let first = list.next_element()?;
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }

    deserializer.deserialize_seq(First)
}
