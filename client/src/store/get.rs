//! Reads one object: as stored, or the value that a pipeline computes from it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use pushdown::{Engine, Limits, wire};

use super::{
    BucketEndpoint, Failure, Store,
    gateway::{GatewayRoute, Replica},
    has_ended,
    value::{Value, ValueRequest, ValueStream, member_headers, store_header},
};
use crate::{
    engine::check_engine,
    error::{Error, ErrorKind, Result},
    objects::Object,
    sample_name::SampleName,
    sign::Validity,
    transport::{Answer, BUCKET_REGION, Refusal},
};

impl Store {
    /// Reads an object as stored.
    ///
    /// # Errors
    /// If the store refuses it, or the retries are exhausted.
    pub async fn get(&self, bucket: &str, key: &str, limits: &Limits) -> Result<Bytes> {
        let about = format!("s3://{bucket}/{key}");
        let limit = limits.max_object_bytes;
        let attempt = || async move {
            let answer = self.open(bucket, key, HeaderMap::new()).await?;
            answer.collect(limit).await?.ok_or(Failure::TooLarge(limit))
        };
        self.with_retries(&about, attempt).await
    }

    /// Requests the value that the gateway computes from an object.
    ///
    /// # Errors
    /// If the gateway or the store refuses it; [`ErrorKind::NotAGateway`] if the endpoint sent the object itself.
    pub async fn get_value(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
        limits: &Limits,
    ) -> Result<Value> {
        let route = GatewayRoute::to(bucket, key);
        self.get_value_observed(bucket, key, request, limits, &|_| (), route)
            .await
    }

    /// The same by this route. Calls `arrived` with the number of bytes of each part of its form that arrives, also if it is requested again.
    pub(crate) async fn get_value_observed(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
        limits: &Limits,
        arrived: &(dyn Fn(u64) + Sync),
        route: GatewayRoute,
    ) -> Result<Value> {
        let object = Object {
            key,
            bytes: None,
            etag: None,
            member: None,
        };
        self.value(bucket, object, request.headers()?, limits, arrived, route)
            .await
    }

    /// The same of a sample: a whole object, or a member of a shard.
    ///
    /// # Errors
    /// As [`get_value`](Self::get_value); for a member also [`ErrorKind::NotAGateway`] if the gateway does not read members.
    pub async fn get_sample_value(
        &self,
        bucket: &str,
        object: Object<'_>,
        request: &ValueRequest<'_>,
        limits: &Limits,
    ) -> Result<Value> {
        let route = GatewayRoute::to(bucket, object.key);
        self.value(bucket, object, request.headers()?, limits, &|_| (), route)
            .await
    }

    /// The same with one more header.
    ///
    /// # Errors
    /// As [`get_sample_value`](Self::get_sample_value).
    pub(super) async fn get_sample_value_with(
        &self,
        bucket: &str,
        object: Object<'_>,
        request: &ValueRequest<'_>,
        limits: &Limits,
        header: (HeaderName, HeaderValue),
    ) -> Result<Value> {
        let mut headers = request.headers()?;
        headers.extend([header]);
        let route = GatewayRoute::to(bucket, object.key);
        self.value(bucket, object, headers, limits, &|_| (), route).await
    }

    async fn value(
        &self,
        bucket: &str,
        object: Object<'_>,
        mut headers: HeaderMap,
        limits: &Limits,
        arrived: &(dyn Fn(u64) + Sync),
        route: GatewayRoute,
    ) -> Result<Value> {
        let name = SampleName::from(object);
        headers.extend(member_headers(object)?);
        let max_bytes = limits.max_value_bytes.max(limits.max_object_bytes);
        let about = format!("s3://{bucket}/{name}");
        if object.member.is_some() {
            self.check_reads_members(&about, route).await?;
        }
        let attempt = |replica| {
            let headers = headers.clone();
            self.read_value(replica, (bucket, object.key), headers, max_bytes, arrived)
        };
        let (headers, body) = self.with_gateway_retries(&about, route, attempt).await?;
        let (stage, content_type) = self.value_head(&headers)?;
        Ok(Value {
            stage,
            content_type,
            headers,
            body,
        })
    }

    /// The same as a stream. The request is retried until the answer begins, but not after that.
    ///
    /// # Errors
    /// As [`get_value`](Self::get_value).
    pub async fn stream_value(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
    ) -> Result<ValueStream> {
        let route = GatewayRoute::to(bucket, key);
        self.stream_value_from(bucket, key, request, route).await
    }

    /// The same by this route.
    pub(super) async fn stream_value_from(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
        route: GatewayRoute,
    ) -> Result<ValueStream> {
        let about = format!("s3://{bucket}/{key}");
        let headers = request.headers()?;
        let attempt = |replica: Arc<Replica>| {
            let headers = headers.clone();
            async move {
                let answer = self.open_value(&replica, bucket, key, headers).await?;
                Ok((replica, answer))
            }
        };
        let (replica, answer) = self.with_gateway_retries(&about, route, attempt).await?;
        self.value_stream(replica, answer)
    }

    /// The value in an answer of a replica.
    pub(super) fn value_stream(&self, replica: Arc<Replica>, answer: Answer) -> Result<ValueStream> {
        let (stage, content_type) = self.value_head(&answer.headers)?;
        Ok(ValueStream {
            stage,
            content_type,
            replica,
            answer,
        })
    }

    /// Repeats `attempt` until it succeeds, fails permanently, or exhausts the retries.
    pub(super) async fn with_retries<T, A: Future<Output = Result<T, Failure>> + Send>(
        &self,
        subject: &str,
        attempt: impl Fn() -> A + Sync,
    ) -> Result<T> {
        let mut attempt = || async { attempt().await.map_err(|failure| failure.about(subject)) };
        let done = self.retries().complete(&mut attempt).await;
        done.map_err(|failed| failed.error)
    }

    /// The same of a request to the gateway by this route. If the gateway is dispensable, an attempt that gets no complete answer is the last one:
    /// the caller does without, and the next requests depend on a probe.
    pub(super) async fn with_gateway_retries<T: Send, A: Future<Output = Result<T, Failure>> + Send>(
        &self,
        subject: &str,
        route: GatewayRoute,
        attempt: impl Fn(Arc<Replica>) -> A + Sync,
    ) -> Result<T> {
        let is_dispensable = route.is_dispensable;
        let list = self.replicas().await?;
        let first_choice = list.choice(route.object_hash);
        let attempt = || async {
            match self.at_replica(route, &attempt).await {
                Err(Failure::Lost(error)) if is_dispensable && error.is_retryable() => Ok(Err(error)),
                attempted => attempted.map(Ok),
            }
        };
        let mut attempt = || async { attempt().await.map_err(|failure| failure.about(subject)) };
        // Of several replicas, others may be asked after a pause.
        let replaceable = (is_dispensable && list.len() == 1).then(|| &**first_choice.health());
        let done = self
            .gateway_retries(None, replaceable)
            .complete(&mut attempt)
            .await;
        let found = done.map_err(|failed| failed.error).flatten();
        if is_dispensable && found.as_ref().is_err_and(Error::is_retryable) {
            first_choice.health().after_failure().await;
        }
        found
    }

    /// The stage and the content type of a value, from the headers of the gateway's answer.
    fn value_head(&self, headers: &HeaderMap) -> Result<(usize, String)> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(stage) = text(wire::header::STAGE).and_then(|stage| stage.parse().ok()) else {
            let text = format!(
                "{} sent the object itself, so it is not a pushdown gateway: use plain mode",
                self.gateway_name()
            );
            return Err(Error::new(ErrorKind::NotAGateway, text));
        };
        let content_type = text("content-type").unwrap_or_default().to_owned();
        // Engines of models are not compared: this host runs none on the value.
        let (host, gateway) = (Engine::all(), text(wire::header::ENGINE).unwrap_or("missing"));
        if let Err(why) = check_engine(&host, gateway) {
            tracing::warn!("{why}: values may differ from those computed on this host");
        }
        Ok((stage, content_type))
    }

    /// Checks that the endpoint is a gateway that reads members. Any other one would answer with the whole shard.
    async fn check_reads_members(&self, about: &str, route: GatewayRoute) -> Result<()> {
        let ask =
            |replica: Arc<Replica>| async move { self.known_features(&replica).await.map_err(Failure::from) };
        let features = self.with_gateway_retries(about, route, ask).await?;
        if features.is_some_and(|features| features.has(wire::Features::MEMBERS)) {
            return Ok(());
        }
        let text = format!(
            "{} does not read members of shards: its answers do not list the feature `members`; use plain mode",
            self.gateway_name()
        );
        Err(Error::new(ErrorKind::NotAGateway, text))
    }

    async fn read_value(
        &self,
        replica: Arc<Replica>,
        (bucket, key): (&str, &str),
        headers: HeaderMap,
        limit: u64,
        arrived: &(dyn Fn(u64) + Sync),
    ) -> Result<(HeaderMap, Bytes), Failure> {
        let mut answer = self.open_value(&replica, bucket, key, headers).await?;
        let headers = std::mem::take(&mut answer.headers);
        let body = answer.collect_observed(limit, arrived).await?;
        body.map(|body| (headers, body)).ok_or(Failure::TooLarge(limit))
    }

    /// Sends a signed GET to a replica of the gateway and waits for the head of a successful answer; once more if the answer names another region of the
    /// bucket, or says that the signature has ended, which it can while the request waits at the gateway.
    async fn open_value(
        &self,
        replica: &Replica,
        bucket: &str,
        key: &str,
        headers: HeaderMap,
    ) -> Result<Answer, Failure> {
        self.check_reads_stores(replica).await?;
        if self.shared.endpoints.is_regional() {
            // The gateway may allow the right host alone. Elsewhere a refusal names the region soon enough.
            self.locate(bucket).await?;
        }
        let mut may_repeat = true;
        loop {
            let endpoint = self.bucket_endpoint(bucket)?;
            let (presigner, stated) = self.stated_presigner(&endpoint).await?;
            let mut headers = headers.clone();
            if let Some(stated) = stated {
                headers.extend([store_header(&stated)?]);
            }
            let target = presigner.target(&endpoint.path(key));
            let sent = self.send_to_replica(replica, Method::GET, &target, headers, Bytes::new());
            let answer = sent.await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            let refusal = answer.refusal().await;
            let has_changed = self.has_other_signature(&endpoint, presigner.validity(), &refusal)?;
            if !(has_changed && std::mem::take(&mut may_repeat)) {
                return Err(Failure::Refused(refusal));
            }
        }
    }

    /// Sends a signed GET to the store and waits for the head of its answer, with any status but those of a wrong signature; once more if the
    /// answer names another region of the bucket, or says that the credentials have ended.
    pub(super) async fn send_get(
        &self,
        bucket: &str,
        key: &str,
        headers: HeaderMap,
    ) -> Result<Answer, Failure> {
        let mut may_repeat = true;
        loop {
            let endpoint = self.bucket_endpoint(bucket)?;
            let presigner = self.presigner(&endpoint).await?;
            let target = presigner.target(&endpoint.path(key));
            let sent = self.transport().send(
                endpoint.endpoint(),
                Method::GET,
                &target,
                headers.clone(),
                Bytes::new(),
            );
            let answer = sent.await?;
            self.note_features(&answer.headers);
            // Stores answer so to a signature that has ended on its way.
            let may_have_ended = answer.status == StatusCode::FORBIDDEN && has_ended(presigner.validity());
            if !(is_about_signature(answer.status) || may_have_ended) {
                endpoint.observe_answer(answer.status, answer.header(BUCKET_REGION));
                return Ok(answer);
            }
            let refusal = answer.refusal().await;
            let has_changed = self.has_other_signature(&endpoint, presigner.validity(), &refusal)?;
            if !(has_changed && std::mem::take(&mut may_repeat)) {
                return Err(Failure::Refused(refusal));
            }
        }
    }

    /// Whether a request may succeed with another signature, after one that was signed for `used` with this `validity` was refused. Adopts the
    /// region that the refusal names, and forgets credentials that have ended.
    fn has_other_signature(
        &self,
        used: &BucketEndpoint,
        validity: &Validity,
        refusal: &Refusal,
    ) -> Result<bool> {
        let region = refusal.region.as_deref();
        Ok(self.learn_region(used, refusal.status, region)? || self.may_sign_again(validity, &refusal.code))
    }

    /// Sends a signed GET to the store and waits for the head of a successful answer.
    pub(crate) async fn open(&self, bucket: &str, key: &str, headers: HeaderMap) -> Result<Answer, Failure> {
        successful(self.send_get(bucket, key, headers).await?).await
    }
}

/// Whether an answer with this status is about the region or the credentials of a signature, and has no other use.
fn is_about_signature(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::MOVED_PERMANENTLY | StatusCode::TEMPORARY_REDIRECT | StatusCode::BAD_REQUEST
    )
}

async fn successful(answer: Answer) -> Result<Answer, Failure> {
    if answer.status.is_success() {
        Ok(answer)
    } else {
        Err(Failure::Refused(answer.refusal().await))
    }
}
