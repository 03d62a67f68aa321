//! Where values arrive: counted, checked, and sent through the rest of the pipeline.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use pushdown::{
    Context, Sample,
    wire::{Row, RowError, Split},
};

use super::{Job, Session};
use crate::{
    adapt::{Awaited, Came},
    cpu::Work,
    error::{Error, Result},
    order::Place,
    stats::add,
};

/// The rows of a batch while they arrive.
#[derive(Debug)]
pub(super) struct Intake<'a> {
    session: &'a Arc<Session>,
    job: &'a Job,
    slots: Mutex<Vec<Slot>>,
    arrived: AtomicUsize,
    /// In [`Mode::Auto`](super::Mode::Auto).
    awaited: Option<Awaited<'a>>,
}

#[derive(Debug)]
enum Slot {
    Missing,
    Running(u8, Work<Result<Sample, RowError>>),
    Done(u8, Result<Sample, RowError>),
}

impl<'a> Intake<'a> {
    pub(super) fn new(session: &'a Arc<Session>, job: &'a Job) -> Self {
        let sample = |place: &Place| {
            let split = session.split_of(*place, job.assignment.as_deref());
            (session.objects[place.index].bytes, split)
        };
        let awaited = session
            .adapter
            .as_ref()
            .map(|adapter| adapter.awaits(job.places.iter().map(sample)));
        Self {
            session,
            job,
            slots: Mutex::new(job.places.iter().map(|_| Slot::Missing).collect()),
            arrived: AtomicUsize::new(0),
            awaited,
        }
    }

    /// These slots go as `job` has them, which is this one with another assignment.
    pub(super) fn go(&self, slots: &[usize], job: &Job) {
        for slot in slots {
            let split = self
                .session
                .split_of(job.places[*slot], job.assignment.as_deref());
            if let Some(awaited) = &self.awaited {
                awaited.goes(*slot, split);
            }
        }
    }

    /// The slots that nothing has arrived for.
    pub(super) fn missing(&self) -> Vec<usize> {
        let missing = |(slot, state)| matches!(state, &Slot::Missing).then_some(slot);
        self.slots.lock().iter().enumerate().filter_map(missing).collect()
    }

    /// Takes a row of a gateway's answer that belongs to `slot`, asked for up to a stage.
    ///
    /// # Errors
    /// When the row cannot be right: there twice, or at a stage where no such value can stand.
    pub(super) fn row(&self, slot: usize, asked: Split, row: Row) -> Result<()> {
        match row.value {
            Ok(sample) => {
                if !self.session.pipeline.accepts(usize::from(row.stage), &sample) {
                    let kind = pushdown::Kind::from(&sample);
                    return Err(Error::protocol(format!(
                        "the gateway sent {kind} at stage {}",
                        row.stage
                    )));
                }
                if let Some(adapter) = &self.session.adapter {
                    let place = self.job.places[slot];
                    let stored = self.session.objects[place.index].bytes;
                    let came = Came {
                        stage: row.stage,
                        bytes: sample.bytes(),
                        seconds: row.seconds,
                    };
                    adapter.gateway(stored, asked, came);
                }
                self.value(slot, row.stage, sample)
            }
            Err(error) => self.failed(slot, error),
        }
    }

    /// A value at a stage has arrived.
    pub(super) fn value(&self, slot: usize, stage: u8, sample: Sample) -> Result<()> {
        self.check_empty(slot)?;
        let bytes = sample.bytes();
        let object = &self.session.objects[self.job.places[slot].index];
        add(&self.session.counters.value_bytes, bytes);
        add(
            &self.session.counters.stored_bytes,
            object.bytes.unwrap_or(if stage == 0 { bytes } else { 0 }),
        );
        self.begin(slot, stage, sample, false)
    }

    /// A value that was kept.
    pub(super) fn kept(&self, slot: usize, stage: u8, sample: Sample) -> Result<()> {
        add(&self.session.counters.kept, 1);
        self.begin(slot, stage, sample, true)
    }

    fn begin(&self, slot: usize, stage: u8, sample: Sample, kept: bool) -> Result<()> {
        self.check_empty(slot)?;
        let bytes = sample.bytes();
        let index = self.job.places[slot].index;
        if let Some(charge) = &self.job.charge {
            charge.hold(bytes, 0);
        }
        let steps = usize::from(stage)..self.session.pipeline.len();
        let keeps = !kept && self.session.keeps_from(index, stage);
        let arrived = if steps.is_empty() && !keeps {
            Slot::Done(stage, Ok(sample))
        } else {
            let (session, charge, epoch) =
                (Arc::clone(self.session), self.job.charge.clone(), self.job.epoch);
            let work = self.session.cpu.run_for(self.job.number, move || {
                let context = Context {
                    seed: session.seed,
                    epoch: Some(epoch),
                    limits: session.limits,
                    ..Context::new(session.objects[index].key.as_bytes())
                };
                let value = if keeps {
                    session.run_and_keep(index, steps, sample, &context)
                } else {
                    session.run_steps(index, steps, sample, &context)
                };
                let value = value.map_err(|error| RowError::from(&error));
                if let Some(charge) = charge {
                    charge.hold(value.as_ref().map_or(0, Sample::bytes), bytes);
                }
                value
            });
            Slot::Running(stage, work)
        };
        self.arrived(slot, arrived);
        Ok(())
    }

    fn arrived(&self, slot: usize, arrived: Slot) {
        self.slots.lock()[slot] = arrived;
        if 2 * (self.arrived.fetch_add(1, Ordering::Relaxed) + 1) >= self.job.places.len() {
            self.job.progress.half();
        }
        if let Some(awaited) = &self.awaited {
            awaited.ended(slot);
        }
    }

    /// A sample will not arrive.
    pub(super) fn failed(&self, slot: usize, error: RowError) -> Result<()> {
        self.check_empty(slot)?;
        self.arrived(slot, Slot::Done(0, Err(error)));
        Ok(())
    }

    fn check_empty(&self, slot: usize) -> Result<()> {
        match self.slots.lock().get(slot) {
            Some(Slot::Missing) => Ok(()),
            _ => Err(Error::protocol(
                "the gateway sent a row twice, or one that was not asked for",
            )),
        }
    }

    /// Waits for the suffix of every row.
    pub(super) async fn finish(self) -> Vec<(u8, Result<Sample, RowError>)> {
        let slots = self.slots.into_inner();
        let mut rows = Vec::with_capacity(slots.len());
        for slot in slots {
            rows.push(match slot {
                Slot::Done(stage, value) => (stage, value),
                Slot::Running(stage, work) => {
                    let value = work
                        .await
                        .unwrap_or_else(|error| Err(internal(&error.to_string())));
                    (stage, value)
                }
                Slot::Missing => (0, Err(internal("nothing arrived"))),
            });
        }
        rows
    }
}

fn internal(message: &str) -> RowError {
    RowError::new(pushdown::ErrorKind::Internal.code(), message)
}
