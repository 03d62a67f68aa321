//! The tiers, and the cost of a sample on each of them.

use std::iter::Sum;

use super::{CacheHits, LaterEpochs, Stage};

/// The capacity of each tier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiers {
    /// Cores of the gateway that are free for this reader; 0 without a gateway.
    pub gateway_cores: f64,
    /// Seconds per sample, on all gateway cores together, of work other than steps, such as that of a store on the same
    /// machine; the same for every split. Ignored if gateway and host [share](Self::shared) their cores.
    pub background_seconds: f64,
    /// Bandwidth of the host's link, over which all bytes arrive; infinite if it never was the bottleneck.
    pub link_bytes_per_second: f64,
    /// The paths over which bytes arrive before they share the link; `None` if store and gateway have one address, so that the link is
    /// the only path.
    pub paths: Option<Paths>,
    /// Cores of the host that are free for steps.
    pub host_cores: f64,
    /// Seconds that the trainer takes per sample.
    pub trainer_seconds: f64,
    /// Whether gateway and host are the same machine, so that the work of both runs on the cores of the host.
    pub shared: bool,
}

/// The paths to a host that reaches its store and its gateway at two addresses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paths {
    /// Bandwidth from store to host; infinite if this path never was the bottleneck.
    pub store_bytes_per_second: f64,
    /// Bandwidth from gateway to host; infinite if this path never was the bottleneck.
    pub gateway_bytes_per_second: f64,
}

/// The end from which bytes arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Stored objects arrive from the store.
    Store,
    /// Values, cropped JPEGs and weights arrive from the gateway.
    Gateway,
}

/// The cost of a sample at one split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// What arrives.
    pub stage: Stage,
    /// Bytes of it.
    pub bytes: f64,
    /// CPU seconds at the gateway, if it runs all steps of the stage.
    pub gateway_seconds: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
    /// Weights that the host still has to fetch for this split, once.
    pub weights_bytes: f64,
    /// One-time cost of loading layers for this split.
    pub loading: LoadingCost,
    /// The part of the samples that the result cache of the gateway serves.
    pub hits: CacheHits,
}

/// CPU seconds to load layers that have not run yet. The layers of each split are loaded separately.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoadingCost {
    /// At the gateway.
    pub gateway_seconds: f64,
    /// On the host.
    pub host_seconds: f64,
}

/// One-time costs of splits that have not been used yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SetupCosts {
    /// Weights that the host would have to fetch to run models.
    pub weights_bytes: f64,
    /// Loading cost by number of steps at the gateway; zero for stages past the end of the list.
    pub loading: Vec<LoadingCost>,
}

/// Samples of about the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Fraction of all samples. The fractions of all classes sum to 1.
    pub fraction: f64,
    /// The possible splits. One of them has [`Stage::Object`].
    pub candidates: Vec<Candidate>,
}

/// Constraints on a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Upper bound of the ratio of value bytes to object bytes.
    pub max_expand: f64,
    /// Samples that remain to be read. One-time costs are spread over them.
    pub samples_left: f64,
    /// Samples that the trainer takes at once. It waits for its whole first batch. 0 if it takes samples one by one.
    pub batch_size: f64,
    /// Whether the host already fetches the weights that it lacks, so that they cost a plan nothing.
    pub weights_in_flight: bool,
    /// Work of the tiers that precedes those samples.
    pub in_flight: InFlight,
    /// Epochs that follow with the same plan. Default: none.
    pub later: LaterEpochs,
}

/// The remaining cost of samples that were requested and have not arrived. A plan starts after them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct InFlight {
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// Bytes on the link.
    pub bytes: f64,
    /// The part of them that arrives from the gateway.
    pub gateway_bytes: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
}

/// The tier that limits an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The gateway's CPU.
    Gateway,
    /// The path from gateway to host, if it is not the path from the store.
    GatewayPath,
    /// The path from store to host, if it is not the path from the gateway.
    StorePath,
    /// The link of the host.
    Link,
    /// The host's CPU.
    Host,
    /// The training itself: no split can speed it up.
    Trainer,
}

/// Mean seconds per sample that each tier is busy.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    /// The gateway, with all of its cores.
    pub gateway_seconds: f64,
    /// The path from the gateway; 0 if the link is the only path.
    pub gateway_path_seconds: f64,
    /// The path from the store; 0 if the link is the only path.
    pub store_path_seconds: f64,
    /// The link.
    pub link_seconds: f64,
    /// The host, with all of its cores.
    pub host_seconds: f64,
    /// The trainer.
    pub trainer_seconds: f64,
}

impl Sum for LoadingCost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            gateway_seconds: sum.gateway_seconds + next.gateway_seconds,
            host_seconds: sum.host_seconds + next.host_seconds,
        })
    }
}

impl Candidate {
    /// The path over which samples arrive.
    pub const fn path(&self) -> Path {
        match self.stage {
            Stage::Object => Path::Store,
            Stage::CroppedJpeg | Stage::After(_) => Path::Gateway,
        }
    }

    /// Whether gateway or host has to load layers for this split first.
    pub(super) fn has_loading_cost(&self) -> bool {
        self.loading != LoadingCost::default()
    }
}

/// What decides between equally fast plans, per sample of a split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Worth {
    pub(super) bytes: f64,
    /// Counts among equal bytes.
    pub(super) cpu_seconds: f64,
}

impl Class {
    /// The stored object.
    pub(super) fn object(&self) -> Option<&Candidate> {
        self.candidates.iter().find(|split| split.stage.is_plain())
    }

    /// The bytes and the host's CPU seconds of a split. A cropped JPEG counts as its object and the work at the gateway: other stages move
    /// work to the gateway, but cropping adds some to it, so fewer bytes alone are not worth it.
    pub(super) fn worth(&self, split: &Candidate) -> Worth {
        let (counted, gateway_seconds) = match (split.stage, self.object()) {
            (Stage::CroppedJpeg, Some(object)) => (object, split.mean_gateway_seconds()),
            _ => (split, 0.0),
        };
        Worth {
            bytes: counted.bytes,
            cpu_seconds: counted.host_seconds + gateway_seconds,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_expand: 1.0,
            samples_left: f64::INFINITY,
            batch_size: 0.0,
            weights_in_flight: false,
            in_flight: InFlight::default(),
            later: LaterEpochs::default(),
        }
    }
}

impl Rules {
    /// One batch as a ratio of the remaining samples.
    fn batch_ratio(&self) -> f64 {
        (self.batch_size / self.samples_left.max(1.0)).min(1.0)
    }

    /// Seconds per remaining sample if the tiers before the trainer need `upstream_seconds` and the trainer `trainer_seconds`.
    /// The trainer waits for its first batch, and trains its last batch after the other tiers have finished.
    pub(super) fn pace_seconds(&self, upstream_seconds: f64, trainer_seconds: f64) -> f64 {
        upstream_seconds.max(trainer_seconds) + self.batch_ratio() * upstream_seconds.min(trainer_seconds)
    }

    /// The inverse of [`pace_seconds`](Self::pace_seconds): the longest time that the tiers before the trainer may take per
    /// sample to stay within `budget_seconds`.
    pub(super) fn max_upstream_seconds(&self, budget_seconds: f64, trainer_seconds: f64) -> f64 {
        let batch_ratio = self.batch_ratio();
        if budget_seconds >= trainer_seconds * (1.0 + batch_ratio) {
            budget_seconds - batch_ratio * trainer_seconds
        } else {
            (budget_seconds - trainer_seconds) / batch_ratio
        }
    }
}

impl Load {
    /// Adds `fraction` times the load of the tiers before the trainer.
    pub(super) fn add(&mut self, fraction: f64, sample: &Self) {
        self.gateway_seconds += fraction * sample.gateway_seconds;
        self.gateway_path_seconds += fraction * sample.gateway_path_seconds;
        self.store_path_seconds += fraction * sample.store_path_seconds;
        self.link_seconds += fraction * sample.link_seconds;
        self.host_seconds += fraction * sample.host_seconds;
    }

    /// Seconds per sample of the slowest tier.
    pub fn seconds(&self) -> f64 {
        self.upstream_seconds().max(self.trainer_seconds)
    }

    /// Seconds per sample of the slowest tier before the trainer.
    pub(super) fn upstream_seconds(&self) -> f64 {
        let paths_seconds = self.gateway_path_seconds.max(self.store_path_seconds);
        self.gateway_seconds
            .max(paths_seconds)
            .max(self.link_seconds)
            .max(self.host_seconds)
    }

    /// The slowest tier; among equals, the last one on the path of a sample.
    pub fn bound(&self) -> Bound {
        let seconds = self.seconds();
        if self.trainer_seconds >= seconds {
            Bound::Trainer
        } else if self.host_seconds >= seconds {
            Bound::Host
        } else if self.link_seconds >= seconds {
            Bound::Link
        } else if self.store_path_seconds >= seconds {
            Bound::StorePath
        } else if self.gateway_path_seconds >= seconds {
            Bound::GatewayPath
        } else {
            Bound::Gateway
        }
    }
}

impl Tiers {
    /// The cores that a gateway of several replicas counts as if each one has this number of cores and this fraction of the samples: as
    /// many as can be busy while the replica with the fewest cores for its fraction is. No more than their sum, which it is if
    /// fractions are in proportion to cores. Fractions need not sum to 1. 0 without replicas.
    ///
    /// A lower bound: samples that wait for a replica beyond its limit go to others.
    pub fn effective_cores(replicas: impl IntoIterator<Item = (f64, f64)>) -> f64 {
        let (mut sum_cores, mut sum_fractions, mut min_ratio) = (0.0, 0.0, f64::INFINITY);
        for (cores, fraction) in replicas {
            sum_cores += cores;
            sum_fractions += fraction;
            if fraction > 0.0 {
                min_ratio = f64::min(min_ratio, cores / fraction);
            }
        }
        if sum_fractions > 0.0 {
            f64::min(min_ratio * sum_fractions, sum_cores)
        } else {
            0.0
        }
    }

    /// The load of one sample at this split. If the gateway is not the way to the store, only samples that it computes are its
    /// background load.
    pub(super) fn load(&self, candidate: &Candidate) -> Load {
        let bytes = candidate.bytes;
        let gateway_bytes = match candidate.path() {
            Path::Store => 0.0,
            Path::Gateway => bytes,
        };
        let mut load = Load {
            trainer_seconds: self.trainer_seconds,
            ..self.work_load(candidate.mean_gateway_seconds(), candidate.host_seconds)
        };
        self.add_transfer(&mut load, bytes, gateway_bytes);
        if self.paths.is_some() && candidate.path() == Path::Gateway && !self.shared {
            load.gateway_seconds += self.background_seconds;
        }
        load
    }

    /// The load of these CPU seconds.
    fn work_load(&self, gateway_cpu: f64, host_cpu: f64) -> Load {
        let (gateway_seconds, host_seconds) = if self.shared {
            (0.0, (gateway_cpu + host_cpu) / self.host_cores)
        } else {
            (
                if gateway_cpu > 0.0 {
                    gateway_cpu / self.gateway_cores
                } else {
                    0.0
                },
                host_cpu / self.host_cores,
            )
        };
        Load {
            gateway_seconds,
            host_seconds,
            ..Load::default()
        }
    }

    /// Adds the load of these bytes, a part of which arrives from the gateway, to that of the link and its paths.
    fn add_transfer(&self, load: &mut Load, bytes: f64, gateway_bytes: f64) {
        load.link_seconds += bytes / self.link_bytes_per_second;
        if let Some(paths) = self.paths {
            load.gateway_path_seconds += gateway_bytes / paths.gateway_bytes_per_second;
            load.store_path_seconds += (bytes - gateway_bytes).max(0.0) / paths.store_bytes_per_second;
        }
    }

    /// The bandwidth at which a single sample arrives over a path and the link.
    fn bytes_per_second(&self, path: Path) -> f64 {
        let path_bytes_per_second = self.paths.map_or(f64::INFINITY, |paths| match path {
            Path::Store => paths.store_bytes_per_second,
            Path::Gateway => paths.gateway_bytes_per_second,
        });
        path_bytes_per_second.min(self.link_bytes_per_second)
    }

    /// Latency of the first sample at this split with all tiers idle. At most one core of each tier works on a sample.
    pub(super) fn latency_seconds(&self, candidate: &Candidate) -> f64 {
        let on_one_core = |seconds: f64, cores: f64| {
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
        on_one_core(
            candidate.max_gateway_seconds() + loading.gateway_seconds,
            gateway_cores,
        ) + candidate.bytes / self.bytes_per_second(candidate.path())
            + on_one_core(candidate.host_seconds + loading.host_seconds, self.host_cores)
    }

    /// The load per remaining sample that does not depend on the split of that sample: work in flight, loading of layers, and
    /// the background work of the gateway.
    pub(super) fn fixed_load(&self, loading: LoadingCost, rules: &Rules) -> Load {
        let InFlight {
            gateway_seconds,
            bytes,
            gateway_bytes,
            host_seconds,
        } = rules.in_flight;
        let gateway_seconds = gateway_seconds + loading.gateway_seconds;
        let host_seconds = host_seconds + loading.host_seconds;
        let per_sample = |seconds: f64| {
            if seconds > 0.0 {
                seconds / rules.samples_left.max(1.0)
            } else {
                0.0
            }
        };
        let gateway_seconds = if self.gateway_cores > 0.0 {
            gateway_seconds
        } else {
            0.0
        };
        let mut load = self.work_load(gateway_seconds, host_seconds);
        self.add_transfer(&mut load, bytes, gateway_bytes);
        let background_seconds = if self.shared || self.paths.is_some() {
            0.0
        } else {
            self.background_seconds
        };
        Load {
            gateway_seconds: per_sample(load.gateway_seconds) + background_seconds,
            gateway_path_seconds: per_sample(load.gateway_path_seconds),
            store_path_seconds: per_sample(load.store_path_seconds),
            link_seconds: per_sample(load.link_seconds),
            host_seconds: per_sample(load.host_seconds),
            trainer_seconds: 0.0,
        }
    }

    /// Adds the load per remaining sample to fetch these weights from the gateway.
    pub(super) fn add_weights(&self, load: &mut Load, weights_bytes: f64, rules: &Rules) {
        if !rules.weights_in_flight {
            let bytes = weights_bytes / rules.samples_left.max(1.0);
            self.add_transfer(load, bytes, bytes);
        }
    }

    /// Whether the tiers have the cores that this split needs.
    pub(super) fn can_run(&self, candidate: &Candidate) -> bool {
        self.shared || self.gateway_cores > 0.0 || candidate.max_gateway_seconds() <= 0.0
    }
}
