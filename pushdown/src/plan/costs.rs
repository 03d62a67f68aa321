//! What tiers there are, and what a sample costs them.

use std::iter::Sum;

/// What there is to work with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiers {
    /// Cores of the gateway that are free for this reader; 0 for none.
    pub gateway_cores: f64,
    /// Seconds in which those cores, all of them together, have something else to do for each sample than steps, whichever way
    /// it goes: for the store beside the gateway, say. Not where both sides [share](Self::shared) theirs.
    pub beside_steps: f64,
    /// Bytes per second from gateway to host; infinite where it was never the bound.
    pub link_bytes: f64,
    /// Cores of the host that are free for steps.
    pub host_cores: f64,
    /// Seconds that the trainer takes for one sample.
    pub trainer_seconds: f64,
    /// Whether gateway and host are the same machine: their work adds up, on the cores of the host.
    pub shared: bool,
}

/// What one way of a sample costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Steps that the gateway runs; 0 to read the object as it is.
    pub stage: usize,
    /// Bytes of the value at that stage.
    pub bytes: f64,
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
    /// Bytes of weights that the host still has to fetch for this, once.
    pub weights: f64,
    /// What either side still has to do for this, once.
    pub loading: Loading,
}

/// CPU seconds to have layers in memory that have not run yet: those of each cut are made by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Loading {
    /// At the gateway.
    pub gateway_seconds: f64,
    /// On the host.
    pub host_seconds: f64,
}

/// What is not where it is needed yet, for samples to go other ways than they did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Lacking {
    /// Bytes of weights that the host would fetch to run models.
    pub weights: f64,
    /// What either side would load for a way, by its stage; nothing behind the last one told.
    pub loading: Vec<Loading>,
}

/// Samples that are alike: of about the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its share of the samples; those of all classes add up to 1.
    pub share: f64,
    /// Every way that its samples can go. One has stage 0.
    pub candidates: Vec<Candidate>,
}

/// What a plan may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// A value has at most so many times the bytes of its object.
    pub max_expand: f64,
    /// Samples that are still to come, over which weights are spread.
    pub samples_left: f64,
    /// Samples that the trainer takes at once: it waits for all of its first ones. 0 where it takes them as they come.
    pub batch_size: f64,
    /// Weights that the host lacks are being fetched, whatever the plan: they cost nothing more.
    pub weights_on_their_way: bool,
    /// What the tiers have to do before any of those samples.
    pub under_way: UnderWay,
}

/// What was asked for and has not come: a plan goes on from there.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UnderWay {
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// Bytes on the link.
    pub bytes: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
}

/// What limits an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The gateway's CPU.
    Gateway,
    /// The link from gateway to host.
    Link,
    /// The host's CPU.
    Host,
    /// The training itself: nothing is to be gained.
    Trainer,
}

/// What each tier needs for a sample on average, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The gateway, all of its cores together.
    pub gateway: f64,
    /// The link.
    pub link: f64,
    /// The host, all of its cores together.
    pub host: f64,
    /// The trainer.
    pub trainer: f64,
}

// === impl Loading ===

impl Sum for Loading {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            gateway_seconds: sum.gateway_seconds + next.gateway_seconds,
            host_seconds: sum.host_seconds + next.host_seconds,
        })
    }
}

// === impl Candidate ===

impl Candidate {
    /// Whether either side has layers to load for it.
    pub(super) fn loads(&self) -> bool {
        self.loading != Loading::default()
    }
}

// === impl Rules ===

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_expand: 1.0,
            samples_left: f64::INFINITY,
            batch_size: 0.0,
            weights_on_their_way: false,
            under_way: UnderWay::default(),
        }
    }
}

impl Rules {
    /// The part of what is left that is the trainer's first batch, and its last.
    fn batch(&self) -> f64 {
        (self.batch_size / self.samples_left.max(1.0)).min(1.0)
    }

    /// Seconds for each sample that is left, where those before the trainer take so many and the trainer so many: it waits for
    /// its first batch, and has its last one before it when they are done.
    pub(super) fn paced(&self, tiers: f64, trainer: f64) -> f64 {
        tiers.max(trainer) + self.batch() * tiers.min(trainer)
    }

    /// The most seconds that those before the trainer may take for a sample to be [paced](Self::paced) at so many.
    pub(super) fn most(&self, seconds: f64, trainer: f64) -> f64 {
        let batch = self.batch();
        if seconds >= trainer * (1.0 + batch) {
            seconds - batch * trainer
        } else {
            (seconds - trainer) / batch
        }
    }
}

// === impl Load ===

impl Load {
    /// What the slowest tier needs: seconds per sample.
    pub fn seconds(&self) -> f64 {
        self.before_trainer().max(self.trainer)
    }

    /// What the slowest tier but the trainer needs.
    pub(super) fn before_trainer(&self) -> f64 {
        self.gateway.max(self.link).max(self.host)
    }

    /// The slowest tier; of equal ones the last.
    pub fn bound(&self) -> Bound {
        let seconds = self.seconds();
        if self.trainer >= seconds {
            Bound::Trainer
        } else if self.host >= seconds {
            Bound::Host
        } else if self.link >= seconds {
            Bound::Link
        } else {
            Bound::Gateway
        }
    }
}

// === impl Tiers ===

impl Tiers {
    /// What one sample takes of each tier when it goes this way.
    pub(super) fn load(&self, candidate: &Candidate) -> Load {
        let (gateway, host) = (candidate.gateway_seconds, candidate.host_seconds);
        let (gateway, host) = if self.shared {
            (0.0, (gateway + host) / self.host_cores)
        } else {
            (
                if gateway > 0.0 {
                    gateway / self.gateway_cores
                } else {
                    0.0
                },
                host / self.host_cores,
            )
        };
        Load {
            gateway,
            link: candidate.bytes / self.link_bytes,
            host,
            trainer: self.trainer_seconds,
        }
    }

    /// Seconds that the first sample takes on this way when no other is there: no more than a core of each side works on it.
    pub(super) fn alone(&self, candidate: &Candidate) -> f64 {
        let on = |seconds: f64, cores: f64| {
            if seconds > 0.0 {
                seconds / cores.min(1.0)
            } else {
                0.0
            }
        };
        let gateway_cores = if self.shared {
            self.host_cores
        } else {
            self.gateway_cores
        };
        let loading = candidate.loading;
        on(candidate.gateway_seconds + loading.gateway_seconds, gateway_cores)
            + candidate.bytes / self.link_bytes
            + on(candidate.host_seconds + loading.host_seconds, self.host_cores)
    }

    /// Seconds of each tier, for each sample that is left, to be done with what is under way, to load layers, and for what each
    /// sample takes whichever way it goes.
    pub(super) fn before(&self, loading: Loading, rules: &Rules) -> Load {
        let UnderWay {
            gateway_seconds,
            bytes,
            host_seconds,
        } = rules.under_way;
        let gateway_seconds = gateway_seconds + loading.gateway_seconds;
        let host_seconds = host_seconds + loading.host_seconds;
        let each = |seconds: f64| {
            if seconds > 0.0 {
                seconds / rules.samples_left.max(1.0)
            } else {
                0.0
            }
        };
        let load = self.load(&Candidate {
            stage: 0,
            bytes,
            gateway_seconds: if self.gateway_cores > 0.0 {
                gateway_seconds
            } else {
                0.0
            },
            host_seconds,
            weights: 0.0,
            loading: Loading::default(),
        });
        Load {
            gateway: each(load.gateway) + if self.shared { 0.0 } else { self.beside_steps },
            link: each(load.link),
            host: each(load.host),
            trainer: 0.0,
        }
    }

    /// Seconds of the link, for each sample that is left, to fetch so many bytes of weights.
    pub(super) fn fetching(&self, weights: f64, rules: &Rules) -> f64 {
        if rules.weights_on_their_way {
            return 0.0;
        }
        weights / rules.samples_left.max(1.0) / self.link_bytes
    }

    /// Whether the tiers can take a sample this way at all.
    pub(super) fn can(&self, candidate: &Candidate) -> bool {
        self.shared || self.gateway_cores > 0.0 || candidate.gateway_seconds <= 0.0
    }
}
