//! A plan and what it was made from, for people and as JSON.

use std::io::{self, Write};

use indicatif::DecimalBytes;
use pushdown::{
    Kind, Step,
    plan::{Bound, Candidate, Class, Load, Plan, Rules, Tiers},
    step::model::Boundary,
};
use pushdown_client::Profile;
use serde_json::json;

/// A plan, what it was made from, and plain reading beside it.
pub(super) struct Explained {
    pub(super) profile: Profile,
    pub(super) tiers: Tiers,
    /// The plan counts on what was found: both sides have the same CPUs.
    pub(super) same_cpus: bool,
    pub(super) classes: Vec<Class>,
    pub(super) rules: Rules,
    pub(super) plan: Plan,
    pub(super) plain: Plan,
}

/// What a split at a stage comes to, all classes together.
struct Row<'a> {
    stage: usize,
    after: String,
    kind: &'a Kind,
    bytes: f64,
    gateway_seconds: f64,
    host_seconds: f64,
    samples_per_second: f64,
    /// The share of the samples that the plan sends this way.
    share: f64,
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
pub(crate) fn name(step: &Step) -> String {
    match step {
        Step::Model(model) => {
            let (tensor, _) = model.model().tensor(Boundary::Cut(model.range().to));
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

impl Explained {
    fn rows(&self) -> Vec<Row<'_>> {
        let pipeline = &self.profile.pipeline;
        let row = |(place, share): (usize, f64)| {
            let all = self.one_way(place);
            let stage = self.classes[0].candidates[place].stage;
            let step = stage.checked_sub(1).map(|step| &pipeline.steps()[step]);
            let mean = |what: fn(&Candidate) -> f64| -> f64 {
                let each = self
                    .classes
                    .iter()
                    .map(|class| class.share * what(&class.candidates[place]));
                each.sum()
            };
            Row {
                stage,
                after: step.map_or_else(|| "(object)".to_owned(), name),
                kind: &pipeline.kinds()[stage],
                bytes: all.bytes_per_sample,
                gateway_seconds: mean(|way| way.gateway_seconds),
                host_seconds: mean(|way| way.host_seconds),
                samples_per_second: 1.0 / all.load.seconds(),
                share,
            }
        };
        shares(&self.plan).into_iter().enumerate().map(row).collect()
    }

    /// All samples that way, each class alike, once weights are there: stages are held against each other by what each
    /// sample costs, and only the plan and plain reading by what it takes to begin.
    fn one_way(&self, place: usize) -> Plan {
        let shares = self.classes.iter().map(|class| {
            let mut shares = vec![0.0; class.candidates.len()];
            shares[place] = class.share;
            shares
        });
        Plan::from_shares(&self.tiers, &self.classes, shares.collect(), &Rules::default())
    }

    pub(super) fn table(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            tiers, plan, plain, ..
        } = self;
        writeln!(out, "measured on {} samples\n", self.profile.samples.len())?;
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
                row.stage,
                row.after,
                bytes(row.bytes).to_string(),
                1e3 * row.gateway_seconds,
                1e3 * row.host_seconds,
                row.samples_per_second,
                100.0 * row.share
            )?;
        }
        let (planned, plainly) = (1.0 / plan.load.seconds(), 1.0 / plain.load.seconds());
        writeln!(
            out,
            "\nplan: {planned:.1} samples/s and {} a sample, against {plainly:.1} and {} plainly; what limits it is {}",
            bytes(plan.bytes_per_sample),
            bytes(plain.bytes_per_sample),
            bound(&plan.load)
        )?;
        if self.classes.len() > 1 {
            for (class, shares) in self.classes.iter().zip(&plan.shares) {
                let ways = class
                    .candidates
                    .iter()
                    .zip(shares)
                    .filter(|(_, share)| **share > 0.005 * class.share);
                let ways: Vec<_> = ways
                    .map(|(way, share)| {
                        format!("{:.0} % at stage {}", 100.0 * share / class.share, way.stage)
                    })
                    .collect();
                writeln!(
                    out,
                    "  objects of about {}: {}",
                    bytes(class.candidates[0].bytes),
                    ways.join(", ")
                )?;
            }
        }
        let link = if tiers.link_bytes_per_second.is_finite() {
            format!("{:.0} Mbit/s", tiers.link_bytes_per_second * 8.0 / 1e6)
        } else {
            "open".to_owned()
        };
        if self.same_cpus {
            writeln!(
                out,
                "gateway and host compute on the same CPUs, as the gateway tells: their work adds up; for a gateway on a machine of \
                 its own, give --gateway-cores"
            )?;
        }
        let cores = if tiers.shared {
            format!("{:.1} cores that gateway and host share", tiers.host_cores)
        } else {
            format!(
                "{:.1} cores at the gateway, {:.1} here",
                tiers.gateway_cores, tiers.host_cores
            )
        };
        writeln!(
            out,
            "assumed: {} samples to read, link {link}, {cores}; change them by --epochs, --bandwidth, --gateway-cores, \
             --host-cores, --host-speed",
            self.rules.samples_left,
        )
    }

    pub(super) fn as_json(&self) -> serde_json::Value {
        let Self { profile, tiers, .. } = self;
        let finite = |number: f64| number.is_finite().then_some(number);
        let described = |plan: &Plan| {
            json!({
                "samples_per_second": finite(1.0 / plan.load.seconds()), "bytes_per_sample": plan.bytes_per_sample,
                "bound": bound(&plan.load), "shares": shares(plan),
            })
        };
        let classes: Vec<_> = self
            .classes
            .iter()
            .zip(&self.plan.shares)
            .map(|(class, shares)| {
                let ways: Vec<_> = class
                    .candidates
                    .iter()
                    .zip(shares)
                    .map(|(way, share)| {
                        json!({
                            "stage": way.stage, "bytes": way.bytes, "gateway_seconds": way.gateway_seconds,
                            "host_seconds": way.host_seconds, "weights": way.weights_bytes, "share": share,
                        })
                    })
                    .collect();
                json!({ "share": class.share, "ways": ways })
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
                    "stage": row.stage, "after": row.after, "kind": row.kind.name(), "dtype": dtype, "shape": shape,
                    "bytes": row.bytes, "gateway_seconds": row.gateway_seconds, "host_seconds": row.host_seconds,
                    "samples_per_second": finite(row.samples_per_second), "share": row.share,
                })
            })
            .collect();
        json!({
            "pipeline": profile.pipeline.to_string(), "samples": profile.samples.len(), "failed": profile.failed,
            "samples_left": self.rules.samples_left,
            "tiers": {
                "gateway_cores": tiers.gateway_cores, "link_bytes": finite(tiers.link_bytes_per_second), "host_cores": tiers.host_cores,
                "trainer_seconds": tiers.trainer_seconds, "shared": tiers.shared,
                "same_cpus": profile.same_cpus,
            },
            "stages": stages, "classes": classes, "plan": described(&self.plan), "plain": described(&self.plain),
        })
    }
}
