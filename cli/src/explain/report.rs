//! A plan and what it was made from, as text and as JSON.

use std::io::{self, Write};

use indicatif::DecimalBytes;
use pushdown::{
    Kind, Step,
    plan::{Bound, Candidate, Class, Load, Plan, Rules, Stage, Tiers},
};
#[cfg(feature = "models")]
use pushdown_client::internal::Escaped;
use pushdown_client::store::{Profile, ReplicaReport};
use serde_json::json;

use super::{
    assumptions::{Assumptions, speed_up},
    replicas::Replicas,
};

/// The most size classes of samples in a plan.
const CLASSES: usize = 4;

/// A plan, what it was made from, and plain reading for comparison.
#[derive(Debug)]
pub struct Explanation {
    profile: Profile,
    replicas: Replicas,
    tiers: Tiers,
    /// Whether the plan accounts for a gateway on the same CPUs.
    uses_shared_cpus: bool,
    classes: Vec<Class>,
    rules: Rules,
    plan: Plan,
    plain: Plan,
    assumptions: Assumptions,
}

/// The costs of a split at a stage, over all classes.
struct StageRow<'a> {
    stage: Stage,
    after: String,
    kind: &'a Kind,
    bytes: f64,
    gateway_seconds: f64,
    host_seconds: f64,
    samples_per_second: f64,
    /// The fraction of the samples that the plan splits at this stage.
    fraction: f64,
}

fn bound(load: &Load) -> &'static str {
    match load.bound() {
        Bound::Gateway => "the gateway's CPU",
        Bound::GatewayPath => "the path from the gateway",
        Bound::StorePath => "the path from the store",
        Bound::Link => "the link",
        Bound::Host => "this host's CPU",
        Bound::Trainer => "training",
    }
}

fn megabits(bytes_per_second: f64) -> String {
    if bytes_per_second.is_finite() {
        format!("{:.0} Mbit/s", bytes_per_second * 8.0 / 1e6)
    } else {
        "unlimited".to_owned()
    }
}

/// The link, and the paths to it if there are two.
fn network(tiers: &Tiers) -> String {
    let link = format!("link {}", megabits(tiers.link_bytes_per_second));
    match tiers.paths {
        None => link,
        Some(paths) => format!(
            "{link}, from the store {}, from the gateway {}",
            megabits(paths.store_bytes_per_second),
            megabits(paths.gateway_bytes_per_second)
        ),
    }
}

/// A step's name; for a model, the tensor at which it ends.
fn name(step: &Step) -> String {
    match step {
        #[cfg(feature = "models")]
        Step::Model(model) => {
            let (tensor, _) = model
                .model()
                .tensor(pushdown::step::model::Boundary::Cut(model.range().to));
            format!("model until {}", Escaped(tensor))
        }
        step => step.name().to_owned(),
    }
}

/// The form in which the object of a stage is requested, as requests state it. `None` for whole objects and for values.
fn form(stage: Stage) -> Option<&'static str> {
    (stage == Stage::CroppedJpeg).then_some("cropped-jpeg")
}

/// The fraction of all samples by candidate.
fn fractions(plan: &Plan) -> Vec<f64> {
    let candidates = plan.fractions.first().map_or(0, Vec::len);
    (0..candidates)
        .map(|candidate| plan.fractions.iter().map(|fractions| fractions[candidate]).sum())
        .collect()
}

/// Samples per second in the last epoch; `None` if it is not told apart from the first one.
fn last_samples_per_second(plan: &Plan) -> Option<f64> {
    plan.later.map(|later| 1.0 / later.load.seconds())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size shown to people"
)]
fn bytes(bytes: f64) -> DecimalBytes {
    DecimalBytes(bytes as u64)
}

/// A replica that was found.
fn describe_replica(replica: &ReplicaReport) -> String {
    format!("{} at {} is {}", replica.id, replica.address, replica.state)
}

impl Explanation {
    /// The best plan for this many objects of which some were measured.
    pub fn new(profile: Profile, objects: u32, assumptions: &Assumptions) -> Self {
        let tiers = assumptions.tiers(&profile);
        let mut classes = profile.classes(CLASSES);
        speed_up(&mut classes, assumptions.host_speed, tiers.shared);
        assumptions.add_hits(&mut classes, &profile.pipeline);
        let rules = assumptions.rules(objects);
        Self {
            replicas: assumptions.replicas(&profile),
            uses_shared_cpus: assumptions.uses_shared_cpus(&profile),
            plan: Plan::best(&tiers, &classes, &rules),
            plain: Plan::plain(&tiers, &classes, &rules),
            profile,
            tiers,
            classes,
            rules,
            assumptions: assumptions.clone(),
        }
    }

    /// Samples to read, in all epochs.
    fn samples_left(&self) -> f64 {
        self.rules.samples_left + self.rules.later.count * self.rules.later.samples
    }

    fn rows(&self) -> Vec<StageRow<'_>> {
        let pipeline = &self.profile.pipeline;
        let row = |(index, fraction): (usize, f64)| {
            let single = self.single_split(index);
            let stage = self.classes[0].candidates[index].stage;
            let after = match stage {
                Stage::Object => "(object)".to_owned(),
                Stage::CroppedJpeg => "(cropped JPEG)".to_owned(),
                Stage::After(steps) => name(&pipeline.steps()[steps - 1]),
            };
            let mean = |cost: fn(&Candidate) -> f64| -> f64 {
                let each = self
                    .classes
                    .iter()
                    .map(|class| class.fraction * cost(&class.candidates[index]));
                each.sum()
            };
            StageRow {
                stage,
                after,
                kind: &pipeline.kinds()[stage.steps()],
                bytes: single.bytes_per_sample,
                gateway_seconds: mean(Candidate::mean_gateway_seconds),
                host_seconds: mean(|candidate| candidate.host_seconds),
                samples_per_second: 1.0 / single.load.seconds(),
                fraction,
            }
        };
        fractions(&self.plan).into_iter().enumerate().map(row).collect()
    }

    /// The fraction of the samples that the replicas compute.
    fn computed_fraction(&self) -> f64 {
        let candidates = self.classes.iter().zip(&self.plan.fractions);
        let plain = candidates.flat_map(|(class, fractions)| {
            let candidates = class.candidates.iter().zip(fractions);
            candidates.filter(|(candidate, _)| candidate.stage.is_plain())
        });
        1.0 - plain.map(|(_, fraction)| fraction).sum::<f64>()
    }

    /// A plan that splits all samples at one candidate, without the cost of weights. Only the chosen plan and plain reading
    /// include the cost of starting.
    fn single_split(&self, index: usize) -> Plan {
        let fractions = self.classes.iter().map(|class| {
            let mut fractions = vec![0.0; class.candidates.len()];
            fractions[index] = class.fraction;
            fractions
        });
        Plan::from_fractions(&self.tiers, &self.classes, fractions.collect(), &Rules::default())
    }

    /// Writes the costs of each split and the plan as text.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            tiers, plan, plain, ..
        } = self;
        writeln!(out, "measured on {} samples", self.profile.samples.len())?;
        if let Some(gateway) = &self.profile.gateway_url {
            writeln!(out, "store {}, gateway {gateway}", self.profile.endpoint)?;
        }
        writeln!(out)?;
        let rows = self.rows();
        let kinds: Vec<String> = rows.iter().map(|row| row.kind.to_string()).collect();
        let width = kinds.iter().map(String::len).max().unwrap_or_default();
        writeln!(
            out,
            "stage  {:28}  {:width$}        bytes  gateway ms  host ms  samples/s   plan",
            "after", "kind"
        )?;
        for (row, kind) in rows.iter().zip(&kinds) {
            writeln!(
                out,
                "{:>5}  {:28}  {kind:width$}  {:>11}  {:>10.2}  {:>7.2}  {:>9.1}  {:>4.0} %",
                row.stage.steps(),
                row.after,
                bytes(row.bytes).to_string(),
                1e3 * row.gateway_seconds,
                1e3 * row.host_seconds,
                row.samples_per_second,
                100.0 * row.fraction
            )?;
        }
        let (planned, plain_rate) = (1.0 / plan.load.seconds(), 1.0 / plain.load.seconds());
        writeln!(
            out,
            "\nplan: {planned:.1} samples/s, {} per sample (plain reading: {plain_rate:.1} samples/s, {}), limited by {}",
            bytes(plan.bytes_per_sample),
            bytes(plain.bytes_per_sample),
            bound(&plan.load)
        )?;
        if let Some(later) = &plan.later {
            writeln!(
                out,
                "last epoch: {:.1} samples/s, limited by {}",
                1.0 / later.load.seconds(),
                bound(&later.load)
            )?;
        }
        if self.classes.len() > 1 {
            for (class, fractions) in self.classes.iter().zip(&plan.fractions) {
                let splits: Vec<_> = class
                    .candidates
                    .iter()
                    .zip(fractions)
                    .filter(|(_, fraction)| **fraction > 0.005 * class.fraction)
                    .map(|(candidate, fraction)| {
                        let percent = 100.0 * fraction / class.fraction;
                        match candidate.stage {
                            Stage::CroppedJpeg => format!("{percent:.0} % cropped"),
                            stage => format!("{percent:.0} % at stage {}", stage.steps()),
                        }
                    })
                    .collect();
                writeln!(
                    out,
                    "  objects of about {}: {}",
                    bytes(class.candidates[0].bytes),
                    splits.join(", ")
                )?;
            }
        }
        for line in self.replicas.describe(self.computed_fraction()) {
            writeln!(out, "{line}")?;
        }
        if let [first, others @ ..] = &self.profile.replicas[..]
            && !others.is_empty()
        {
            let others = others
                .iter()
                .map(|replica| format!(", {}", describe_replica(replica)));
            writeln!(out, "  {}{}", describe_replica(first), others.collect::<String>())?;
        }
        if self.uses_shared_cpus {
            writeln!(
                out,
                "gateway and host use the same CPUs, as reported by the gateway, so their work adds up; for a gateway on its own \
                 machine, set --gateway-cores"
            )?;
        }
        let cores = if tiers.shared {
            format!("{:.1} cores shared by gateway and host", tiers.host_cores)
        } else {
            format!(
                "{:.1} cores at the gateway, {:.1} on this host",
                tiers.gateway_cores, tiers.host_cores
            )
        };
        writeln!(
            out,
            "assumed: {} samples to read, {}, {cores}; change with --epochs, --bandwidth, --store-bandwidth, --gateway-cores, \
             --host-cores, --host-speed",
            self.samples_left(),
            network(tiers),
        )?;
        match self.assumptions.describe_cache(&self.profile.pipeline) {
            Some(cache) => writeln!(out, "assumed: {cache}; change with --cached, --epochs"),
            None => Ok(()),
        }
    }

    /// The same as JSON.
    pub fn as_json(&self) -> serde_json::Value {
        let Self { profile, tiers, .. } = self;
        let finite = |number: f64| number.is_finite().then_some(number);
        let described = |plan: &Plan| {
            json!({
                "samples_per_second": finite(1.0 / plan.load.seconds()), "bytes_per_sample": plan.bytes_per_sample,
                "bound": bound(&plan.load), "shares": fractions(plan),
                "last_epoch_samples_per_second": last_samples_per_second(plan).and_then(finite),
            })
        };
        let classes: Vec<_> = self
            .classes
            .iter()
            .zip(&self.plan.fractions)
            .map(|(class, fractions)| {
                let candidates: Vec<_> = class
                    .candidates
                    .iter()
                    .zip(fractions)
                    .map(|(candidate, fraction)| {
                        json!({
                            "stage": candidate.stage.steps(), "form": form(candidate.stage), "bytes": candidate.bytes,
                            "gateway_seconds": candidate.gateway_seconds, "host_seconds": candidate.host_seconds,
                            "weights_bytes": candidate.weights_bytes, "share": fraction,
                            "cached_ratio": candidate.hits.ratio, "later_cached_ratio": candidate.hits.later_ratio,
                            "hit_seconds": candidate.hits.seconds,
                        })
                    })
                    .collect();
                json!({ "share": class.fraction, "candidates": candidates })
            })
            .collect();
        let stages: Vec<_> = self
            .rows()
            .iter()
            .map(|row| {
                let (dtype, shape) = match row.kind {
                    Kind::Image(image) => (Some("u8"), Some(json!([image.height, image.width, 3]))),
                    Kind::Tensor(tensor) => (Some(tensor.dtype.name()), Some(json!(tensor.shape))),
                    Kind::Bytes(_) | Kind::Table(_) => (None, None),
                };
                json!({
                    "stage": row.stage.steps(), "form": form(row.stage), "after": row.after, "kind": row.kind.name(), "dtype": dtype, "shape": shape,
                    "bytes": row.bytes, "gateway_seconds": row.gateway_seconds, "host_seconds": row.host_seconds,
                    "samples_per_second": finite(row.samples_per_second), "share": row.fraction,
                })
            })
            .collect();
        json!({
            "endpoint": profile.endpoint, "gateway": profile.gateway_url,
            "pipeline": profile.pipeline.to_string(), "samples": profile.samples.len(), "failed": profile.failed,
            "samples_left": self.samples_left(), "replicas": self.replicas.as_json(self.computed_fraction(), &profile.replicas),
            "tiers": {
                "gateway_cores": tiers.gateway_cores, "link_bytes_per_second": finite(tiers.link_bytes_per_second),
                "store_bytes_per_second": tiers.paths.and_then(|paths| finite(paths.store_bytes_per_second)),
                "gateway_bytes_per_second": tiers.paths.and_then(|paths| finite(paths.gateway_bytes_per_second)),
                "host_cores": tiers.host_cores, "trainer_seconds": tiers.trainer_seconds, "shared": tiers.shared,
                "has_shared_cpus": profile.has_shared_cpus,
            },
            "stages": stages, "classes": classes, "plan": described(&self.plan), "plain": described(&self.plain),
        })
    }
}
