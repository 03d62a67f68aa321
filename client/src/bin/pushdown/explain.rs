//! `pushdown explain`: the cost of each split, and the best plan.

mod report;

use std::{
    io::{self, Write},
    num::{NonZeroU32, NonZeroUsize},
    process::ExitCode,
};

use clap::Args;
use pushdown::plan::{Class, Plan, Rules, Tiers};
use pushdown_client::{Object, Profile};

use crate::{
    connection::{Connection, Randomness},
    errors::PipelineError,
    location::Location,
    print::Format,
    progress::{self, Listing},
};
use report::Explanation;

/// Measure a pipeline on a few samples, and show the best split
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// Pipeline for every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Samples to measure, spread over the listing
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(24).unwrap_or(NonZeroUsize::MIN))]
    samples: NonZeroUsize,
    /// Assume a link of this many megabits per second [default: the measured throughput of concurrent reads]
    #[arg(long, value_name = "MBIT/S", help_heading = "What if")]
    bandwidth: Option<f64>,
    /// Assume a gateway with this many cores of its own [default: as reported by the gateway]
    #[arg(long, value_name = "N", help_heading = "What if")]
    gateway_cores: Option<f64>,
    /// Assume a host with this many cores [default: the CPUs that this process may use]
    #[arg(long, value_name = "N", help_heading = "What if")]
    host_cores: Option<f64>,
    /// Assume a host that computes this many times as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "What if")]
    host_speed: f64,
    /// Assume a training time of this many milliseconds per sample
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "What if")]
    trainer: f64,
    /// Assume this many epochs over all objects; the download of weights is spread over them
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, help_heading = "What if")]
    epochs: NonZeroU32,
    /// Assume that gateway and host are the same machine, so that their work adds up [default: as reported by the gateway,
    /// unless --gateway-cores or --host-cores is set]
    #[arg(long, help_heading = "What if")]
    shared: bool,
    #[command(flatten)]
    randomness: Randomness,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// The most size classes of samples in a plan.
const CLASSES: usize = 4;

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let (profile, listed) = self.profile().await?;
        for (key, reason) in &profile.failed {
            writeln!(io::stderr(), "{key}: {reason}")?;
        }
        anyhow::ensure!(
            !profile.samples.is_empty(),
            "no sample under {} could be measured",
            self.prefix
        );
        for warning in profile.pipeline.warnings() {
            writeln!(io::stderr(), "warning: {warning}")?;
        }
        if let Some(why) = &profile.engine_mismatch {
            writeln!(
                io::stderr(),
                "warning: {why}: readers run these steps and all later ones on this host, even if a plan pushes them"
            )?;
        }
        let tiers = self.tiers(&profile);
        let mut classes = profile.classes(CLASSES);
        speed_up(&mut classes, self.host_speed, tiers.shared);
        let rules = Rules {
            samples_left: f64::from(listed) * f64::from(self.epochs.get()),
            ..Rules::default()
        };
        let uses_shared_cpus = self.uses_shared_cpus(&profile);
        let explanation = Explanation {
            uses_shared_cpus,
            plan: Plan::best(&tiers, &classes, &rules),
            plain: Plan::plain(&tiers, &classes, &rules),
            profile,
            tiers,
            classes,
            rules,
        };
        self.format
            .print(|| explanation.as_json(), |out| explanation.table(out))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Measures some of the objects. Returns their profile and the number of all objects.
    async fn profile(&self) -> anyhow::Result<(Profile, u32)> {
        let wrap = |error| PipelineError::wrap(&self.pipeline, error);
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        let store = self.connection.store().build().await.map_err(wrap)?;
        let Location { bucket, key } = &self.prefix;
        let listing = Listing::new(&self.prefix);
        let all = store
            .list_with(bucket, key, |objects| listing.update(objects))
            .await;
        drop(listing);
        let all = all.map_err(wrap)?;
        anyhow::ensure!(!all.is_empty(), "no objects found under {}", self.prefix);
        let listed = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let sampled = spread(&all, self.samples.get());
        let bar = progress::spinner(format!("measuring {} samples", sampled.len()));
        let seed = self.randomness.seed;
        let profile = store
            .profile(bucket, &sampled, &pipeline, seed, self.randomness.epoch)
            .await;
        bar.finish_and_clear();
        Ok((profile.map_err(wrap)?, listed))
    }

    fn tiers(&self, profile: &Profile) -> Tiers {
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
    const fn uses_shared_cpus(&self, profile: &Profile) -> bool {
        profile.has_shared_cpus && self.gateway_cores.is_none() && self.host_cores.is_none()
    }
}

/// `count` of all objects, evenly spaced, or all if there are fewer.
fn spread(all: &[Object], count: usize) -> Vec<Object> {
    let count = count.min(all.len());
    let nth = |index: usize| all[index.saturating_mul(all.len()) / count].clone();
    (0..count).map(nth).collect()
}

/// Scales costs to a host that is `host_speed` times as fast, and a gateway as well if both are the same machine.
fn speed_up(classes: &mut [Class], host_speed: f64, shared: bool) {
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
