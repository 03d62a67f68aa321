//! What a plan assumes.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};

use clap::Args;
use pushdown::{
    Pipeline,
    plan::{ASSUMED_HIT_SECONDS, CacheHits, Class, LaterEpochs, Paths, Rules, Tiers},
};
use pushdown_client::store::{Profile, ReplicaReport};
use serde::{Deserialize, Serialize};

use super::replicas::Replicas;

/// Samples per batch, unless assumed. The default of `pushdown read`.
const DEFAULT_BATCH_SIZE: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// What a plan assumes instead of what is measured.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Assumptions {
    /// Assume a link of this many megabits per second; with --gateway, a path from the gateway [default: the measured throughput of
    /// concurrent reads from the store]
    #[arg(long, value_name = "MBIT/S", help_heading = "What if")]
    pub bandwidth: Option<f64>,
    /// Assume that stored objects arrive from the store at this many megabits per second, without passing the gateway [default: with
    /// --gateway, the measured throughput of concurrent reads; otherwise they pass the gateway]
    #[arg(long, value_name = "MBIT/S", help_heading = "What if")]
    pub store_bandwidth: Option<f64>,
    /// Assume a gateway with this many cores of its own [default: as reported by the gateway]
    #[arg(long, value_name = "N", help_heading = "What if")]
    pub gateway_cores: Option<f64>,
    /// Assume this many replicas of the gateway, each on its own machine; the plan is made over the sum of their cores
    /// [default: those that serve]
    #[arg(long, value_name = "N", help_heading = "What if")]
    pub gateways: Option<NonZeroU16>,
    /// Assume batches of this many samples; a reader uses no more replicas than its batches in flight keep busy
    #[arg(long, value_name = "N", default_value_t = DEFAULT_BATCH_SIZE, help_heading = "What if")]
    pub batch_size: NonZeroUsize,
    /// Assume a host with this many cores [default: the CPUs that this process may use]
    #[arg(long, value_name = "N", help_heading = "What if")]
    pub host_cores: Option<f64>,
    /// Assume a host that computes this many times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "What if")]
    pub host_speed: f64,
    /// Assume a training time of this many milliseconds per sample
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "What if")]
    pub trainer: f64,
    /// Assume this many epochs over all objects; the plan minimises the time of all of them, and the download of weights is
    /// spread over them
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, help_heading = "What if")]
    pub epochs: NonZeroU32,
    /// Assume a gateway whose result cache has this ratio of the values, 0 to 1, at every stage before the first random step.
    /// With several epochs, the first one finds the cache empty and fills it [default: 0]
    #[arg(long, value_name = "RATIO", value_parser = parse_ratio, help_heading = "What if")]
    pub cached: Option<f64>,
    /// Assume that gateway and host are the same machine, so that their work adds up [default: as reported by the gateway,
    /// unless --gateway-cores, --gateways or --host-cores is set]
    #[arg(long, conflicts_with = "gateways", help_heading = "What if")]
    pub shared: bool,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            bandwidth: None,
            store_bandwidth: None,
            gateway_cores: None,
            gateways: None,
            batch_size: DEFAULT_BATCH_SIZE,
            host_cores: None,
            host_speed: 1.0,
            trainer: 0.0,
            epochs: NonZeroU32::MIN,
            cached: None,
            shared: false,
        }
    }
}

impl Assumptions {
    /// The replicas of the gateway, and how many of them the reader uses.
    pub(super) fn replicas(&self, profile: &Profile) -> Replicas {
        let cores = self.gateway_cores.or(profile.gateway_cores);
        let serving = profile
            .replicas
            .iter()
            .filter(|replica| replica.state == ReplicaReport::SERVING)
            .count();
        let serving = u16::try_from(serving).unwrap_or(u16::MAX);
        let serving = NonZeroU16::new(serving).unwrap_or(NonZeroU16::MIN);
        Replicas::new(
            self.gateways.unwrap_or(serving),
            cores.unwrap_or_else(available_cores),
            self.batch_size,
        )
    }

    pub(super) fn tiers(&self, profile: &Profile) -> Tiers {
        let (link_bytes_per_second, paths) = self.bandwidths(profile);
        Tiers {
            gateway_cores: self.replicas(profile).used_cores(),
            // Unknown from so few samples; subtract a store on the gateway's machine from `--gateway-cores`.
            background_seconds: 0.0,
            link_bytes_per_second,
            paths,
            host_cores: self.host_cores.unwrap_or_else(available_cores),
            trainer_seconds: self.trainer / 1e3,
            shared: self.shared || self.uses_shared_cpus(profile),
        }
    }

    /// The bandwidth of the link, and of the paths to it if store and gateway have an address each. Only the path from the store is
    /// measured. Unless a bandwidth is assumed, that from the gateway is the same: both share what was measured.
    fn bandwidths(&self, profile: &Profile) -> (f64, Option<Paths>) {
        let measured = profile.link_bytes_per_second.unwrap_or(f64::INFINITY);
        let assumed = |megabits: Option<f64>| megabits.map(|megabits| megabits * 1e6 / 8.0);
        let (gateway, store) = (assumed(self.bandwidth), assumed(self.store_bandwidth));
        if profile.gateway_url.is_none() && store.is_none() {
            return (gateway.unwrap_or(measured), None);
        }
        let paths = Paths {
            store_bytes_per_second: store.unwrap_or(measured),
            gateway_bytes_per_second: gateway.unwrap_or(measured),
        };
        let link_bytes_per_second = if gateway.is_some() || store.is_some() {
            f64::INFINITY
        } else {
            measured
        };
        (link_bytes_per_second, Some(paths))
    }

    /// Whether gateway and host have the same CPUs. Several replicas and explicit numbers of cores describe other machines.
    pub(super) fn uses_shared_cpus(&self, profile: &Profile) -> bool {
        profile.has_shared_cpus
            && self.gateway_cores.is_none()
            && self.host_cores.is_none()
            && self.gateways.is_none_or(|gateways| gateways.get() == 1)
    }

    /// The rules of a plan for this many objects.
    pub(super) fn rules(&self, objects: u32) -> Rules {
        let (objects, epochs) = (f64::from(objects), f64::from(self.epochs.get()));
        if self.cached.is_none() {
            // All epochs are alike.
            return Rules {
                samples_left: objects * epochs,
                ..Rules::default()
            };
        }
        Rules {
            samples_left: objects,
            later: LaterEpochs {
                count: epochs - 1.0,
                samples: objects,
            },
            ..Rules::default()
        }
    }

    /// Adds the assumed hits of a result cache to the costs of a pipeline.
    pub(super) fn add_hits(&self, classes: &mut [Class], pipeline: &Pipeline) {
        let Some(later_ratio) = self.cached.map(|ratio| ratio.clamp(0.0, 1.0)) else {
            return;
        };
        let hits = CacheHits {
            ratio: if self.epochs == NonZeroU32::MIN {
                later_ratio
            } else {
                0.0
            },
            later_ratio,
            seconds: ASSUMED_HIT_SECONDS,
        };
        let stages = 1..=last_cached_stage(pipeline);
        let candidates = classes.iter_mut().flat_map(|class| &mut class.candidates);
        for candidate in candidates.filter(|candidate| stages.contains(&candidate.stage.steps())) {
            candidate.hits = hits;
        }
    }

    /// What the result cache is assumed to have, as a sentence without a verb; `None` without the assumption.
    pub(super) fn describe_cache(&self, pipeline: &Pipeline) -> Option<String> {
        let percent = 100.0 * self.cached?;
        let last = last_cached_stage(pipeline);
        let stages = match last {
            0 => return Some("nothing cached, since the first step is random".to_owned()),
            1 => "stage 1".to_owned(),
            last => format!("stages 1 to {last}"),
        };
        let reason = if last < pipeline.len() {
            " (before the first random step)"
        } else {
            ""
        };
        let since = if self.epochs == NonZeroU32::MIN {
            String::new()
        } else {
            format!(" from the second of {} epochs on", self.epochs)
        };
        Some(format!(
            "{percent:.0} % of the values of {stages}{reason} in the gateway's result cache{since}, {:.1} ms per hit",
            1e3 * ASSUMED_HIT_SECONDS
        ))
    }
}

/// The CPUs that this process may use.
fn available_cores() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
    let cores = cores as f64;
    cores
}

/// The last stage whose values are the same in every epoch. Only those are cached.
fn last_cached_stage(pipeline: &Pipeline) -> usize {
    let steps = pipeline.steps().iter();
    steps.take_while(|step| !step.is_random()).count()
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Scales costs to a host that is `host_speed` times as fast, and a gateway as well if both are the same machine.
pub(super) fn speed_up(classes: &mut [Class], host_speed: f64, shared: bool) {
    for candidate in classes.iter_mut().flat_map(|class| &mut class.candidates) {
        candidate.host_seconds /= host_speed;
        if shared {
            candidate.gateway_seconds /= host_speed;
        }
    }
}

#[cfg(test)]
mod tests {
    use pushdown::plan::{CacheHits, Candidate, LoadingCost, Stage};

    use super::*;

    fn candidate(stage: usize) -> Candidate {
        Candidate {
            stage: Stage::after(stage),
            bytes: 1e4,
            gateway_seconds: 0.02,
            host_seconds: 0.03,
            weights_bytes: 0.0,
            loading: LoadingCost::default(),
            hits: CacheHits::default(),
        }
    }

    fn assuming(cached: Option<f64>, epochs: u32) -> Assumptions {
        Assumptions {
            cached,
            epochs: NonZeroU32::new(epochs).unwrap(),
            ..Assumptions::default()
        }
    }

    #[test]
    fn stages_before_the_first_random_step_are_cached() {
        let ratios = |text: &str, cached: Option<f64>, epochs: u32| -> Vec<(f64, f64)> {
            let mut classes = [Class {
                fraction: 1.0,
                candidates: (0..4).map(candidate).collect(),
            }];
            assuming(cached, epochs).add_hits(&mut classes, &Pipeline::parse(text).unwrap());
            let hits = classes[0].candidates.iter().map(|candidate| candidate.hits);
            hits.map(|hits| (hits.ratio, hits.later_ratio)).collect()
        };
        let (none, half) = ((0.0, 0.0), (0.5, 0.5));
        let fixed = "decode | resize(8, 8) | to_float";
        let random = "decode | random_crop(8, 8) | to_float";
        assert_eq!(ratios(fixed, None, 1), [none; 4]);
        assert_eq!(ratios(fixed, Some(0.5), 1), [none, half, half, half]);
        assert_eq!(ratios(random, Some(0.5), 1), [none, half, none, none]);
        let later = (0.0, 0.5);
        assert_eq!(ratios(random, Some(0.5), 3), [none, later, none, none]);
    }

    #[test]
    fn the_report_says_what_it_assumes_of_a_cache() {
        let describe = |text: &str, cached: Option<f64>, epochs: u32| {
            let pipeline = Pipeline::parse(text).unwrap();
            assuming(cached, epochs)
                .describe_cache(&pipeline)
                .unwrap_or_default()
        };
        let fixed = "decode | resize(8, 8) | to_float";
        insta::assert_snapshot!(
            [
                describe(fixed, None, 1),
                describe(fixed, Some(0.5), 1),
                describe("decode | random_crop(8, 8) | to_float", Some(1.0), 90),
            ]
            .join("\n")
        );
    }

    #[test]
    fn later_epochs_count_if_a_cache_is_assumed() {
        let rules = |cached: Option<f64>| {
            let rules = assuming(cached, 3).rules(100);
            (rules.samples_left, rules.later.count, rules.later.samples)
        };
        assert_eq!(rules(None), (300.0, 0.0, 0.0));
        assert_eq!(rules(Some(0.5)), (100.0, 2.0, 100.0));
        assert_eq!(parse_ratio("0.5"), Ok(0.5));
        for text in ["-0.1", "1.1", "NaN", "half", ""] {
            assert!(parse_ratio(text).is_err(), "{text}");
        }
    }

    fn measured(gateway_url: Option<&str>) -> Profile {
        Profile {
            endpoint: "http://store".to_owned(),
            gateway_url: gateway_url.map(str::to_owned),
            pipeline: Pipeline::parse("decode").unwrap(),
            samples: Vec::new(),
            failed: Vec::new(),
            link_bytes_per_second: Some(5e6),
            gateway_cores: None,
            replicas: Vec::new(),
            has_shared_cpus: false,
            engine_mismatch: None,
        }
    }

    /// With a gateway beside the store, what was measured is its path from the store; `--bandwidth` is that from the gateway.
    #[test]
    fn each_path_has_an_assumption_of_its_own() {
        let bandwidths = |gateway_url: Option<&str>, bandwidth, store_bandwidth| {
            let assumptions = Assumptions {
                bandwidth,
                store_bandwidth,
                ..Assumptions::default()
            };
            let (link, paths) = assumptions.bandwidths(&measured(gateway_url));
            let paths = paths.map(|paths| (paths.store_bytes_per_second, paths.gateway_bytes_per_second));
            (link, paths)
        };
        let beside = Some("http://gateway");
        assert_eq!(bandwidths(None, None, None), (5e6, None));
        assert_eq!(bandwidths(None, Some(8.0), None), (1e6, None));
        assert_eq!(bandwidths(beside, None, None), (5e6, Some((5e6, 5e6))));
        let unlimited = f64::INFINITY;
        for (gateway_url, bandwidth, store_bandwidth, expected) in [
            (beside, Some(8.0), None, (5e6, 1e6)),
            (beside, None, Some(16.0), (2e6, 5e6)),
            (beside, Some(8.0), Some(16.0), (2e6, 1e6)),
            (None, Some(8.0), Some(16.0), (2e6, 1e6)),
            (None, None, Some(16.0), (2e6, 5e6)),
        ] {
            let found = bandwidths(gateway_url, bandwidth, store_bandwidth);
            assert_eq!(
                found,
                (unlimited, Some(expected)),
                "{bandwidth:?} {store_bandwidth:?}"
            );
        }
    }

    #[test]
    fn a_host_with_twice_the_speed_takes_half_the_time() {
        let candidate = candidate(1);
        let faster = |speed: f64, shared: bool| {
            let mut classes = [Class {
                fraction: 1.0,
                candidates: vec![candidate; 2],
            }];
            speed_up(&mut classes, speed, shared);
            let [first, second] = classes[0].candidates[..] else {
                panic!("two candidates stay two")
            };
            assert_eq!(first, second);
            (first.gateway_seconds, first.host_seconds)
        };
        assert_eq!(faster(1.0, false), (0.02, 0.03));
        assert_eq!(faster(2.0, false), (0.02, 0.015));
        assert_eq!(faster(2.0, true), (0.01, 0.015));
    }
}
