//! `pushdown explain`: what each split costs, and what a plan makes of it.

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
    fault::PipelineFault,
    location::Location,
    print::Format,
    progress::{self, Listing},
};
use report::Explained;
pub(crate) use report::name as step_name;

/// Measure a pipeline on a few samples, and say what the gateway should do of it
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The objects
    #[arg(value_name = "s3://BUCKET/PREFIX")]
    prefix: Location,
    /// What to make of every object; see `pushdown steps`
    #[arg(long, short)]
    pipeline: String,
    /// Samples to measure, spread over the listing
    #[arg(long, value_name = "N", default_value_t = NonZeroUsize::new(24).unwrap_or(NonZeroUsize::MIN))]
    samples: NonZeroUsize,
    /// What if the link had so many megabits per second? [default: as fast as objects came that were read together]
    #[arg(long, value_name = "MBIT/S", help_heading = "What if")]
    bandwidth: Option<f64>,
    /// What if the gateway had so many cores to itself? [default: as it tells]
    #[arg(long, value_name = "N", help_heading = "What if")]
    gateway_cores: Option<f64>,
    /// What if this host had so many cores? [default: the CPUs that this process may use]
    #[arg(long, value_name = "N", help_heading = "What if")]
    host_cores: Option<f64>,
    /// What if this host computed so many times as fast?
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, help_heading = "What if")]
    host_speed: f64,
    /// What if training took so many milliseconds per sample?
    #[arg(long, value_name = "MS", default_value_t = 0.0, help_heading = "What if")]
    trainer: f64,
    /// What if so many epochs of all objects there were read? Weights that this host has to fetch are spread over them
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN, help_heading = "What if")]
    epochs: NonZeroU32,
    /// What if gateway and host were the same machine, so that their work adds up? [default: as the gateway tells, unless
    /// --gateway-cores or --host-cores is given]
    #[arg(long, help_heading = "What if")]
    shared: bool,
    #[command(flatten)]
    randomness: Randomness,
    #[command(flatten)]
    format: Format,
    #[command(flatten)]
    connection: Connection,
}

/// Classes of samples by size that a plan tells apart.
const CLASSES: usize = 4;

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let (profile, listed) = self.profile().await?;
        for (key, reason) in &profile.failed {
            writeln!(io::stderr(), "{key}: {reason}")?;
        }
        anyhow::ensure!(
            !profile.samples.is_empty(),
            "no sample could be measured under {}",
            self.prefix
        );
        for warning in profile.pipeline.warnings() {
            writeln!(io::stderr(), "warning: {warning}")?;
        }
        if let Some(why) = &profile.other_engine {
            writeln!(
                io::stderr(),
                "warning: {why}: whatever the plan, a reader reads plainly"
            )?;
        }
        let tiers = self.tiers(&profile);
        let mut classes = profile.classes(CLASSES);
        speed_up(&mut classes, self.host_speed, tiers.shared);
        let rules = Rules {
            samples_left: f64::from(listed) * f64::from(self.epochs.get()),
            ..Rules::default()
        };
        let same_cpus = self.same_cpus(&profile);
        let explained = Explained {
            same_cpus,
            plan: Plan::best(&tiers, &classes, &rules),
            plain: Plan::plain(&tiers, &classes, &rules),
            profile,
            tiers,
            classes,
            rules,
        };
        self.format
            .print(|| explained.as_json(), |out| explained.table(out))?;
        Ok(ExitCode::SUCCESS)
    }

    /// What some of the objects cost, and how many there are.
    async fn profile(&self) -> anyhow::Result<(Profile, u32)> {
        let fault = |error| PipelineFault::of(&self.pipeline, error);
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        let store = self.connection.store().build().await.map_err(fault)?;
        let Location { bucket, key } = &self.prefix;
        let listing = Listing::of(&self.prefix);
        let all = store
            .list_with(bucket, key, |objects| listing.listed(objects))
            .await;
        drop(listing);
        let all = all.map_err(fault)?;
        anyhow::ensure!(!all.is_empty(), "there is nothing to read under {}", self.prefix);
        let listed = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let some = spread(&all, self.samples.get());
        let bar = progress::spinner(format!("measuring {} samples", some.len()));
        let seed = self.randomness.seed;
        let profile = store
            .profile(bucket, &some, &pipeline, seed, self.randomness.epoch)
            .await;
        bar.finish_and_clear();
        Ok((profile.map_err(fault)?, listed))
    }

    fn tiers(&self, profile: &Profile) -> Tiers {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
        let cores = cores as f64;
        let measured = profile.link_bytes.unwrap_or(f64::INFINITY);
        Tiers {
            gateway_cores: self.gateway_cores.or(profile.gateway_cores).unwrap_or(cores),
            // Nothing tells of it while so few samples are read; a store beside the gateway is `--gateway-cores` less.
            background_seconds: 0.0,
            link_bytes_per_second: self.bandwidth.map_or(measured, |megabits| megabits * 1e6 / 8.0),
            host_cores: self.host_cores.unwrap_or(cores),
            trainer_seconds: self.trainer / 1e3,
            shared: self.shared || self.same_cpus(profile),
        }
    }

    /// Whether both sides turned out to have the same CPUs. Numbers of cores of their own are those of another pair of machines.
    const fn same_cpus(&self, profile: &Profile) -> bool {
        profile.same_cpus && self.gateway_cores.is_none() && self.host_cores.is_none()
    }
}

/// So many of all objects, or all where there are no more, with equal distances.
fn spread(all: &[Object], count: usize) -> Vec<Object> {
    let count = count.min(all.len());
    let nth = |index: usize| all[index.saturating_mul(all.len()) / count].clone();
    (0..count).map(nth).collect()
}

/// What samples cost if this host were so many times as fast; the gateway, too, where both are the same machine.
fn speed_up(classes: &mut [Class], host_speed: f64, shared: bool) {
    for way in classes.iter_mut().flat_map(|class| &mut class.candidates) {
        way.host_seconds /= host_speed;
        if shared {
            way.gateway_seconds /= host_speed;
        }
    }
}

#[cfg(test)]
mod tests {
    use pushdown::plan::{Candidate, LoadingCost};

    use super::*;

    #[test]
    fn a_host_of_twice_the_speed_takes_half_the_seconds() {
        let way = Candidate {
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
                candidates: vec![way; 2],
            }];
            speed_up(&mut classes, speed, shared);
            let [first, second] = classes[0].candidates[..] else {
                panic!("two ways stay two")
            };
            assert_eq!(first, second);
            (first.gateway_seconds, first.host_seconds)
        };
        assert_eq!(faster(1.0, false), (0.02, 0.03));
        assert_eq!(faster(2.0, false), (0.02, 0.015));
        assert_eq!(faster(2.0, true), (0.01, 0.015));
    }
}
