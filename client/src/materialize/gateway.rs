//! Parts that a gateway makes: this host only signs, and hears what becomes of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Weak},
};

use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use pushdown::wire::{
    BatchRequest, BatchSample, Features, MAX_PART_EVENT_BYTES, PartEvent, PartRequest, RefusedPart, header,
    is_changed_object,
};
use pushdown_exec::sync::Mutex;
use pushdown_s3::is_transient_code;

use super::{
    data_set::DataSet,
    maker::{Made, PartJob, Values},
    target::Target,
};
use crate::{
    error::{Error, ErrorKind, Result},
    sign::{BatchPost, BatchSigner, Validity, with_members},
    store::{BatchAnswer, Failure, Replica, Store},
    transport::{Answer, Refusal},
};

/// Parts that a replica makes at a time: one of them computes while the other one is written.
const PARTS_PER_REPLICA: usize = 2;
/// Most parts in flight.
const MAX_PARTS_IN_FLIGHT: usize = 64;

/// Makes parts by the replicas of a gateway.
#[derive(Debug)]
pub(super) struct GatewayMaker {
    store: Store,
    target: Target,
    data_set: DataSet,
    values: Values,
    /// Parts in flight at each replica.
    in_flight: Arc<Mutex<BTreeMap<Arc<str>, usize>>>,
    /// Ids of replicas that compute other values than the target has.
    others: Mutex<BTreeSet<Arc<str>>>,
}

/// A part in flight at a replica, until it is dropped.
struct PartInFlight {
    replica: Arc<Replica>,
    id: Arc<str>,
    counts: Weak<Mutex<BTreeMap<Arc<str>, usize>>>,
}

impl Drop for PartInFlight {
    fn drop(&mut self) {
        if let Some(counts) = self.counts.upgrade()
            && let Some(count) = counts.lock().get_mut(&self.id)
        {
            *count = count.saturating_sub(1);
        }
    }
}

impl GatewayMaker {
    /// A maker of parts of this data set.
    ///
    /// # Errors
    /// [`ErrorKind::NotAGateway`] for an old gateway, and for none.
    pub(super) async fn new(store: Store, target: Target, data_set: DataSet, values: Values) -> Result<Self> {
        store.check_has_gateway()?;
        let features = store.ask_for_features().await;
        let needed = [Features::PARTS]
            .into_iter()
            .chain((!store.is_same(&target.store)).then_some(Features::STORES));
        for feature in needed {
            if !features.has(feature) {
                let text = format!(
                    "{} cannot write parts of data sets to this target: its answers do not list the feature `{feature}`; use a newer gateway, or \
                     make the parts on this host (--local)",
                    store.gateway_name()
                );
                return Err(Error::new(ErrorKind::NotAGateway, text));
            }
        }
        Ok(Self {
            store,
            target,
            data_set,
            values,
            in_flight: Arc::default(),
            others: Mutex::default(),
        })
    }

    pub(super) async fn parts_in_flight(&self) -> Result<usize> {
        let replicas = self.store.replicas().await?.len();
        Ok((PARTS_PER_REPLICA * replicas).min(MAX_PARTS_IN_FLIGHT))
    }

    pub(super) async fn cores(&self) -> Result<f64> {
        let list = self.store.replicas().await?;
        Ok(list
            .iter()
            .filter_map(|replica| replica.cores())
            .sum::<f64>()
            .max(1.0))
    }

    pub(super) async fn max_part_bytes(&self) -> Result<Option<u64>> {
        let list = self.store.replicas().await?;
        Ok(list.iter().filter_map(|replica| replica.part_bytes()).min())
    }

    /// Has a replica make a part; another one if the first is lost.
    pub(super) async fn make(
        &self,
        job: &PartJob<'_>,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<(Made, String)> {
        let about = job.about(&self.target);
        let mut attempt = || async {
            let chosen = self.choose().await.map_err(Failure::from);
            let made = async {
                let chosen = chosen?;
                let replica = &chosen.replica;
                let attempt: BoxFuture<'_, _> = Box::pin(self.attempt(replica, job, progress));
                let made = replica.health().wait_for(attempt).await;
                if let Err(Failure::Lost(error)) = &made
                    && error.is_retryable()
                {
                    replica.health().after_failure().await;
                }
                made
            };
            made.await.map_err(|failure| failure.about(&about))
        };
        let made = self
            .store
            .gateway_retries(None, None)
            .complete(&mut attempt)
            .await;
        made.map_err(|failed| failed.error)
    }

    /// The replica with the fewest parts among those that serve.
    async fn choose(&self) -> Result<PartInFlight> {
        let list = self.store.replicas().await?;
        let mut counts = self.in_flight.lock();
        let count = |replica: &Arc<Replica>| counts.get(&replica.id()).copied().unwrap_or_default();
        let others = self.others.lock().clone();
        let serving = list
            .iter()
            .filter(|replica| list.is_usable(replica) && !others.contains(&replica.id()));
        let replica = serving.min_by_key(|replica| count(replica));
        let replica = Arc::clone(replica.unwrap_or_else(|| list.get(0)));
        let id = replica.id();
        *counts.entry(Arc::clone(&id)).or_default() += 1;
        drop(counts);
        Ok(PartInFlight {
            replica,
            id,
            counts: Arc::downgrade(&self.in_flight),
        })
    }

    async fn attempt(
        &self,
        replica: &Replica,
        job: &PartJob<'_>,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<(Made, String), Failure> {
        let bucket = self.data_set.objects.bucket();
        let features = self.store.known_features(replica).await?.unwrap_or_default();
        let write = |signer, _features| self.post(signer, job);
        let sent = self
            .store
            .send_batch(replica, bucket, HeaderMap::new(), features, write)
            .await?;
        let BatchAnswer { answer, validity } = sent;
        if answer.status == StatusCode::PRECONDITION_FAILED {
            // It gets no more parts. Another replica may still have the right version.
            self.others.lock().insert(replica.id());
            let refusal = answer.refusal().await;
            let list = self.store.replicas().await?;
            let has_others = list
                .iter()
                .any(|replica| !self.others.lock().contains(&replica.id()));
            let status = if has_others {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                refusal.status
            };
            return Err(Failure::Refused(Refusal { status, ..refusal }));
        }
        if !answer.status.is_success() {
            return Err(Failure::Refused(answer.refusal().await));
        }
        let engine = answer.header(header::ENGINE).unwrap_or_default().to_owned();
        let made = match self.last_event(answer, progress).await? {
            PartEvent::Written(written) => Made::Written(written),
            PartEvent::Refused(refused) => self.refused(refused, validity.as_ref(), job)?,
            PartEvent::Progress { .. } => return Err(incomplete().into()),
        };
        Ok((made, engine))
    }

    /// The last event of an answer.
    async fn last_event(
        &self,
        mut answer: Answer,
        progress: &(dyn Fn(u32) + Sync),
    ) -> Result<PartEvent, Failure> {
        let mut pending = Vec::new();
        while let Some(piece) = answer.chunk().await? {
            pending.extend_from_slice(&piece);
            while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = pending.drain(..=end).collect();
                let event = serde_json::from_slice(&line).map_err(|error| {
                    Error::protocol("the answer has no valid event of a part").with_source(error)
                })?;
                match event {
                    PartEvent::Progress { samples } => progress(samples),
                    last => return Ok(last),
                }
            }
            if pending.len() > MAX_PART_EVENT_BYTES {
                return Err(Error::protocol("the answer has an event of a part that is too long").into());
            }
        }
        Err(incomplete().into())
    }

    /// What a refusal means. One that can pass, or is about a signature that has ended, is a failure: the part is made again.
    fn refused(
        &self,
        refused: RefusedPart,
        validity: Option<&Validity>,
        job: &PartJob<'_>,
    ) -> Result<Made, Failure> {
        let code = &refused.code;
        let has_ended = validity.is_some_and(|validity| self.store.may_sign_again(validity, code));
        if has_ended || is_transient_code(code) {
            return Err(Failure::Refused(Refusal {
                status: StatusCode::SERVICE_UNAVAILABLE,
                message: format!("{}: {}", job.failed_action(&refused), refused.message),
                code: refused.code,
                retry_after: None,
                region: None,
            }));
        }
        Ok(if is_changed_object(code) && !refused.errors.is_empty() {
            Made::Changed(refused.errors)
        } else {
            Made::Refused(refused)
        })
    }

    async fn post(&self, signer: BatchSigner, job: &PartJob<'_>) -> Result<BatchPost> {
        let target = match job.name {
            Some(name) => {
                let key = self.target.key(name);
                let target = self.store.part_target(
                    &self.target.store,
                    &self.target.bucket,
                    &key,
                    signer.signs_request(),
                );
                Some(target.await?)
            }
            None => None,
        };
        let objects = &self.data_set.objects;
        let samples = job.samples.iter().map(|sample| {
            let signed = BatchSample {
                etag: Some(sample.etag.clone()),
                ..signer.sample(sample.object.key)
            };
            with_members(signed, objects, sample.index as usize)
        });
        let samples = samples.collect();
        let labels = job.samples.iter().map(|sample| self.data_set.label(sample.index));
        let Values {
            pipeline,
            seed,
            epoch,
            spec,
        } = &self.values;
        let part = PartRequest {
            format: spec.format,
            prefix: self.data_set.prefix.clone(),
            label: spec.label.clone(),
            labels: labels.flatten().collect(),
            engine: job.engine.map(str::to_owned),
            target,
        };
        let request = signer.request(pipeline.clone(), samples);
        let request = BatchRequest {
            seed: *seed,
            epoch: Some(*epoch),
            columns: spec.columns.clone(),
            part: Some(part),
            ..request
        };
        signer.post(&request, &Features::all())
    }
}

fn incomplete() -> Error {
    Error::new(
        ErrorKind::Interrupted,
        "the answer about a part ended before its last event",
    )
}
