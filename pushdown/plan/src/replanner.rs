//! Updates the plan of a reader from observations.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Class, Costs, CropAnswer, InFlight, Links, LoadingCost, Path, Plan, Rules, SetupCosts, Stage, StepCost,
    Tiers, background::BackgroundLoad, hysteresis::Hysteresis, links::SaturatedEnds,
    recent_median::RecentMedian,
};
use pushdown_core::float;

/// The observations of a data set's samples and of the tiers, and the resulting plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Replanner {
    costs: Costs,
    links: Links,
    trainer_seconds: RecentMedian,
    host_cores: f64,
    gateway_cores: Option<f64>,
    background_load: BackgroundLoad,
    shared: bool,
    hysteresis: Hysteresis,
    decision: Option<Decision>,
    /// CPU seconds of steps at the gateway since the last [interval](Replanner::observe_interval).
    gateway_step_seconds: f64,
    /// CPU seconds of steps on the host since then.
    host_step_seconds: f64,
    /// Number of samples in flight by size class and stage.
    in_flight: BTreeMap<(usize, Stage), u64>,
    /// Numbers of steps at the gateway of samples that have been requested.
    requested_steps: BTreeSet<usize>,
}

/// A tier that is busy for at least this ratio of the time is saturated: it rarely waits for the link or another tier.
const SATURATED_RATIO: f64 = 0.7;

/// The ratio of an interval in which the CPUs at each end of the link were busy; `None` if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CpuUtilization {
    /// CPUs of the gateway, with any work.
    pub gateway_ratio: Option<f64>,
    /// CPUs of the gateway, with work other than steps, such as that of a store on the same machine. Negative if steps ended
    /// that had begun before the interval.
    pub background_ratio: Option<f64>,
    /// CPUs of the host, with any work.
    pub host_ratio: Option<f64>,
}

/// A plan and its inputs.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The estimated capacity of the tiers.
    pub tiers: Tiers,
    /// The estimated costs of samples.
    pub classes: Vec<Class>,
    /// The constraints on the plan.
    pub rules: Rules,
    /// The fraction of each class that takes each split.
    pub plan: Plan,
    /// The [sides](Costs::sides) of each size; its classes are consecutive, one for each side.
    pub sides: Vec<f64>,
}

/// Upper bound of the [demand](Decision::demand_cores) of a reader.
pub const MAX_DEMAND_CORES: f64 = 1024.0;

impl Decision {
    /// Whether a split in use needs weights that the host lacks.
    pub fn needs_weights(&self) -> bool {
        let mut splits = self
            .classes
            .iter()
            .zip(&self.plan.fractions)
            .flat_map(|(class, fractions)| class.candidates.iter().zip(fractions));
        splits.any(|(split, fraction)| *fraction > 0.0 && split.weights_bytes > 0.0)
    }

    /// The [fraction of samples](Plan::trial_fraction) that may try the split at `stage` in addition to `plan`.
    pub fn trial_fraction(&self, plan: &Plan, stage: Stage) -> f64 {
        let class_fractions = |class: &Class| {
            let candidates = class.candidates.iter();
            candidates
                .map(|split| if split.stage == stage { class.fraction } else { 0.0 })
                .collect()
        };
        let fractions = self.classes.iter().map(class_fractions).collect();
        let rules = Rules {
            in_flight: InFlight::default(),
            ..self.rules
        };
        // With one path the plan already contains the background load, which is the same for every split.
        let tiers = Tiers {
            background_seconds: if self.tiers.paths.is_some() {
                self.tiers.background_seconds
            } else {
                0.0
            },
            ..self.tiers
        };
        plan.trial_fraction(&Plan::from_fractions(&tiers, &self.classes, fractions, &rules).load)
    }

    /// Cores of the gateway that this reader could use: those that the best plan takes if the gateway is never the slowest tier. At most
    /// [`MAX_DEMAND_CORES`], also if nothing else limits the pace; 0 if the gateway runs on the cores of the host.
    pub fn demand_cores(&self) -> f64 {
        if self.tiers.shared {
            return 0.0;
        }
        let tiers = Tiers {
            gateway_cores: MAX_DEMAND_CORES,
            background_seconds: 0.0,
            ..self.tiers
        };
        let plan = Plan::best(&tiers, &self.classes, &self.rules);
        // With all of them, the gateway may still be the slowest tier.
        MAX_DEMAND_CORES * plan.load.gateway_seconds / plan.load.seconds().max(f64::MIN_POSITIVE)
    }

    /// The best plan until the host has the weights; `None` if every plan needs them.
    pub fn plan_without_weights(&self) -> Option<Plan> {
        Plan::best_without_weights(&self.tiers, &self.classes, &self.rules)
    }
}

impl Replanner {
    /// A planner without observations, of a pipeline with these steps. `classes` has the fraction and the mean object bytes of each
    /// class. Steps run on `host_cores` cores of this host.
    pub fn new(steps: &[StepCost], classes: &[(f64, f64)], host_cores: f64) -> Self {
        Self {
            costs: Costs::new(steps, classes),
            links: Links::default(),
            trainer_seconds: RecentMedian::default(),
            host_cores,
            gateway_cores: None,
            background_load: BackgroundLoad::default(),
            shared: false,
            hysteresis: Hysteresis::default(),
            decision: None,
            gateway_step_seconds: 0.0,
            host_step_seconds: 0.0,
            in_flight: BTreeMap::new(),
            requested_steps: BTreeSet::new(),
        }
    }

    /// The same for a reader that reaches the gateway beside the store: stored objects do not pass it.
    #[must_use]
    pub fn with_two_paths(self) -> Self {
        Self {
            links: Links::with_two_paths(),
            ..self
        }
    }

    /// The same for another reader of the same samples, which has nothing in flight yet.
    #[must_use]
    pub fn without_in_flight(&self) -> Self {
        Self {
            gateway_step_seconds: 0.0,
            host_step_seconds: 0.0,
            in_flight: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// Sets the mean object bytes of a class, for data sets without a listing.
    pub fn set_object_bytes(&mut self, class: usize, bytes: f64) {
        self.costs.set_object_bytes(class, bytes);
    }

    /// Sets whether the reader may ask for cropped JPEGs; see [`Costs::set_cropped_share`].
    pub const fn set_cropped_share(&mut self, share: Option<f64>) {
        self.costs.set_cropped_share(share);
    }

    /// Records the seconds that the host took for `steps` steps of a sample from `first` on, which ran as one.
    pub fn observe_host_seconds(&mut self, class: usize, first: usize, steps: usize, seconds: f64) {
        self.host_step_seconds += seconds;
        self.costs.observe_host_seconds(class, first, steps, seconds);
    }

    /// Records the seconds that the gateway took for a sample up to `stage`, all steps of which it ran.
    pub fn observe_gateway_seconds(&mut self, class: usize, stage: usize, seconds: f64) {
        self.gateway_step_seconds += seconds;
        self.background_load.observe_step_seconds(seconds);
        self.costs.observe_gateway_seconds(class, stage, seconds);
    }

    /// Records the answer to a request for a cropped JPEG.
    pub fn observe_crop_answer(&mut self, class: usize, answer: &CropAnswer) {
        self.gateway_step_seconds += answer.gateway_seconds;
        self.background_load.observe_step_seconds(answer.gateway_seconds);
        self.costs.observe_crop_answer(class, answer);
    }

    /// Records the seconds that the host took for the first `steps` steps of a sample that arrived as a cropped JPEG, which ran as one.
    /// Later steps are the same for all samples: see [`observe_host_seconds`](Self::observe_host_seconds).
    pub fn observe_cropped_host_seconds(&mut self, class: usize, steps: usize, seconds: f64) {
        self.host_step_seconds += seconds;
        self.costs.observe_cropped_host_seconds(class, steps, seconds);
    }

    /// Records that the gateway ran all steps up to `stage` for an object with this hash, as a fraction of all hashes.
    pub fn observe_cache_miss(&mut self, stage: usize, hash_fraction: f64) {
        self.costs.result_cache.observe(stage, hash_fraction, None);
    }

    /// Records that the result cache of the gateway had a value up to `stage`, or up to an earlier one, and the seconds that the
    /// gateway took.
    pub fn observe_cache_hit(&mut self, stage: usize, hash_fraction: f64, seconds: f64) {
        self.gateway_step_seconds += seconds;
        self.costs
            .result_cache
            .observe(stage, hash_fraction, Some(seconds));
    }

    /// Sets the part of the objects that the gateway caches at each stage: those with hashes below this ratio of all hashes.
    pub fn set_cached_ratios(&mut self, ratios: impl IntoIterator<Item = (usize, f64)>) {
        self.costs.result_cache.announce(ratios);
    }

    /// Ends an epoch of `samples` samples: what it has requested may be cached in the next one.
    pub fn next_epoch(&mut self, samples: f64) {
        self.costs.result_cache.next_epoch(samples);
    }

    /// Records a request for a sample at a stage.
    pub fn observe_request(&mut self, class: usize, stage: Stage) {
        *self.in_flight.entry((class, stage)).or_default() += 1;
        self.requested_steps.insert(stage.steps());
    }

    /// Records that the request for a sample at a stage ended: the sample arrived, or failed.
    pub fn observe_request_end(&mut self, class: usize, stage: Stage) {
        if !stage.is_plain() || !self.links.has_two_paths() {
            self.background_load.observe_sample();
        }
        if let Some(count) = self.in_flight.get_mut(&(class, stage)) {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&(class, stage));
            }
        }
    }

    /// Records the bytes of an answer to a request for a value of `stage`; see [`Costs::observe_value_bytes`].
    pub fn observe_value_bytes(&mut self, class: usize, stage: usize, bytes: f64, is_object: bool) {
        self.costs.observe_value_bytes(class, stage, bytes, is_object);
    }

    /// Records the time since the last call. The [rates](Links::observe_rate) observed in it are bandwidths only if no end of their
    /// path was saturated, either with the steps observed or with any work.
    pub fn observe_interval(&mut self, seconds: f64, utilization: &CpuUtilization) {
        let is_saturated = |step_seconds: f64, cores: f64, ratio: Option<f64>| {
            step_seconds >= SATURATED_RATIO * seconds * cores
                || ratio.is_some_and(|ratio| ratio >= SATURATED_RATIO)
        };
        if let Some(background_ratio) = utilization.background_ratio {
            let cpus_saturated = utilization
                .gateway_ratio
                .is_some_and(|ratio| ratio >= SATURATED_RATIO);
            self.background_load
                .observe_interval(seconds, background_ratio, cpus_saturated);
        }
        let gateway_step_seconds = std::mem::take(&mut self.gateway_step_seconds);
        let host_step_seconds = std::mem::take(&mut self.host_step_seconds);
        let gateway_saturated = self
            .gateway_cores
            .is_some_and(|cores| is_saturated(gateway_step_seconds, cores, utilization.gateway_ratio));
        let host_saturated = is_saturated(host_step_seconds, self.host_cores, utilization.host_ratio);
        self.links.classify_rates(SaturatedEnds {
            gateway: gateway_saturated,
            host: host_saturated,
        });
    }

    /// Link and paths, for more observations.
    pub const fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }

    /// Link and paths.
    pub const fn links(&self) -> &Links {
        &self.links
    }

    /// Records the seconds that the trainer took per sample.
    pub fn observe_trainer_seconds(&mut self, seconds: f64) {
        self.trainer_seconds.add(seconds);
    }

    /// Sets the number of gateway cores for this reader. Ignores negative and non-finite numbers.
    pub fn set_gateway_cores(&mut self, cores: f64) {
        if cores.is_finite() && cores >= 0.0 {
            self.gateway_cores = Some(cores);
        }
    }

    /// Sets whether gateway and host [share](Tiers::shared) their CPUs. Default: no.
    pub const fn set_shared(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// The cost of the samples in flight. Each size has `side_count` classes.
    fn in_flight_cost(&self, classes: &[Class], side_count: usize) -> InFlight {
        let mut total = InFlight::default();
        for ((size, stage), count) in &self.in_flight {
            let sides = classes.chunks(side_count).nth(*size).unwrap_or_default();
            let fraction: f64 = sides.iter().map(|class| class.fraction).sum();
            for class in sides {
                if let Some(split) = class.candidates.iter().find(|split| split.stage == *stage) {
                    let count = float(*count) * (class.fraction / fraction);
                    total.gateway_seconds += count * split.mean_gateway_seconds();
                    total.bytes += count * split.bytes;
                    if split.path() == Path::Gateway {
                        total.gateway_bytes += count * split.bytes;
                    }
                    total.host_seconds += count * split.host_seconds;
                }
            }
        }
        total
    }

    /// Ends a batch, and plans the samples that have not been requested yet, which follow those in flight. The layers of a split
    /// cost nothing to load once a sample was requested at it.
    ///
    /// `None` while the costs of both tiers, or the cores of the gateway, are unknown.
    pub fn next_batch(&mut self, mut setup: SetupCosts, rules: &Rules) -> Option<&Decision> {
        for (steps, loading) in setup.loading.iter_mut().enumerate() {
            if self.requested_steps.contains(&steps) {
                *loading = LoadingCost::default();
            }
        }
        if let Some(classes) = self.costs.classes(&setup)
            && let Some(gateway_cores) = self.gateway_cores
        {
            let tiers = Tiers {
                gateway_cores,
                background_seconds: self.background_load.seconds_per_sample(),
                link_bytes_per_second: self.links.link_bytes_per_second(),
                paths: self.links.paths(),
                host_cores: self.host_cores,
                trainer_seconds: self.trainer_seconds.median().unwrap_or_default(),
                shared: self.shared,
            };
            let sides = self.costs.sides();
            let rules = Rules {
                in_flight: self.in_flight_cost(&classes, sides.len()),
                ..*rules
            };
            let plan = self.hysteresis.decide(&tiers, &classes, &rules);
            self.decision = Some(Decision {
                tiers,
                classes,
                rules,
                plan,
                sides,
            });
        }
        self.costs.next_batch();
        self.links.next_batch();
        self.trainer_seconds.next_batch();
        self.decision()
    }

    /// The plan in force.
    pub const fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }
}

#[cfg(test)]
mod tests;
