//! What a plan assumes.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;
use pushdown::plan::{Class, Rules, Tiers};
use pushdown_client::Profile;
use serde::{Deserialize, Serialize};

/// What a plan assumes instead of what is measured.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Assumptions {
    /// Assume a link of this many megabits per second [default: the measured throughput of concurrent reads]
    #[arg(long, value_name = "MBIT/S", help_heading = "What if")]
    pub bandwidth: Option<f64>,
    /// Assume a gateway with this many cores of its own [default: as reported by the gateway]
    #[arg(long, value_name = "N", help_heading = "What if")]
    pub gateway_cores: Option<f64>,
    /// Assume a host with this many cores [default: the CPUs that this process may use]
    #[arg(long, value_name = "N", help_heading = "What if")]
    pub host_cores: Option<f64>,
    /// Assume a host that computes this many times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "What if")]
    pub host_speed: f64,
    /// Assume a training time of this many milliseconds per sample
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "What if")]
    pub trainer: f64,
    /// Assume this many epochs over all objects; the download of weights is spread over them
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, help_heading = "What if")]
    pub epochs: NonZeroU32,
    /// Assume that gateway and host are the same machine, so that their work adds up [default: as reported by the gateway,
    /// unless --gateway-cores or --host-cores is set]
    #[arg(long, help_heading = "What if")]
    pub shared: bool,
}

impl Default for Assumptions {
    fn default() -> Self {
        Self {
            bandwidth: None,
            gateway_cores: None,
            host_cores: None,
            host_speed: 1.0,
            trainer: 0.0,
            epochs: NonZeroU32::MIN,
            shared: false,
        }
    }
}

impl Assumptions {
    pub(super) fn tiers(&self, profile: &Profile) -> Tiers {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
        let cores = cores as f64;
        let measured = profile.link_bytes_per_second.unwrap_or(f64::INFINITY);
        Tiers {
            gateway_cores: self.gateway_cores.or(profile.gateway_cores).unwrap_or(cores),
            // Unknown from so few samples; subtract a store on the gateway's machine from `--gateway-cores`.
            background_seconds: 0.0,
            link_bytes_per_second: self.bandwidth.map_or(measured, |megabits| megabits * 1e6 / 8.0),
            host_cores: self.host_cores.unwrap_or(cores),
            trainer_seconds: self.trainer / 1e3,
            shared: self.shared || self.uses_shared_cpus(profile),
        }
    }

    /// Whether gateway and host have the same CPUs. Explicit numbers of cores describe other machines.
    pub(super) const fn uses_shared_cpus(&self, profile: &Profile) -> bool {
        profile.has_shared_cpus && self.gateway_cores.is_none() && self.host_cores.is_none()
    }

    /// The rules of a plan for this many objects.
    pub(super) fn rules(&self, objects: u32) -> Rules {
        Rules {
            samples_left: f64::from(objects) * f64::from(self.epochs.get()),
            ..Rules::default()
        }
    }
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
    use pushdown::plan::{Candidate, LoadingCost};

    use super::*;

    #[test]
    fn a_host_with_twice_the_speed_takes_half_the_time() {
        let candidate = Candidate {
            stage: 1,
            bytes: 1e4,
            gateway_seconds: 0.02,
            host_seconds: 0.03,
            weights_bytes: 0.0,
            loading: LoadingCost::default(),
        };
        let faster = |speed: f64, shared: bool| {
            let mut classes = [Class {
                share: 1.0,
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
