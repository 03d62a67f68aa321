//! The origin, the object store of the gateway: its connection pool, reads on a caller's behalf, and readiness probes.

mod allowed_stores;
mod attempts;
mod authorization;
mod client;
mod config;
mod connector;
mod download;
mod endpoint;
mod frames;
mod headers;
mod identity;
mod joined_reads;
mod lookups;
mod member;
mod object;
mod object_id;
mod open_hosts;
mod progress;
mod public_address;
mod refusal;
mod regions;
mod resolver;
mod shard_stream;
mod signed_payload;
mod signer;
mod store_signature;
mod tls;
mod unsent_body;
mod version;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use pushdown::wire::{StoreEndpoint, StoreUrl};
use pushdown_s3::Address;
use tokio::time::Instant;

pub use allowed_stores::{AllowedStores, StatedStore};
pub use authorization::{Authorization, Confirmation};
pub use config::{Config, OwnStoreConfig};
pub use frames::{MAX_DRAINED_BYTES, drain, next_bytes, read_to_end};
pub use headers::{derived_headers, strip_request, strip_response};
pub use identity::{IdentityRefresher, StoreIdentity};
pub use joined_reads::{EntryRun, EntryTicket, JoinedReads};
pub use member::ShardMember;
pub use object::{OriginObject, OriginRequest};
pub use object_id::ObjectId;
pub use progress::{Progress, StallTimeouts};
pub use refusal::{DeniedByStore, can_be_late};
pub use signed_payload::SignedPayload;
pub use signer::{Signer, Signing};
pub use store_signature::StoreSignature;
pub use version::{FetchedTail, ObjectTail, TailPart, VersionedObject};

use crate::access::{UNSAFE_KEY, is_unsafe_key};
use crate::body::{Body, Observer as _};
use crate::error::{Error, ErrorKind, Result};
use crate::telemetry::{Metrics, StoreRefusal};
use attempts::{AttemptResult, Attempts};
use download::Download;
use endpoint::Endpoint;
use refusal::CheckedAnswer;
use unsent_body::UnsentBody;

/// Timeout of a readiness probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// The store. Cloning shares the pool.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The gateway's own store. `None` if requests state theirs.
    own: Option<OwnStore>,
    /// The stores that requests may state. `None` in re-sign mode.
    stated: Option<StatedStores>,
    requires_signing: bool,
    idle_timeout: Duration,
    /// Largest object that a pipeline may read.
    max_object_bytes: u64,
    metrics: Metrics,
}

/// The gateway's own store.
#[derive(Debug, Clone)]
struct OwnStore {
    client: client::Client,
    endpoint: Arc<Endpoint>,
    /// Its address, as requests may state it.
    url: Option<StoreUrl>,
}

/// The stores that requests may state.
#[derive(Debug, Clone)]
struct StatedStores {
    client: client::Client,
    allowed: Arc<AllowedStores>,
}

impl Origin {
    /// The store that a request states.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotAllowed`] unless the operator allowed it, and [`ErrorKind::InvalidRequest`] in re-sign mode.
    pub fn admit_store(&self, store: StoreEndpoint) -> Result<StatedStore> {
        match &self.stated {
            Some(stated) => stated
                .allowed
                .admit(store)
                .inspect_err(|_| self.metrics.count_refused_store(StoreRefusal::Store)),
            None => Err(Error::new(
                ErrorKind::InvalidRequest,
                "unexpected store: expected objects of this gateway's own store, because it does not list the feature `stores`",
            )),
        }
    }

    /// Checks the bucket of the object with this path at a stated store.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotAllowed`] for a bucket that the operator did not allow; [`ErrorKind::InvalidRequest`] for an unsafe key.
    pub fn check_bucket(&self, store: &StatedStore, path: &str) -> Result<()> {
        let address = Address::new(Some(store.endpoint()), path);
        let (bucket, key) = address.map_or_else(Default::default, |address| (address.bucket, address.key));
        // At a store that cleans paths it would be an object of another bucket.
        if is_unsafe_key(&key) || is_unsafe_key(&bucket) {
            return Err(Error::new(ErrorKind::InvalidRequest, UNSAFE_KEY));
        }
        self.stated
            .as_ref()
            .map_or(Ok(()), |stated| stated.allowed.check_bucket(&bucket))
            .inspect_err(|_| self.metrics.count_refused_store(StoreRefusal::Bucket))
    }

    /// Checks that there is a store for requests that state none.
    ///
    /// # Errors
    /// [`ErrorKind::NoUpstream`] without a store of the gateway's own.
    pub fn check_own_store(&self) -> Result<()> {
        self.own_store().map(drop)
    }

    /// Whether requests may state a store.
    pub const fn has_stated_stores(&self) -> bool {
        self.stated.is_some()
    }

    /// Sends a request without a body: unchanged, or signed again.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] in re-sign mode for a request that was not decided on.
    pub async fn send_without_body(
        &self,
        mut parts: Parts,
        signature: StoreSignature,
    ) -> Result<Response<Body>> {
        let signing = match signature {
            StoreSignature::Unchanged | StoreSignature::Stated(_) => {
                let client = self.address_unsigned(&mut parts, signature.stated())?;
                let request = Request::from_parts(parts, ());
                let answer = client.send_without_body(request).await?;
                return Ok(self.forward(answer, ()));
            }
            StoreSignature::Renewed(signing) => signing,
        };
        let own = self.own_store()?;
        let mut attempts = Attempts::new(signing, parts);
        loop {
            let request = Request::from_parts(attempts.next(&own.endpoint)?, ());
            let answer = own.client.send_without_body(request).await;
            let answer = answer.inspect_err(|error| attempts.forget_region(error))?;
            let upstream = attempts.signing().upstream();
            let CheckedAnswer { answer, remedy } =
                refusal::check(self.forward(answer, ()), upstream, attempts.method()).await;
            let Some(remedy) = remedy else { return answer };
            if let AttemptResult::Final(answer) = attempts.apply(remedy, answer, None).await {
                return answer;
            }
        }
    }

    /// Sends a request with a body: unchanged, or signed again. `guard` is dropped with the answer's body.
    ///
    /// # Errors
    /// Like [`send_without_body`](Self::send_without_body).
    pub async fn send<G>(
        &self,
        mut parts: Parts,
        signature: StoreSignature,
        body: Body,
        progress: &Progress,
        guard: G,
    ) -> Result<Response<Body>>
    where
        G: Unpin + Send + Sync + 'static,
    {
        let signing = match signature {
            StoreSignature::Unchanged | StoreSignature::Stated(_) => {
                let client = self.address_unsigned(&mut parts, signature.stated())?;
                let request = Request::from_parts(parts, body);
                let answer = client.send(request, progress).await?;
                return Ok(self.forward(answer, guard));
            }
            StoreSignature::Renewed(signing) => signing,
        };
        let own = self.own_store()?;
        let (mut attempts, body, guard) = (
            Attempts::new(signing, parts),
            UnsentBody::new(body),
            Arc::new(guard),
        );
        loop {
            let head = attempts.next(&own.endpoint)?;
            let Some(request_body) = body.next_request() else {
                return Err(attempts::body_was_sent());
            };
            let request = Request::from_parts(head, request_body.boxed_unsync());
            let answer = own.client.send(request, progress).await;
            let answer = answer.inspect_err(|error| attempts.forget_region(error))?;
            let answer = self.forward(answer, Arc::clone(&guard));
            let upstream = attempts.signing().upstream();
            let CheckedAnswer { answer, remedy } = refusal::check(answer, upstream, attempts.method()).await;
            let Some(remedy) = remedy else { return answer };
            if let AttemptResult::Final(answer) = attempts.apply(remedy, answer, Some(&body)).await {
                return answer;
            }
        }
    }

    /// Reads an object, or a member of it as if it were one. A refusal by the store is an answer, and no error.
    ///
    /// # Errors
    /// For a member, [`ErrorKind::ShardReplaced`] and [`ErrorKind::InvalidShard`].
    pub async fn read(&self, request: OriginRequest) -> Result<OriginObject> {
        self.read_joined(request, None).await
    }

    /// The same. With a ticket the request reads a member, and waits until the entries before it are read.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub async fn read_joined(
        &self,
        mut request: OriginRequest,
        ticket: Option<EntryTicket>,
    ) -> Result<OriginObject> {
        match request.take_member() {
            // Boxed: rare, and larger than the read of an object.
            Some(member) => Box::pin(self.read_member(request, member, ticket)).await,
            None => self.read_object(request).await,
        }
    }

    /// Reads an object, unless it is still at the version `etag`: then the answer is 304 with this ETag.
    ///
    /// Ceph's 304 has no ETag. It can be for no other version, since the condition names this one alone (RFC 9110, 13.1.2).
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub async fn read_if_changed(&self, request: &OriginRequest, etag: &HeaderValue) -> Result<OriginObject> {
        let mut answer = self.read(request.if_none_match(etag)).await?;
        if answer.status == StatusCode::NOT_MODIFIED {
            answer.headers.entry(header::ETAG).or_insert_with(|| etag.clone());
        }
        Ok(answer)
    }

    async fn read_object(&self, mut request: OriginRequest) -> Result<OriginObject> {
        // Before it is sent: the store's answer is about a later time.
        let asked_at = request.is_signed_by_gateway().then(Instant::now);
        let version = request.version.take();
        let is_conditional = request.headers.contains_key(header::IF_NONE_MATCH);
        if let Some(version) = version.as_ref().filter(|_| !is_conditional) {
            request.add(header::IF_MATCH, version.clone());
        }
        let (head, signature) = request.into_head();
        let answer = self.send_without_body(head, signature).await?;
        let answer = OriginObject::from_response(answer, asked_at);
        match version {
            Some(version) => answer.check_version(&version).await,
            None => Ok(answer),
        }
    }

    /// Writes an object. A refusal by the store is an answer, and no error.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn write(&self, request: OriginRequest, content: Bytes) -> Result<OriginObject> {
        let (head, signature) = request.into_head();
        let progress = Progress::default();
        let answer = self
            .send(head, signature, crate::body::full(content), &progress, ())
            .await?;
        Ok(OriginObject::from_response(answer, None))
    }

    /// Whether the gateway's own store answers at all. A refusal counts as an answer. Without an upstream nothing is asked.
    pub async fn is_reachable(&self) -> bool {
        let Some(own) = &self.own else {
            return true;
        };
        let mut probe = Request::new(());
        *probe.method_mut() = Method::HEAD;
        probe
            .headers_mut()
            .insert(header::HOST, HeaderValue::from_static("pushdown-readiness"));
        let (mut parts, ()) = probe.into_parts();
        if own.endpoint.address(&mut parts).is_err() {
            return false;
        }
        let answer = own.client.send_without_body(Request::from_parts(parts, ()));
        let answer = tokio::time::timeout(PROBE_TIMEOUT, answer).await;
        answer.is_ok_and(|answer| answer.is_ok())
    }

    /// Addresses a request that keeps the caller's signature, as in forward mode: to the store that it states, or to the gateway's own.
    fn address_unsigned(&self, parts: &mut Parts, stated: Option<&StatedStore>) -> Result<&client::Client> {
        if self.requires_signing {
            let message = "a request for the store has no decision";
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let Some((store, stated)) = stated.zip(self.stated.as_ref()) else {
            let own = self.own_store()?;
            own.endpoint.address(parts)?;
            return Ok(&own.client);
        };
        let url = store.endpoint().url();
        endpoint::address_stated(url, parts)?;
        let own = self.own.as_ref().filter(|own| own.url.as_ref() == Some(url));
        Ok(own.map_or(&stated.client, |own| &own.client))
    }

    fn own_store(&self) -> Result<&OwnStore> {
        self.own.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::NoUpstream,
                "this gateway has no upstream: expected a pipeline, and the store that the request is signed for; send all other \
                 requests to the store",
            )
        })
    }

    fn forward<G>(&self, answer: Response<Incoming>, guard: G) -> Response<Body>
    where
        G: Unpin + Send + 'static,
    {
        let (mut parts, body) = answer.into_parts();
        strip_response(&mut parts.headers);
        parts.version = http::Version::HTTP_11;
        let received = self.metrics.bytes_from_store.clone();
        let body = Download::new(self.idle_timeout, received, guard).observe(body);
        Response::from_parts(parts, body.boxed_unsync())
    }
}

#[cfg(test)]
mod tests;
