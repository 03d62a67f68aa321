//! How a batch request is signed: as a whole, or sample by sample.

use std::time::SystemTime;

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4::SigningParams,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pushdown::{
    Pipeline,
    wire::{BatchRequest, BatchSample, Features, StoreEndpoint, header::BATCH_PATH},
};

use super::{ObjectPaths, Presigner, Validity};
use crate::error::{Error, Result};

/// Signs a batch request for objects of one bucket.
#[derive(Debug)]
pub(crate) struct BatchSigner {
    authority: BatchAuthority,
    paths: ObjectPaths,
    /// The store that samples are signed for, if the request has to state it.
    store: Option<StoreEndpoint>,
}

/// What authorizes a batch request.
#[derive(Debug)]
pub(crate) enum BatchAuthority {
    /// Each sample has a signature of its own: for gateways that forward them to the store, and for those that are not known yet.
    Samples(Presigner),
    /// The request is signed, and its samples are not: for gateways with the feature [`SIGNED_BATCHES`](Features::SIGNED_BATCHES).
    Request(RequestSigner),
}

/// Signs whole requests in their headers.
#[derive(Debug)]
pub(crate) struct RequestSigner {
    credentials: Credentials,
    region: String,
    host: String,
}

/// A batch request that is ready to be sent.
pub(crate) struct BatchPost {
    /// The headers that sign it. Empty if its samples are presigned.
    pub(crate) signature: HeaderMap,
    /// Of the signatures of presigned samples.
    pub(crate) validity: Option<Validity>,
    /// The request as JSON.
    pub(crate) body: Bytes,
}

/// Without the body, which has signatures and a session token.
impl std::fmt::Debug for BatchPost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BatchPost")
            .field("signature", &self.signature)
            .field("validity", &self.validity)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

impl BatchSigner {
    pub(crate) const fn new(
        authority: BatchAuthority,
        paths: ObjectPaths,
        store: Option<StoreEndpoint>,
    ) -> Self {
        Self {
            authority,
            paths,
            store,
        }
    }

    /// Whether the request is signed as a whole, and its samples are not.
    pub(crate) const fn signs_request(&self) -> bool {
        matches!(self.authority, BatchAuthority::Request(_))
    }

    /// The sample of a whole object.
    pub(crate) fn sample(&self, key: &str) -> BatchSample {
        let path = self.paths.path(key);
        match &self.authority {
            BatchAuthority::Samples(presigner) => {
                let signature = presigner.signature(&path);
                BatchSample::new(path, signature)
            }
            BatchAuthority::Request(_) => BatchSample::for_signed_batch(path),
        }
    }

    /// A request for samples of this signer.
    pub(crate) fn request(&self, pipeline: Pipeline, samples: Vec<BatchSample>) -> BatchRequest {
        let request = match &self.authority {
            BatchAuthority::Samples(presigner) => BatchRequest::new(pipeline, presigner.query(), samples),
            BatchAuthority::Request(_) => BatchRequest::for_signed_batch(pipeline, samples),
        };
        BatchRequest {
            store: self.store.clone(),
            ..request
        }
    }

    /// Writes a request for a gateway with these features, and signs it.
    ///
    /// # Errors
    /// If it cannot be written or signed, which is a bug.
    pub(crate) fn post(&self, request: &BatchRequest, features: &Features) -> Result<BatchPost> {
        let body = Bytes::from(request.to_json_for(features)?);
        let (signature, validity) = match &self.authority {
            BatchAuthority::Samples(presigner) => (HeaderMap::new(), Some(presigner.validity().clone())),
            BatchAuthority::Request(signer) => {
                (signer.signature(BATCH_PATH, &body, SystemTime::now())?, None)
            }
        };
        Ok(BatchPost {
            signature,
            validity,
            body,
        })
    }
}

impl RequestSigner {
    /// Signatures of `credentials` for requests to `host` (with the port, unless it is the scheme's default).
    pub(crate) fn new(credentials: Credentials, region: &str, host: &str) -> Self {
        Self {
            credentials,
            region: region.to_owned(),
            host: host.to_owned(),
        }
    }

    /// The headers that sign a POST of `body` to `path`, without a query. They cover the host and the body, so that other headers
    /// may be added.
    fn signature(&self, path: &str, body: &[u8], time: SystemTime) -> Result<HeaderMap> {
        let identity = self.credentials.clone().into();
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(time)
            .settings(settings)
            .build()
            .map_err(|error| cannot_sign().with_source(error))?
            .into();
        let request = SignableRequest::new(
            Method::POST.as_str(),
            format!("http://{}{path}", self.host),
            [("host", self.host.as_str())].into_iter(),
            SignableBody::Bytes(body),
        );
        let signed = request.and_then(|request| sign(request, &params));
        let signed = signed.map_err(|error| cannot_sign().with_source(error))?;
        let (instructions, _) = signed.into_parts();
        let mut headers = HeaderMap::new();
        for (name, value) in instructions.headers() {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|error| cannot_sign().with_source(error))?;
            let mut value = HeaderValue::from_str(value).map_err(|error| cannot_sign().with_source(error))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn cannot_sign() -> Error {
    Error::internal("cannot sign the batch request")
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, time::Duration};

    use super::*;

    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn credentials(token: Option<&str>) -> Credentials {
        Credentials::new(KEY, SECRET, token.map(str::to_owned), None, "test")
    }

    fn signer_of(authority: BatchAuthority) -> BatchSigner {
        BatchSigner::new(authority, ObjectPaths::with_bucket("b"), None)
    }

    fn request(signer: &BatchSigner) -> BatchRequest {
        let sample = signer.sample("k");
        signer.request(Pipeline::parse("decode").unwrap(), vec![sample])
    }

    #[test]
    fn a_signed_request_has_no_signatures_in_its_body() {
        let signer = RequestSigner::new(credentials(Some("token")), "eu-west-1", "gateway.local:9900");
        let signer = signer_of(BatchAuthority::Request(signer));
        let post = signer.post(&request(&signer), &Features::all()).unwrap();
        let body = String::from_utf8(post.body.to_vec()).unwrap();
        assert!(body.contains(r#""samples":[{"path":"/b/k"}]"#), "{body}");
        assert!(!body.contains("presign"), "{body}");
        let header = |name: &str| post.signature[name].to_str().unwrap();
        let digest = pushdown::pipeline::Digest::new(&post.body);
        assert_eq!(header("x-amz-content-sha256"), digest.to_string());
        assert_eq!(header("x-amz-security-token"), "token");
        let signed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, ";
        assert!(header("authorization").contains(signed), "{:?}", post.signature);
        assert!(header("authorization").contains(&format!("Credential={KEY}/")));
    }

    #[test]
    fn presigned_samples_need_no_signature_of_the_request() {
        let presigner = Presigner::new(&credentials(None), "eu-west-1", "h", SystemTime::now()).unwrap();
        let signer = signer_of(BatchAuthority::Samples(presigner));
        let post = signer.post(&request(&signer), &Features::default()).unwrap();
        let body = String::from_utf8(post.body.to_vec()).unwrap();
        assert!(body.contains("X-Amz-Expires=900"), "{body}");
        assert!(body.contains(r#""path":"/b/k","signature":""#), "{body}");
        assert!(post.signature.is_empty());
    }

    /// The text to sign has the time and the body, and the signing key the region.
    #[test]
    fn a_signature_is_for_one_time_body_region_and_host() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let sign = |region: &str, host: &str, body: &str, time| {
            let signer = RequestSigner::new(credentials(None), region, host);
            let headers = signer.signature("/p", body.as_bytes(), time).unwrap();
            headers["authorization"].clone()
        };
        let first = sign("eu-west-1", "h", "body", time);
        assert_eq!(first, sign("eu-west-1", "h", "body", time));
        for other in [
            sign("us-east-1", "h", "body", time),
            sign("eu-west-1", "h:80", "body", time),
            sign("eu-west-1", "h", "bodY", time),
            sign("eu-west-1", "h", "body", time + Duration::from_secs(1)),
        ] {
            assert_ne!(other, first);
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let credentials = credentials(Some("a-token"));
        let presigner = Presigner::new(&credentials, "eu-west-1", "h", SystemTime::now()).unwrap();
        let mut shown = String::new();
        for authority in [
            BatchAuthority::Request(RequestSigner::new(credentials, "eu-west-1", "h")),
            BatchAuthority::Samples(presigner),
        ] {
            let signer = signer_of(authority);
            let post = signer.post(&request(&signer), &Features::all()).unwrap();
            write!(shown, "{signer:?} {post:?}").unwrap();
        }
        for hidden in [SECRET, "a-token", "Signature="] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
