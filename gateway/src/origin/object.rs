//! A read of one object on a caller's behalf, with the caller's signature.

use std::{fmt, sync::Arc};

use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, ETAG, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

use pushdown::wire::header::PREFIX;
use tokio::time::Instant;

use super::{
    ObjectId, ShardMember, Signing, StatedStore, StoreSignature, frames::drain, headers::strip_framing,
};
use crate::access::Upstream;
use crate::body::Body;
use crate::error::{Error, ErrorKind, Result};
use crate::s3::sign::Signature;

/// Headers that apply to the derived answer, and not to the stored object.
const DERIVED_ANSWER_HEADERS: [HeaderName; 7] = [
    ACCEPT,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
];

/// Prefix of the headers with a customer's key (SSE-C).
const CUSTOMER_KEY_PREFIX: &str = "x-amz-server-side-encryption-customer-";

/// `x-amz-*` headers on which the permission to read does not depend.
const NEUTRAL_AMZ_HEADERS: [&str; 3] = ["x-amz-checksum-mode", "x-amz-te", "x-amz-user-agent"];

/// A GET or HEAD to send to the store.
#[derive(Clone)]
pub struct OriginRequest {
    pub(super) method: Method,
    pub(super) target: Uri,
    pub(super) headers: HeaderMap,
    signature: StoreSignature,
    /// The part of the object to read, if it is a shard.
    pub(super) member: Option<Arc<ShardMember>>,
    /// The version that the whole object must have, if any.
    pub(super) version: Option<HeaderValue>,
}

/// The store's answer, its body unread.
#[derive(Debug)]
pub struct OriginObject {
    /// The store's status. Any status except 200 and 206 is a refusal: the answer is forwarded.
    pub status: StatusCode,
    /// The store's headers, without hop-by-hop headers.
    pub headers: HeaderMap,
    /// The store's Content-Length in bytes.
    pub content_length: Option<u64>,
    /// The streamed bytes. Errors are boxed [`crate::error::Error`]s.
    pub body: Body,
    /// When the gateway asked, if its own identity signed the request.
    pub(super) asked_at: Option<Instant>,
    pub(super) extensions: http::Extensions,
}

/// Without query and values of headers, in which signatures and session tokens are.
impl fmt::Debug for OriginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginRequest")
            .field("method", &self.method)
            .field("path", &self.target.path())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("store", &self.store())
            .field("member", &self.member)
            .finish_non_exhaustive()
    }
}

impl OriginRequest {
    /// The caller's GET or HEAD, with the same target byte for byte. Signed headers are forwarded, `x-pushdown-*` too.
    /// Unsigned headers are not forwarded if they are the gateway's or apply to the derived answer. Headers that describe a
    /// body or the connection are never forwarded, signed or not. If the gateway signs, its own parameters are dropped, too: a store
    /// need not know them. A store that the request states gets its own host and what was signed.
    ///
    /// # Errors
    /// Those of [`Signature::from_parts`].
    pub fn from_caller(caller: &Parts, signature: StoreSignature) -> Result<Self> {
        let claimed = Signature::from_parts(caller)?;
        let mut headers = HeaderMap::with_capacity(caller.headers.len());
        for (name, value) in &caller.headers {
            let is_forwarded = match &signature {
                // What proxies in front of the gateway add is not for the stores of others.
                StoreSignature::Stated(_) => false,
                StoreSignature::Unchanged | StoreSignature::Renewed(_) => !is_for_gateway(name),
            };
            if is_forwarded || claimed.has_signed(name) {
                headers.append(name, value.clone());
            }
        }
        strip_framing(&mut headers);
        if let StoreSignature::Stated(store) = &signature {
            headers.insert(HOST, store.host());
        }
        let target = match &signature {
            StoreSignature::Unchanged | StoreSignature::Stated(_) => caller.uri.clone(),
            StoreSignature::Renewed(_) => without_own_parameters(&caller.uri)?,
        };
        Ok(Self {
            method: caller.method.clone(),
            target,
            headers,
            signature,
            member: None,
            version: None,
        })
    }

    /// The GET of a sample that is presigned for the store. Its only header is the host.
    pub fn for_sample(host: HeaderValue, target: PathAndQuery) -> Self {
        Self {
            method: Method::GET,
            target: Uri::from(target),
            headers: HeaderMap::from_iter([(HOST, host)]),
            signature: StoreSignature::Unchanged,
            member: None,
            version: None,
        }
    }

    /// The same of a sample that is presigned for a store that the request states.
    pub fn for_stated_sample(store: StatedStore, target: PathAndQuery) -> Self {
        Self {
            headers: HeaderMap::from_iter([(HOST, store.host())]),
            signature: StoreSignature::Stated(store),
            ..Self::for_sample(HeaderValue::from_static(""), target)
        }
    }

    /// The store that it is signed for, if that is not the gateway's own.
    pub const fn store(&self) -> Option<&StatedStore> {
        self.signature.stated()
    }

    /// The same request as a GET, if the gateway signs it. A caller's signature is for one method, so that its request stays as
    /// it is.
    #[must_use]
    pub fn into_get(self) -> Self {
        match &self.signature {
            StoreSignature::Renewed(_) => Self {
                method: Method::GET,
                ..self
            },
            StoreSignature::Unchanged | StoreSignature::Stated(_) => self,
        }
    }

    /// The same request as a PUT, with a signature for one.
    #[must_use]
    pub fn into_put(self) -> Self {
        Self {
            method: Method::PUT,
            ..self
        }
    }

    /// The same request for the whole object in this version: at another one it is refused.
    #[must_use]
    pub fn with_version(mut self, version: Option<HeaderValue>) -> Self {
        self.version = version;
        self
    }

    /// Adds an unsigned header, such as Range. Does not replace a header that the caller signed.
    pub fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.entry(name).or_insert(value);
    }

    /// The target, byte for byte.
    pub const fn target(&self) -> &Uri {
        &self.target
    }

    /// The headers.
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether a header has a signature.
    pub fn is_signed_in_header(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }

    /// What signs it, in re-sign mode.
    pub const fn signing(&self) -> Option<&Signing> {
        self.signature.signing()
    }

    /// Whether the gateway's own identity signs it.
    pub(super) fn is_signed_by_gateway(&self) -> bool {
        self.signing()
            .is_some_and(|signing| signing.upstream() == Upstream::Gateway)
    }

    /// Whether nothing in it but the object can make the store refuse it: not, for example, the owner of the bucket that the caller
    /// expects. The store alone can decide on other requests.
    pub fn is_plain(&self) -> bool {
        let mut names = self.headers.keys().map(HeaderName::as_str);
        names.all(|name| !name.starts_with("x-amz-") || NEUTRAL_AMZ_HEADERS.contains(&name))
    }

    /// The object that it reads, or the member of it.
    pub fn object_id(&self) -> ObjectId {
        let store = self.store().map(StatedStore::endpoint);
        let object = match store {
            Some(store) => ObjectId::at_store(store, &self.target),
            None => ObjectId::new(self.headers.get(HOST), &self.target),
        };
        match &self.member {
            Some(member) => object.member(store, &self.target, member),
            None => object,
        }
    }

    /// Whether an answer to it may be cached, or shared with another request: not if it has a key of its own for
    /// encryption, nor a signed condition, whose answer would depend on the caller's text.
    pub fn is_shareable(&self) -> bool {
        let is_key = |name: &HeaderName| name.as_str().starts_with(CUSTOMER_KEY_PREFIX);
        !self.headers.keys().any(is_key)
            && !DERIVED_ANSWER_HEADERS[1..]
                .iter()
                .any(|name| self.headers.contains_key(name))
    }

    /// The same request, for the case that the object is no longer at the version `etag`: otherwise the store answers 304
    /// without a body.
    #[must_use]
    pub fn if_none_match(&self, etag: &HeaderValue) -> Self {
        let mut request = self.clone();
        request.add(IF_NONE_MATCH, etag.clone());
        request
    }

    /// Its head, and the signature with which it goes to the store.
    pub(super) fn into_head(self) -> (Parts, StoreSignature) {
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.method;
        head.uri = self.target;
        head.headers = self.headers;
        (head, self.signature)
    }
}

fn is_for_gateway(name: &HeaderName) -> bool {
    name.as_str().starts_with(PREFIX) || DERIVED_ANSWER_HEADERS.contains(name)
}

fn without_own_parameters(target: &Uri) -> Result<Uri> {
    let is_own = |pair: &str| pair.to_ascii_lowercase().starts_with(PREFIX);
    let Some(query) = target.query().filter(|query| query.split('&').any(is_own)) else {
        return Ok(target.clone());
    };
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_own(pair)).collect();
    let target = if kept.is_empty() {
        target.path().to_owned()
    } else {
        format!("{}?{}", target.path(), kept.join("&"))
    };
    target
        .parse()
        .map_err(|error| Error::new(ErrorKind::Internal, "invalid target").with_source(error))
}

impl OriginObject {
    /// An answer for tests.
    #[cfg(test)]
    pub fn for_test(status: StatusCode, headers: HeaderMap) -> Self {
        Self {
            status,
            headers,
            content_length: None,
            body: crate::body::empty(),
            asked_at: None,
            extensions: http::Extensions::new(),
        }
    }

    /// The same answer, to a request of the gateway's own identity at this time.
    #[cfg(test)]
    #[must_use]
    pub fn with_asked_at(self, time: Instant) -> Self {
        Self {
            asked_at: Some(time),
            ..self
        }
    }

    /// The store's answer to a request that was sent at `asked_at`, if the gateway's own identity signed it.
    pub(super) fn from_response(answer: Response<Body>, asked_at: Option<Instant>) -> Self {
        let (parts, body) = answer.into_parts();
        let length = parts.headers.get(CONTENT_LENGTH);
        Self {
            content_length: length.and_then(|value| value.to_str().ok()?.parse().ok()),
            status: parts.status,
            headers: parts.headers,
            body,
            asked_at,
            extensions: parts.extensions,
        }
    }

    /// The same answer, if it is about this version of the object or a refusal for another reason. A store may ignore the condition.
    ///
    /// # Errors
    /// [`ErrorKind::PreconditionFailed`] for another version.
    pub(super) async fn check_version(self, version: &HeaderValue) -> Result<Self> {
        let is_other = match self.status {
            StatusCode::PRECONDITION_FAILED => true,
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => self.headers.get(ETAG) != Some(version),
            _ => false,
        };
        if !is_other {
            return Ok(self);
        }
        drain(self).await;
        let message = "the object was replaced after it was listed: list it again";
        Err(Error::new(ErrorKind::PreconditionFailed, message))
    }

    /// The store's answer, to forward a refusal.
    pub fn into_response(self) -> Response<Body> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        *response.extensions_mut() = self.extensions;
        response
    }
}

#[cfg(test)]
mod tests;
