//! Discrete-event simulation of one epoch.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use super::{
    ReadAhead, Replicas, SampleCost, SimulatedEpoch,
    queues::{Host, Network, Time},
    replicas::ReplicaQueues,
};
use crate::Tiers;
use pushdown_core::float;

/// The state of an epoch.
pub(super) struct Epoch<'a> {
    tiers: &'a Tiers,
    samples: &'a [SampleCost],
    read_ahead: ReadAhead,
    /// Future events by time. The number keeps simultaneous events in the order in which they were scheduled.
    events: BinaryHeap<Reverse<(Time, usize, Event)>>,
    scheduled: usize,
    gateway: ReplicaQueues<'a>,
    host: Host,
    network: Network,
    /// Plain samples that wait for a GET, the oldest batch first.
    waiting: BTreeSet<usize>,
    free_gets: usize,
    batches: Vec<Batch>,
    requested_batches: usize,
    batches_in_flight: usize,
    samples_in_flight: u64,
}

/// An event of the sample with this index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sent(usize),
    /// The path has delivered what was sent before.
    Flows(usize),
    Arrived(usize),
    Computed(usize),
}

/// The progress of a batch. Pairs are pushed and plain samples, in that order.
#[derive(Debug, Default)]
struct Batch {
    samples: usize,
    requested: [usize; 2],
    arrived: [usize; 2],
    computed: usize,
    ready_seconds: f64,
}

impl<'a> Epoch<'a> {
    pub(super) fn new(
        tiers: &'a Tiers,
        replicas: &'a Replicas,
        samples: &'a [SampleCost],
        read_ahead: ReadAhead,
    ) -> Self {
        let batch = |samples: &[SampleCost]| {
            let plain = samples.iter().filter(|sample| sample.is_plain).count();
            Batch {
                samples: samples.len(),
                requested: [samples.len() - plain, plain],
                ..Batch::default()
            }
        };
        Self {
            tiers,
            samples,
            read_ahead,
            events: BinaryHeap::new(),
            scheduled: 0,
            gateway: ReplicaQueues::new(replicas, samples.len()),
            host: Host::new(tiers.host_cores),
            network: Network::new(tiers),
            waiting: BTreeSet::new(),
            free_gets: read_ahead.concurrent_gets.get(),
            batches: samples
                .chunks(read_ahead.batch_samples.get())
                .map(batch)
                .collect(),
            requested_batches: 0,
            batches_in_flight: 0,
            samples_in_flight: 0,
        }
    }

    /// Runs the epoch.
    pub(super) fn run(mut self) -> SimulatedEpoch {
        self.request_batches(Time(0.0));
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Sent(sample) => match self.network.enter_path(now, &self.samples[sample]) {
                    Some(flows) => self.schedule(flows, Event::Flows(sample)),
                    None => self.cross_link(now, sample),
                },
                Event::Flows(sample) => self.cross_link(now, sample),
                Event::Arrived(sample) => self.on_arrived(now, sample),
                Event::Computed(sample) => self.on_computed(now, sample),
            }
        }
        let seconds = self.batches.iter().fold(0.0, |trained: f64, batch| {
            trained.max(batch.ready_seconds) + self.tiers.trainer_seconds * float(batch.samples as u64)
        });
        SimulatedEpoch {
            seconds,
            first_choice_ratio: self.gateway.first_choice_ratio(),
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.scheduled, event)));
        self.scheduled += 1;
    }

    /// Schedules the arrival of a sample that enters the link.
    fn cross_link(&mut self, now: Time, sample: usize) {
        let arrived = self.network.cross_link(now, &self.samples[sample]);
        self.schedule(arrived, Event::Arrived(sample));
    }

    /// Requests all batches that may be in flight.
    fn request_batches(&mut self, now: Time) {
        while self.requested_batches < self.batches.len()
            && self.batches_in_flight < self.read_ahead.batches_in_flight.get()
            && self.may_request_next()
        {
            let first = self.requested_batches * self.read_ahead.batch_samples.get();
            let count = self.batches[self.requested_batches].samples;
            let (plain, pushed): (Vec<_>, Vec<_>) =
                (first..first + count).partition(|sample| self.samples[*sample].is_plain);
            self.waiting.extend(plain);
            self.request_objects(now);
            self.gateway.place(&pushed);
            for sample in pushed {
                let computed = self.gateway.run(now, sample, self.gateway_seconds(sample));
                self.schedule(computed, Event::Sent(sample));
            }
            self.requested_batches += 1;
            self.batches_in_flight += 1;
            self.samples_in_flight += count as u64;
        }
    }

    /// Whether enough of the previous batch has arrived, or too few samples are in flight.
    fn may_request_next(&self) -> bool {
        let previous = self.requested_batches.checked_sub(1);
        previous.is_none_or(|previous| self.batches[previous].is_past_half())
            || self.samples_in_flight < self.read_ahead.min_samples_in_flight
    }

    /// Requests as many stored objects as may be read at a time.
    fn request_objects(&mut self, now: Time) {
        while self.free_gets > 0
            && let Some(sample) = self.waiting.pop_first()
        {
            self.free_gets -= 1;
            let sent = self.gateway.interrupt(now, sample, self.gateway_seconds(sample));
            self.schedule(sent, Event::Sent(sample));
        }
    }

    /// Seconds spent before the link. If the tiers share their cores, this work is part of the host's.
    fn gateway_seconds(&self, sample: usize) -> f64 {
        if self.tiers.shared {
            0.0
        } else {
            self.samples[sample].gateway_seconds
        }
    }

    fn on_arrived(&mut self, now: Time, sample: usize) {
        let is_plain = self.samples[sample].is_plain;
        if is_plain {
            self.free_gets += 1;
            self.request_objects(now);
        } else {
            self.gateway.arrive(sample);
        }
        self.batches[sample / self.read_ahead.batch_samples.get()].arrived[usize::from(is_plain)] += 1;
        self.samples_in_flight -= 1;
        self.host.waiting.insert(sample);
        self.compute(now);
        self.request_batches(now);
    }

    /// Starts waiting samples on the free cores of the host.
    fn compute(&mut self, now: Time) {
        while self.host.free_cores > 0
            && let Some(sample) = self.host.waiting.pop_first()
        {
            self.host.free_cores -= 1;
            let cost = &self.samples[sample];
            let gateway_seconds = if self.tiers.shared {
                cost.gateway_seconds
            } else {
                0.0
            };
            let computed = now.after(cost.host_seconds + gateway_seconds, self.host.speed);
            self.schedule(computed, Event::Computed(sample));
        }
    }

    fn on_computed(&mut self, now: Time, sample: usize) {
        self.host.free_cores += 1;
        self.compute(now);
        let batch = &mut self.batches[sample / self.read_ahead.batch_samples.get()];
        batch.computed += 1;
        batch.ready_seconds = now.0;
        if batch.computed == batch.samples {
            self.batches_in_flight -= 1;
            self.request_batches(now);
        }
    }
}

impl Batch {
    /// Whether half of the samples have arrived, or all samples of one kind that is part of the plan.
    fn is_past_half(&self) -> bool {
        let is_complete = |kind: usize| {
            self.arrived[kind] == self.requested[kind]
                && self.requested[kind] * ReadAhead::MIN_FRACTION_DENOMINATOR >= self.samples
        };
        2 * self.arrived.iter().sum::<usize>() >= self.samples || is_complete(0) || is_complete(1)
    }
}
