//! The caller of a batch of presigned samples in re-sign mode: whoever signed one of the first ones. Until it is verified, nothing
//! of the request is resolved.

use std::{fmt, sync::Arc};

use http::{HeaderValue, Method, Request, header};
use pushdown::wire::BatchSample;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, SeqAccess, Visitor},
};

use crate::{access::Key, error::Result, resign::Resign, s3::auth::AuthError};

/// The part of a batch request that is signed.
#[derive(Deserialize)]
struct SignedPart {
    presign: Option<String>,
    #[serde(default, deserialize_with = "first")]
    samples: Vec<BatchSample>,
}

/// Samples whose signatures are tried: a bad one is an error of its own row.
const MAX_TRIED: usize = 16;

/// Verifies the signature of one of the first samples. Returns its key, which decides what models the pipeline can name.
///
/// The sample is verified again when it is read, like all others. A batch can take minutes: meanwhile its signature can expire,
/// and the keys file can change.
///
/// # Errors
/// Those of verification for the first sample, if none is valid; [`AuthError::Anonymous`] for a request without a sample, and for
/// one that cannot be read.
pub(super) fn verify(resign: &Resign, host: Option<&HeaderValue>, json: &[u8]) -> Result<Arc<Key>> {
    let signed: SignedPart = serde_json::from_slice(json).map_err(|_| AuthError::Anonymous)?;
    let mut first_error = None;
    for sample in &signed.samples {
        let mut request = Request::new(());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = sample
            .target(signed.presign.as_deref())
            .parse()
            .map_err(|_| AuthError::InvalidUri)?;
        *request.headers_mut() = host
            .map(|host| (header::HOST, host.clone()))
            .into_iter()
            .collect();
        let head = request.into_parts().0;
        match resign.verify(&head, resign.address(&head)) {
            Ok(key) => return Ok(key),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| AuthError::Anonymous.into()))
}

/// The first elements of a list.
fn first<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<BatchSample>, D::Error> {
    struct First;

    impl<'de> Visitor<'de> for First {
        type Value = Vec<BatchSample>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of samples")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut first = Vec::new();
            while first.len() < MAX_TRIED {
                match list.next_element()? {
                    Some(sample) => first.push(sample),
                    None => return Ok(first),
                }
            }
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(first)
        }
    }

    deserializer.deserialize_seq(First)
}
