//! One epoch, event by event.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, BinaryHeap},
};

use super::{
    Job, Reading,
    queues::{Gateway, Host, Time},
};
use crate::plan::{Tiers, float};

/// An epoch while it runs.
pub(super) struct Epoch<'a> {
    tiers: &'a Tiers,
    jobs: &'a [Job],
    reading: Reading,
    /// What comes, the soonest first, and what is told of first of what comes at the same time.
    events: BinaryHeap<Reverse<(Time, usize, Event)>>,
    told: usize,
    gateway: Gateway,
    host: Host,
    /// When the link has brought all that was sent.
    link: Time,
    /// Samples to be read as they are stored: those of the oldest batch come first.
    waiting: BTreeSet<usize>,
    free_gets: usize,
    batches: Vec<Batch>,
    begun: usize,
    on_their_way: usize,
}

/// What happens to a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Sent(usize),
    Came(usize),
    Ran(usize),
}

/// What is on its way of a batch.
#[derive(Debug, Default)]
struct Batch {
    size: usize,
    /// By gateway, and as they are stored.
    ways: [usize; 2],
    came: [usize; 2],
    ran: usize,
    ready: f64,
}

// === impl Epoch ===

impl<'a> Epoch<'a> {
    pub(super) fn new(tiers: &'a Tiers, jobs: &'a [Job], reading: Reading) -> Self {
        let batch = |jobs: &[Job]| {
            let plain = jobs.iter().filter(|job| job.plain).count();
            Batch {
                size: jobs.len(),
                ways: [jobs.len() - plain, plain],
                ..Batch::default()
            }
        };
        Self {
            tiers,
            jobs,
            reading,
            events: BinaryHeap::new(),
            told: 0,
            gateway: Gateway::new(tiers.gateway_cores),
            host: Host::new(tiers.host_cores),
            link: Time(0.0),
            waiting: BTreeSet::new(),
            free_gets: reading.gets.get(),
            batches: jobs.chunks(reading.batch.get()).map(batch).collect(),
            begun: 0,
            on_their_way: 0,
        }
    }

    /// Runs it to its end.
    pub(super) fn seconds(mut self) -> f64 {
        self.begin(Time(0.0));
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Sent(job) => {
                    let seconds = self.jobs[job].bytes / self.tiers.link_bytes;
                    self.link = Time(self.link.0.max(now.0) + seconds);
                    self.tell(self.link, Event::Came(job));
                }
                Event::Came(job) => self.came(now, job),
                Event::Ran(job) => self.ran(now, job),
            }
        }
        self.batches.iter().fold(0.0, |trained: f64, batch| {
            trained.max(batch.ready) + self.tiers.trainer_seconds * float(batch.size as u64)
        })
    }

    fn tell(&mut self, at: Time, event: Event) {
        self.events.push(Reverse((at, self.told, event)));
        self.told += 1;
    }

    /// Asks for the batches that may be on their way.
    fn begin(&mut self, now: Time) {
        while self.begun < self.batches.len()
            && self.on_their_way < self.reading.batches.get()
            && self
                .begun
                .checked_sub(1)
                .is_none_or(|before| self.batches[before].is_past_half())
        {
            let first = self.begun * self.reading.batch.get();
            let (plain, pushed): (Vec<_>, Vec<_>) =
                (first..first + self.batches[self.begun].size).partition(|job| self.jobs[*job].plain);
            self.waiting.extend(plain);
            self.get(now);
            for job in pushed {
                let made = self.gateway.run(now, self.beside_the_store(job));
                self.tell(made, Event::Sent(job));
            }
            self.begun += 1;
            self.on_their_way += 1;
        }
    }

    /// Asks for as many stored samples as may be read at a time.
    fn get(&mut self, now: Time) {
        while self.free_gets > 0
            && let Some(job) = self.waiting.pop_first()
        {
            self.free_gets -= 1;
            let sent = self.gateway.interrupt(now, self.beside_the_store(job));
            self.tell(sent, Event::Sent(job));
        }
    }

    /// Seconds that are spent before the link. Cores that are the host's are taken there, too.
    fn beside_the_store(&self, job: usize) -> f64 {
        if self.tiers.shared {
            0.0
        } else {
            self.jobs[job].gateway
        }
    }

    fn came(&mut self, now: Time, job: usize) {
        let plain = self.jobs[job].plain;
        if plain {
            self.free_gets += 1;
            self.get(now);
        }
        self.batches[job / self.reading.batch.get()].came[usize::from(plain)] += 1;
        self.host.waiting.insert(job);
        self.compute(now);
        self.begin(now);
    }

    /// Runs what has come, where a core is free.
    fn compute(&mut self, now: Time) {
        while self.host.free > 0
            && let Some(job) = self.host.waiting.pop_first()
        {
            self.host.free -= 1;
            let Job { gateway, host, .. } = self.jobs[job];
            let seconds = host + if self.tiers.shared { gateway } else { 0.0 };
            self.tell(now.after(seconds, self.host.speed), Event::Ran(job));
        }
    }

    fn ran(&mut self, now: Time, job: usize) {
        self.host.free += 1;
        self.compute(now);
        let batch = &mut self.batches[job / self.reading.batch.get()];
        batch.ran += 1;
        batch.ready = now.0;
        if batch.ran == batch.size {
            self.on_their_way -= 1;
            self.begin(now);
        }
    }
}

// === impl Batch ===

impl Batch {
    /// Half of it is there, or one way has nothing left to bring.
    fn is_past_half(&self) -> bool {
        let done =
            |way: usize| self.came[way] == self.ways[way] && self.ways[way] * Reading::PART >= self.size;
        2 * self.came.iter().sum::<usize>() >= self.size || done(0) || done(1)
    }
}
