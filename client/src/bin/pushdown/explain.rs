//! `pushdown explain`: what each split costs, and what a plan makes of it.

use std::{
    io::{self, Write},
    num::NonZeroUsize,
    process::ExitCode,
};

use clap::Args;
use indicatif::{DecimalBytes, ProgressBar};
use pushdown::{
    Step,
    plan::{Bound, Class, Load, Plan, Rules, Tiers},
    step::model::Place,
};
use pushdown_client::Profile;
use serde_json::json;

use crate::{
    connection::{Connection, Randomness},
    fault::PipelineFault,
    location::Location,
};

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
    /// What if the link had so many megabits per second? [default: as fast as the fastest object came]
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
    /// Gateway and host are the same machine
    #[arg(long, help_heading = "What if")]
    shared: bool,
    #[command(flatten)]
    randomness: Randomness,
    /// As JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Classes of samples by size that a plan tells apart.
const CLASSES: usize = 4;

impl Explain {
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let profile = self.profile().await?;
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
        let tiers = self.tiers(&profile);
        let classes = profile.classes(CLASSES);
        let rules = Rules::default();
        let plan = Plan::best(&tiers, &classes, &rules);
        let plain = Plan::plain(&tiers, &classes);
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, &as_json(&profile, &tiers, &classes, &plan, &plain))?;
            writeln!(out)?;
        } else {
            table(&mut out, &profile, &tiers, &classes, &plan, &plain)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn profile(&self) -> anyhow::Result<Profile> {
        let fault = |error| PipelineFault::of(&self.pipeline, error);
        let pipeline = self.connection.pipeline(&self.pipeline).await?;
        let store = self.connection.store().build().await.map_err(fault)?;
        let Location { bucket, key } = &self.prefix;
        let all = store.list(bucket, key).await.map_err(fault)?;
        anyhow::ensure!(!all.is_empty(), "there is nothing to read under {}", self.prefix);
        let step = all.len().div_ceil(self.samples.get());
        let some: Vec<_> = all.into_iter().step_by(step).collect();
        let bar = ProgressBar::new_spinner().with_message(format!("measuring {} samples", some.len()));
        bar.enable_steady_tick(std::time::Duration::from_millis(100));
        let seed = self.randomness.seed;
        let profile = store
            .profile(bucket, &some, &pipeline, seed, self.randomness.epoch)
            .await;
        bar.finish_and_clear();
        profile.map_err(fault)
    }

    fn tiers(&self, profile: &Profile) -> Tiers {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        #[expect(clippy::cast_precision_loss, reason = "a number of cores")]
        let cores = cores as f64;
        let measured = profile.link_bytes.unwrap_or(f64::INFINITY);
        Tiers {
            gateway_cores: self.gateway_cores.or(profile.gateway_cores).unwrap_or(cores),
            link_bytes: self.bandwidth.map_or(measured, |megabits| megabits * 1e6 / 8.0),
            host_cores: self.host_cores.unwrap_or(cores) * self.host_speed,
            trainer_seconds: self.trainer / 1e3,
            shared: self.shared,
        }
    }
}

/// All samples that way, each class alike.
fn one_way(tiers: &Tiers, classes: &[Class], place: usize) -> Plan {
    let shares = classes.iter().map(|class| {
        let mut shares = vec![0.0; class.candidates.len()];
        shares[place] = class.share;
        shares
    });
    Plan::of(tiers, classes, shares.collect())
}

fn bound(load: &Load) -> &'static str {
    match load.bound() {
        Bound::Gateway => "the gateway's CPU",
        Bound::Link => "the link",
        Bound::Host => "the CPU of this host",
        Bound::Trainer => "the training",
    }
}

/// A step's name; for layers with the tensor that they end at.
fn name(step: &Step) -> String {
    match step {
        Step::Model(model) => {
            let (tensor, _) = model.network().port(Place::Cut(model.reach().1));
            format!("model until {tensor}")
        }
        step => step.name().to_owned(),
    }
}

/// The share of all samples that goes each way.
fn shares(plan: &Plan) -> Vec<f64> {
    let ways = plan.shares.first().map_or(0, Vec::len);
    (0..ways)
        .map(|way| plan.shares.iter().map(|shares| shares[way]).sum())
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "for people"
)]
fn bytes(bytes: f64) -> DecimalBytes {
    DecimalBytes(bytes as u64)
}

fn table(
    out: &mut impl Write,
    profile: &Profile,
    tiers: &Tiers,
    classes: &[Class],
    plan: &Plan,
    plain: &Plan,
) -> io::Result<()> {
    writeln!(out, "measured on {} samples\n", profile.samples.len())?;
    writeln!(
        out,
        "stage  after                              bytes  gateway ms  host ms  samples/s   plan"
    )?;
    let planned = shares(plan);
    for (place, share) in planned.iter().enumerate() {
        let all = one_way(tiers, classes, place);
        let stage = classes[0].candidates[place].stage;
        let step = stage.checked_sub(1).map(|step| &profile.pipeline.steps()[step]);
        let after = step.map_or_else(|| "(object)".to_owned(), name);
        let mean = |what: fn(&pushdown::plan::Candidate) -> f64| -> f64 {
            classes
                .iter()
                .map(|class| class.share * what(&class.candidates[place]))
                .sum()
        };
        writeln!(
            out,
            "{stage:>5}  {after:28}  {:>11}  {:>10.2}  {:>7.2}  {:>9.1}  {:>4.0} %",
            bytes(all.bytes).to_string(),
            1e3 * mean(|way| way.gateway_seconds),
            1e3 * mean(|way| way.host_seconds),
            1.0 / all.load.seconds(),
            100.0 * share
        )?;
    }
    let (planned, plainly) = (1.0 / plan.load.seconds(), 1.0 / plain.load.seconds());
    writeln!(
        out,
        "\nplan: {planned:.1} samples/s and {} a sample, against {plainly:.1} and {} plainly; what limits it is {}",
        bytes(plan.bytes),
        bytes(plain.bytes),
        bound(&plan.load)
    )?;
    if classes.len() > 1 {
        for (class, shares) in classes.iter().zip(&plan.shares) {
            let ways = class
                .candidates
                .iter()
                .zip(shares)
                .filter(|(_, share)| **share > 0.005 * class.share);
            let ways: Vec<_> = ways
                .map(|(way, share)| format!("{:.0} % at stage {}", 100.0 * share / class.share, way.stage))
                .collect();
            writeln!(
                out,
                "  objects of about {}: {}",
                bytes(class.candidates[0].bytes),
                ways.join(", ")
            )?;
        }
    }
    let link = if tiers.link_bytes.is_finite() {
        format!("{:.0} Mbit/s", tiers.link_bytes * 8.0 / 1e6)
    } else {
        "open".to_owned()
    };
    writeln!(
        out,
        "assumed: link {link}, {:.1} cores at the gateway, {:.1} here{}; change them by --bandwidth, --gateway-cores, \
         --host-cores, --host-speed",
        tiers.gateway_cores,
        tiers.host_cores,
        if tiers.shared {
            ", which are the same machine"
        } else {
            ""
        }
    )
}

fn as_json(
    profile: &Profile,
    tiers: &Tiers,
    classes: &[Class],
    plan: &Plan,
    plain: &Plan,
) -> serde_json::Value {
    let finite = |number: f64| number.is_finite().then_some(number);
    let described = |plan: &Plan| {
        json!({
            "samples_per_second": finite(1.0 / plan.load.seconds()), "bytes_per_sample": plan.bytes,
            "bound": bound(&plan.load), "shares": shares(plan),
        })
    };
    let classes_json: Vec<_> = classes
        .iter()
        .zip(&plan.shares)
        .map(|(class, shares)| {
            let ways: Vec<_> = class
                .candidates
                .iter()
                .zip(shares)
                .map(|(way, share)| {
                    json!({
                        "stage": way.stage, "bytes": way.bytes, "gateway_seconds": way.gateway_seconds,
                        "host_seconds": way.host_seconds, "weights": way.weights, "share": share,
                    })
                })
                .collect();
            json!({ "share": class.share, "ways": ways })
        })
        .collect();
    json!({
        "pipeline": profile.pipeline.to_string(), "samples": profile.samples.len(), "failed": profile.failed,
        "tiers": {
            "gateway_cores": tiers.gateway_cores, "link_bytes": finite(tiers.link_bytes), "host_cores": tiers.host_cores,
            "trainer_seconds": tiers.trainer_seconds, "shared": tiers.shared,
        },
        "classes": classes_json, "plan": described(plan), "plain": described(plain),
    })
}
