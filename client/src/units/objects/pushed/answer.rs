//! One batch request and its answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    time::Duration,
};

use futures::FutureExt as _;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use pushdown::wire::{self, BatchReader, CachedRatios, RowError};
use pushdown_s3::is_transient_code;
use tokio::time::Instant;

use super::{
    features::{KnownFeatures, lacks_crops},
    read::PushedRead,
    refusals::{batch_refused, check_columns, is_forbidden, not_a_gateway},
    request::batch_post,
};
use crate::{
    error::{Error, ErrorKind, Result},
    measure::GatewayCpus,
    planning::{Adapter, ArrivingAnswer},
    store::BatchAnswer,
    transport::{Answer, listed_features},
};

/// Content type of the answer.
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The outcome of a request without a permanent error.
pub(super) enum Attempted {
    /// Every row has arrived, with a value or an error.
    Complete,
    /// Some rows are missing.
    Partial(Error, Option<Duration>),
    /// The gateway may run fewer steps than it was asked for. Nothing of its answer was taken.
    Limited,
}

/// Failed samples by slot.
#[derive(Debug, Default)]
pub(super) struct RowFailures {
    /// Errors that may pass with a retry.
    pub(super) transient: BTreeMap<usize, RowError>,
    /// Samples that the gateway cannot compute, but this host may.
    pub(super) left_to_host: BTreeSet<usize>,
}

impl PushedRead<'_> {
    /// Requests the samples of `slots` once and takes the rows of the answer.
    pub(super) async fn attempt(&mut self, slots: &[usize], failures: &mut RowFailures) -> Result<Attempted> {
        let (session, job) = (self.session, self.job);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(ARROW));
        let features = match self.features().await? {
            KnownFeatures::Usable(features) => features,
            KnownFeatures::Ended(attempted) => return Ok(attempted),
        };
        if lacks_crops(job, slots, &features) {
            return Ok(self.without_crops());
        }
        let demand = session.demand_on(&self.replica);
        let write = |signer, features| batch_post(session, job, slots, (signer, features), demand.clone());
        let bucket = session.objects.bucket();
        let _pending = session.adapter.as_ref().map(Adapter::begin_batch);
        let _pending_here = session.replica_use.begin(&self.replica);
        let sent = session
            .store
            .send_batch(&self.replica, bucket, headers, features, write);
        let BatchAnswer { answer, validity } = self.wait_for(sent).await?;
        if !answer.status.is_success() {
            let listed = listed_features(&answer.headers);
            // The gateway was replaced by an older one.
            if let Some(listed) = &listed
                && let Some(ended) = self.lacking(listed)?
            {
                return Ok(ended);
            }
            if listed.is_some_and(|listed| lacks_crops(job, slots, &listed)) {
                return Ok(self.without_crops());
            }
            let has_features = answer.headers.contains_key(wire::header::FEATURES);
            let refusal = self.wait_for(async { Ok(answer.refusal().await) }).await?;
            let refused = batch_refused(session, refusal, has_features);
            return self.fail_or_fall_back(refused);
        }
        job.progress.mark_answered();
        let is_arrow = answer
            .header(CONTENT_TYPE.as_str())
            .is_some_and(|content_type| content_type.starts_with(ARROW));
        let cpus = GatewayCpus::from_headers(&answer.headers);
        session.observe_answer_of(&self.replica, cpus, cached_ratios(&answer));
        let engine = answer.header(wire::header::ENGINE);
        if engine.is_some_and(|engine| self.is_limited_by_engine(slots, engine)) {
            return Ok(Attempted::Limited);
        }
        // A proxy may drop the engine header; the stream names the engine, too.
        if !is_arrow {
            return self.fail_or_fall_back(Err(not_a_gateway(session, "its answer is not an Arrow stream")));
        }
        self.read_rows(slots, BatchAnswer { answer, validity }, failures)
            .await
    }

    /// Takes the rows of an answer until its end.
    async fn read_rows(
        &mut self,
        slots: &[usize],
        answered: BatchAnswer,
        failures: &mut RowFailures,
    ) -> Result<Attempted> {
        let (session, job, intake) = (self.session, self.job, self.intake);
        let BatchAnswer { mut answer, validity } = answered;
        // A signature can end while its sample waits at the gateway.
        let may_sign_again = |code: &str| {
            let validity = validity.as_ref();
            validity.is_some_and(|validity| session.store.may_sign_again(validity, code))
        };
        let mut arriving = session.adapter.as_ref().and_then(Adapter::begin_answer);
        let mut reader = match session.warm {
            Some(_) => BatchReader::without_values(session.limits),
            None => BatchReader::new(session.limits),
        };
        let (mut taken, mut engine_checked) = (0, false);
        let mut waited = Duration::ZERO;
        loop {
            if let Some(charge) = &job.charge
                && charge.wait_for_room().now_or_never().is_none()
            {
                arriving.iter_mut().for_each(ArrivingAnswer::pause);
                charge.wait_for_room().await;
            }
            let began = Instant::now();
            let Some(chunk) = self.wait_for(answer.chunk()).await? else {
                break;
            };
            waited += began.elapsed();
            let chunk_bytes = chunk.len() as u64;
            let rows = reader.push(chunk)?;
            if let Some(arriving) = &mut arriving {
                arriving.on_chunk(chunk_bytes, !rows.is_empty(), reader.is_within_row());
            }
            // The stream states the engine at its start: check it once.
            if let Some(engine) = reader
                .engine()
                .filter(|_| !mem::replace(&mut engine_checked, true))
                && self.is_limited_by_engine(slots, engine)
            {
                return Ok(Attempted::Limited);
            }
            if !rows.is_empty() {
                self.replica.health().observe_rows(mem::take(&mut waited));
                check_columns(session, reader.column_names().unwrap_or_default())?;
            }
            for row in rows {
                let slot = *usize::try_from(row.row)
                    .ok()
                    .and_then(|row| slots.get(row))
                    .ok_or_else(|| {
                        Error::protocol(format!(
                            "invalid row {} from the gateway: expected less than {}",
                            row.row,
                            slots.len()
                        ))
                    })?;
                taken += 1;
                let is_first = match row.value {
                    Err(error) if may_sign_again(&error.code) || is_transient_code(&error.code) => {
                        failures.transient.insert(slot, error).is_none()
                    }
                    Err(error) if session.adapter.is_some() => {
                        if is_forbidden(&error.code) && session.is_gateway_dispensable() {
                            intake.refused_to_gateway(slot, error);
                        }
                        session.observe_arrival(&mut self.in_flight);
                        failures.left_to_host.insert(slot)
                    }
                    _ => {
                        session.observe_arrival(&mut self.in_flight);
                        let is_delivered = row.value.is_ok();
                        intake.row(slot, row)?;
                        if is_delivered {
                            self.in_flight.count_delivered();
                        }
                        true
                    }
                };
                if !is_first {
                    return Err(Error::protocol("the gateway sent the error of a row twice"));
                }
            }
        }
        let broke_off = |text: String| Error::new(ErrorKind::Interrupted, text);
        reader.finish().map_err(|error| broke_off(error.to_string()))?;
        if taken < slots.len() {
            return Err(broke_off(format!(
                "the answer ended after {taken} of {} rows",
                slots.len()
            )));
        }
        Ok(Attempted::Complete)
    }
}

/// What an answer states about the gateway's result cache; nothing if it has none.
fn cached_ratios(answer: &Answer) -> CachedRatios {
    let text = answer.header(wire::header::CACHED_RATIO);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}
