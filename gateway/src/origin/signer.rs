//! Signs requests again for the store, in re-sign mode.

use std::{sync::Arc, time::SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::{
    http_request::{
        PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4::SigningParams,
};
use aws_smithy_runtime_api::client::identity::Identity;
use http::{HeaderMap, HeaderName, HeaderValue, header, request::Parts};

use super::{Authorization, Confirmation, SignedPayload, StoreIdentity, regions::Regions};
use crate::{
    access::{Allowed, Keys, Secret, Upstream},
    error::{Error, ErrorKind, Result},
    s3::{RequestAddress, errors::ACCESS_DENIED},
};

const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// Signs for the store. Clones share the keys.
#[derive(Debug, Clone)]
pub struct Signer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    keys: Keys,
    regions: Regions,
    /// Signs for keys without an identity of their own at the store.
    identity: StoreIdentity,
}

/// The decision that a request may be sent, and what signs it: only a [`Signer`] makes one, of what is [`Allowed`]. Clones share it.
#[derive(Debug, Clone)]
pub struct Signing(Arc<Decision>);

#[derive(Debug)]
struct Decision {
    signer: Signer,
    allowed: Allowed,
    payload: SignedPayload,
    /// The bucket in the target, if it has one.
    bucket: Option<String>,
}

impl Signer {
    /// A signer for a store in `region`. `identity` signs for keys without one of their own at the store.
    pub fn new(keys: Keys, region: &str, identity: StoreIdentity) -> Self {
        Self(Arc::new(Inner {
            keys,
            regions: Regions::new(region),
            identity,
        }))
    }

    /// What signs a request to `address` that its caller may make.
    pub fn signing(&self, allowed: Allowed, address: &RequestAddress, payload: SignedPayload) -> Signing {
        Signing(Arc::new(Decision {
            signer: self.clone(),
            allowed,
            payload,
            bucket: address.canonical_bucket(),
        }))
    }
}

impl Signing {
    /// The decision.
    pub fn allowed(&self) -> &Allowed {
        &self.0.allowed
    }

    /// The authorization by grants alone, for a version that the store has confirmed.
    pub fn authorization(&self, confirmation: &Confirmation) -> Option<Authorization> {
        Authorization::from_grant(&self.0.allowed, &self.0.signer.0.keys, confirmation)
    }

    /// Who signs at the store.
    pub fn upstream(&self) -> Upstream {
        self.0.allowed.key().upstream()
    }

    /// The bucket in the target, if it has one.
    pub(super) fn bucket(&self) -> Option<&str> {
        self.0.bucket.as_deref()
    }

    /// The regions of the store's buckets.
    pub(super) fn regions(&self) -> &Regions {
        &self.0.signer.0.regions
    }

    /// The gateway's identity, if it signs.
    pub(super) fn store_identity(&self) -> Option<&StoreIdentity> {
        (self.upstream() == Upstream::Gateway).then_some(&self.0.signer.0.identity)
    }

    /// Signs the head of a request to `host` in `region`. The target must be in canonical form.
    ///
    /// # Errors
    /// [`ErrorKind::AccessDenied`] if the key was withdrawn since the decision; [`ErrorKind::InvalidRequest`] for headers that
    /// cannot be signed.
    pub fn sign(
        &self,
        parts: &mut Parts,
        host: HeaderValue,
        region: &str,
        identity: &Identity,
    ) -> Result<()> {
        if !self.0.allowed.is_still_valid(&self.0.signer.0.keys) {
            return Err(Error::new(ErrorKind::AccessDenied, ACCESS_DENIED));
        }
        let payload = self.0.payload.to_text();
        parts.headers.insert(header::HOST, host);
        parts.headers.insert(CONTENT_SHA256, text_value(&payload)?);
        let params = SigningParams::builder()
            .identity(identity)
            .region(region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings())
            .build()
            .map_err(|error| internal("cannot sign a request for the store").with_source(error))?;
        let headers = signed_headers(&parts.headers)?;
        let signable = SignableRequest::new(
            parts.method.as_str(),
            parts.uri.to_string(),
            headers.iter().map(|(name, value)| (*name, *value)),
            SignableBody::Precomputed(payload),
        );
        let signed = signable.and_then(|signable| sign(signable, &params.into()));
        let signed =
            signed.map_err(|error| internal("cannot sign a request for the store").with_source(error))?;
        let (instructions, _) = signed.into_parts();
        for (name, value) in instructions.headers() {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|error| internal("invalid name of a signed header").with_source(error))?;
            let mut value = text_value(value)?;
            value.set_sensitive(true);
            parts.headers.insert(name, value);
        }
        Ok(())
    }

    /// What signs now.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] without valid credentials of the gateway; [`ErrorKind::InvalidIdentity`] if it will never have some.
    pub fn identity(&self) -> Result<Identity> {
        let caller = self.0.allowed.caller();
        let key = caller.key();
        match key.upstream() {
            Upstream::Caller => {
                let secret = caller.secret().map(Secret::as_bytes).unwrap_or_default();
                let secret = String::from_utf8_lossy(secret);
                Ok(Credentials::new(key.access_key(), secret, None, None, "keys file").into())
            }
            Upstream::Gateway => self.0.signer.0.identity.current(),
        }
    }
}

fn settings() -> SigningSettings {
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::NoHeader;
    settings
}

/// The headers that a signature covers: what the store must not read otherwise. Proxies may change others.
fn signed_headers(headers: &HeaderMap) -> Result<Vec<(&str, &str)>> {
    let is_signed = |name: &HeaderName| {
        *name == header::HOST
            || *name == header::CONTENT_TYPE
            || *name == CONTENT_MD5
            || name.as_str().starts_with("x-amz-")
    };
    headers
        .iter()
        .filter(|(name, _)| is_signed(name))
        .map(|(name, value)| {
            let text = std::str::from_utf8(value.as_bytes()).map_err(|error| {
                let message = format!("invalid header {name}: expected UTF-8");
                Error::new(ErrorKind::InvalidRequest, message).with_source(error)
            })?;
            Ok((name.as_str(), text))
        })
        .collect()
}

fn text_value(text: &str) -> Result<HeaderValue> {
    HeaderValue::from_str(text)
        .map_err(|error| internal("invalid value of a signed header").with_source(error))
}

fn internal(message: &'static str) -> Error {
    Error::new(ErrorKind::Internal, message)
}
