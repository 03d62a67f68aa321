//! Receives values: counts and checks them, and runs the rest of the pipeline on them.

mod slot;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use pushdown::{
    Context, Sample,
    plan::Stage,
    wire::{Row, RowError},
};
use pushdown_exec::sync::Mutex;

use self::slot::{Arrival, FinishedRow, Slot};
use super::{BatchJob, Session};
use crate::{
    epoch::order::SampleRef,
    error::{Error, Result},
    planning::{Event, InFlight, ReceivedValue, arrived_stage},
    sample_name::draw_id,
    stats::add,
    value_cache::{CachedValue, Claim},
};

/// The rows of a batch while they arrive.
#[derive(Debug)]
pub(super) struct Intake<'a> {
    session: &'a Arc<Session>,
    job: &'a BatchJob,
    slots: Mutex<Vec<Slot>>,
    /// Claims of values that have not arrived, by slot.
    claims: Mutex<BTreeMap<usize, Claim>>,
    /// Errors of rows that the store refuses to the gateway, by slot.
    refusals: Mutex<BTreeMap<usize, RowError>>,
    arrived: AtomicUsize,
    /// Set in [`Mode::Auto`](super::Mode::Auto).
    in_flight: Option<InFlight<'a>>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(session: &'a Arc<Session>, job: &'a BatchJob) -> Self {
        let in_flight = session.adapter.as_ref().map(|adapter| {
            let stored = |sample: &SampleRef| session.objects.bytes(sample.index);
            let stages = job.routes.stages(session.pipeline.len());
            adapter.track_batch(job.samples.iter().map(stored).zip(stages))
        });
        Self {
            session,
            job,
            slots: Mutex::new(job.samples.iter().map(|_| Slot::Missing).collect()),
            claims: Mutex::default(),
            refusals: Mutex::default(),
            arrived: AtomicUsize::new(0),
            in_flight,
        }
    }

    /// Records that the job's route of a sample has changed.
    pub(super) fn reroute(&self, slot: usize) {
        if let Some(in_flight) = &self.in_flight {
            in_flight.reroute(slot, self.job.routes.get(slot).stage(self.session.pipeline.len()));
        }
    }

    /// The slots without a value or an error so far.
    pub(super) fn missing(&self) -> Vec<usize> {
        let missing = |(slot, state)| matches!(state, &Slot::Missing).then_some(slot);
        self.slots.lock().iter().enumerate().filter_map(missing).collect()
    }

    /// Takes a row of a gateway's answer for `slot`.
    ///
    /// # Errors
    /// If the row is invalid: a duplicate, or a kind of value that its stage cannot have.
    pub(super) fn row(&self, slot: usize, row: Row) -> Result<()> {
        match row.value {
            Ok(_) if self.session.warm.is_some() => self.warmed(slot, &row),
            Ok(sample) => {
                if !self.session.pipeline.accepts(usize::from(row.stage), &sample) {
                    let kind = pushdown::Kind::from(&sample);
                    return Err(Error::protocol(format!(
                        "invalid row from the gateway: found {kind} at stage {}",
                        row.stage
                    )));
                }
                let stage = arrived_stage(row.stage.into(), &sample);
                if stage == Stage::CroppedJpeg && !self.job.routes.get(slot).is_cropped {
                    return Err(Error::protocol(
                        "invalid row from the gateway: found a cropped JPEG that was not requested",
                    ));
                }
                if let Some(adapter) = &self.session.adapter {
                    let sample_ref = self.job.samples[slot];
                    let stored = self.session.objects.bytes(sample_ref.index);
                    let value = ReceivedValue {
                        stage,
                        bytes: sample.bytes(),
                        seconds: row.seconds,
                        cache: row.cache,
                    };
                    adapter.observe(Event::ValueReceived {
                        stored,
                        requested: self.job.routes.get(slot).stage(self.session.pipeline.len()),
                        value,
                        hash_fraction: self.session.objects.hash_fraction(sample_ref.index),
                    });
                }
                self.value(slot, row.stage, sample, row.columns)?;
                self.session.counters.count_gateway_value(stage, row.cache);
                Ok(())
            }
            Err(error) => self.failed(slot, error),
        }
    }

    /// Takes a row whose value the gateway was to cache, and has not sent.
    fn warmed(&self, slot: usize, row: &Row) -> Result<()> {
        self.check_empty(slot)?;
        let counters = &self.session.counters;
        let stored = row.stored.unwrap_or(false);
        add(
            if stored {
                &counters.warmed
            } else {
                &counters.not_warmed
            },
            1,
        );
        counters.count_gateway_value(Stage::after(row.stage.into()), row.cache);
        let nothing = Sample::Bytes(Bytes::new());
        let arrival = Arrival {
            stage: row.stage,
            columns: Vec::new(),
        };
        self.arrived(slot, Slot::Done(Ok(nothing), arrival));
        Ok(())
    }

    /// Takes a value that has arrived at a stage, with the contents of the further columns.
    pub(super) fn value(
        &self,
        slot: usize,
        stage: u8,
        sample: Sample,
        columns: Vec<Option<Bytes>>,
    ) -> Result<()> {
        self.check_empty(slot)?;
        let bytes = sample.bytes();
        let stored = self.session.objects.bytes(self.job.samples[slot].index);
        add(&self.session.counters.value_bytes, bytes);
        add(
            &self.session.counters.stored_bytes,
            stored.unwrap_or(match sample {
                Sample::Bytes(_) if stage == 0 => bytes,
                _ => 0,
            }),
        );
        self.begin(slot, sample, Arrival { stage, columns }, false)
    }

    /// Takes a value from the value cache.
    pub(super) fn cached(&self, slot: usize, stage: u8, cached: CachedValue) -> Result<()> {
        add(&self.session.counters.cache_hits, 1);
        let CachedValue { value, columns } = cached;
        self.begin(slot, value, Arrival { stage, columns }, true)
    }

    /// Records that the store refuses a sample to the gateway. If it arrives by another route, the gateway counts as refused.
    pub(super) fn refused_to_gateway(&self, slot: usize, error: RowError) {
        self.refusals.lock().insert(slot, error);
    }

    /// Holds the claim of a slot's value until the value is stored, or will not be.
    pub(super) fn claim(&self, slot: usize, claim: Claim) {
        self.claims.lock().insert(slot, claim);
    }

    fn begin(&self, slot: usize, sample: Sample, arrival: Arrival, is_cached: bool) -> Result<()> {
        self.check_empty(slot)?;
        let claim = self.claims.lock().remove(&slot);
        let refusal = self.refusals.lock().remove(&slot);
        let bytes = sample.bytes();
        let index = self.job.samples[slot].index;
        if let Some(error) = refusal {
            self.session.observe_refused_gateway(index, &error);
        }
        if let Some(charge) = &self.job.charge {
            charge.adjust(bytes.saturating_add(arrival.column_bytes()), 0);
        }
        let steps = usize::from(arrival.stage)..self.session.pipeline.len();
        let is_new = !is_cached && self.session.should_cache(index, arrival.stage);
        let arrived = if steps.is_empty() && !is_new {
            Slot::Done(Ok(sample), arrival)
        } else {
            let (session, charge, epoch) =
                (Arc::clone(self.session), self.job.charge.clone(), self.job.epoch);
            let columns = if is_new {
                arrival.columns.clone()
            } else {
                Vec::new()
            };
            let work = self.session.cpu.run_for(self.job.number, move || {
                let id = draw_id(session.objects.object(index));
                let context = Context {
                    seed: session.seed,
                    epoch: Some(epoch),
                    limits: session.limits,
                    ..Context::new(&id)
                };
                let value = if is_new {
                    session.run_and_cache(index, steps, (sample, &columns), claim, &context)
                } else {
                    drop(claim);
                    session.run_steps(index, steps, sample, &context)
                };
                let value = value.map_err(|error| RowError::from(&error));
                if let Some(charge) = charge {
                    charge.adjust(value.as_ref().map_or(0, Sample::bytes), bytes);
                }
                value
            });
            Slot::Running(work, arrival)
        };
        self.arrived(slot, arrived);
        Ok(())
    }

    fn arrived(&self, slot: usize, arrived: Slot) {
        self.slots.lock()[slot] = arrived;
        if 2 * (self.arrived.fetch_add(1, Ordering::Relaxed) + 1) >= self.job.samples.len() {
            self.job.progress.allow_next();
        }
        if let Some(in_flight) = &self.in_flight {
            in_flight.end(slot);
        }
    }

    /// Records that a sample will not arrive.
    pub(super) fn failed(&self, slot: usize, error: RowError) -> Result<()> {
        self.check_empty(slot)?;
        self.claims.lock().remove(&slot);
        self.arrived(slot, Slot::Done(Err(error), Arrival::nothing(self.columns())));
        Ok(())
    }

    fn check_empty(&self, slot: usize) -> Result<()> {
        match self.slots.lock().get(slot) {
            Some(Slot::Missing) => Ok(()),
            _ => Err(Error::protocol(
                "invalid row from the gateway: a duplicate, or one that was not requested",
            )),
        }
    }

    /// Waits until the suffix of every row has run.
    pub(super) async fn finish(self) -> Vec<FinishedRow> {
        let slots = std::mem::take(&mut *self.slots.lock());
        let mut rows = Vec::with_capacity(slots.len());
        for slot in slots {
            rows.push(slot.finish(self.columns()).await);
        }
        rows
    }

    /// Number of further columns.
    fn columns(&self) -> usize {
        self.session.objects.columns().len()
    }
}
