//! Keeps the plan of a reader: told what happens, it says which samples go where.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Class, Costs, Lacking, Link, Loading, Plan, Rules, Tiers, UnderWay, float, hysteresis::Hysteresis,
    others::Others, recent::Recent,
};
use crate::Pipeline;

/// What is known of a data set's samples and of the tiers, and the plan that follows from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replanner {
    costs: Costs,
    link: Link,
    trainer: Recent,
    host_cores: f64,
    gateway_cores: Option<f64>,
    others: Others,
    shared: bool,
    hysteresis: Hysteresis,
    decision: Option<Decision>,
    /// CPU seconds of gateway and host that were told of since the [last turn](Replanner::elapsed).
    busy: [f64; 2],
    /// Samples that were asked for and have not come, by class and stage.
    asked: BTreeMap<(usize, usize), u64>,
    /// Stages that samples were asked for at.
    begun: BTreeSet<usize>,
}

/// A tier that is busy for so much of its time has its hands full: it does not wait for the link, or it waits for another tier
/// now and then.
const FULL: f64 = 0.7;

/// For what part of a time the CPUs at either end of the link were busy, with whatever; absent where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ends {
    /// Those of the gateway.
    pub gateway: Option<f64>,
    /// Those of the gateway with anything but steps: its store, say. Less than 0 where steps ended that had begun before.
    pub beside_steps: Option<f64>,
    /// Those of this host.
    pub host: Option<f64>,
}

/// A plan with what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The tiers as they seem.
    pub tiers: Tiers,
    /// What samples seem to cost.
    pub classes: Vec<Class>,
    /// What the plan may do.
    pub rules: Rules,
    /// Which share of each class goes which way.
    pub plan: Plan,
}

impl Decision {
    /// Whether a sample goes a way that needs weights which the host lacks.
    pub fn needs_weights(&self) -> bool {
        let taken = self.classes.iter().zip(&self.plan.shares);
        let mut taken = taken.flat_map(|(class, shares)| class.candidates.iter().zip(shares));
        taken.any(|(way, share)| *share > 0.0 && way.weights > 0.0)
    }

    /// The [share](Plan::room) of samples that may go up to a stage for a trial, besides what a plan has.
    pub fn room(&self, plan: &Plan, stage: usize) -> f64 {
        let that_way = |class: &Class| {
            let candidates = class.candidates.iter();
            candidates
                .map(|way| if way.stage == stage { class.share } else { 0.0 })
                .collect()
        };
        let shares = self.classes.iter().map(that_way).collect();
        let alone = Rules {
            under_way: UnderWay::default(),
            ..self.rules
        };
        // Which a sample takes whichever way it goes.
        let tiers = Tiers {
            beside_steps: 0.0,
            ..self.tiers
        };
        plan.room(&Plan::of(&tiers, &self.classes, shares, &alone).load)
    }

    /// The best plan until those weights are here; none where every plan needs them.
    pub fn meanwhile(&self) -> Option<Plan> {
        Plan::meanwhile(&self.tiers, &self.classes, &self.rules)
    }
}

impl Replanner {
    /// Nothing known yet, of classes of which each is a share of the samples with so many bytes stored; steps run on so
    /// many cores of this host.
    pub fn new(pipeline: &Pipeline, classes: &[(f64, f64)], host_cores: f64) -> Self {
        Self {
            costs: Costs::new(pipeline, classes),
            link: Link::default(),
            trainer: Recent::default(),
            host_cores,
            gateway_cores: None,
            others: Others::default(),
            shared: false,
            hysteresis: Hysteresis::default(),
            decision: None,
            busy: [0.0; 2],
            asked: BTreeMap::new(),
            begun: BTreeSet::new(),
        }
    }

    /// Objects of a class have so many bytes stored on average: told where no listing does.
    pub fn stored(&mut self, class: usize, bytes: f64) {
        self.costs.stored(class, bytes);
    }

    /// The host took so many seconds for a sample's steps from `first` on, so many that ran as one.
    pub fn host(&mut self, class: usize, first: usize, steps: usize, seconds: f64) {
        self.busy[1] += seconds;
        self.costs.host(class, first, steps, seconds);
    }

    /// The gateway took so many seconds for a sample up to `stage`.
    pub fn gateway(&mut self, class: usize, stage: usize, seconds: f64) {
        self.busy[0] += seconds;
        self.others.steps(seconds);
        self.costs.gateway(class, stage, seconds);
    }

    /// A sample is asked for at a stage.
    pub fn asked(&mut self, class: usize, stage: usize) {
        *self.asked.entry((class, stage)).or_default() += 1;
        self.begun.insert(stage);
    }

    /// A sample that was asked for at a stage is here, or will not come.
    pub fn ended(&mut self, class: usize, stage: usize) {
        self.others.came();
        if let Some(count) = self.asked.get_mut(&(class, stage)) {
            *count -= 1;
            if *count == 0 {
                self.asked.remove(&(class, stage));
            }
        }
    }

    /// So many bytes came for a value of `stage`; see [`Costs::value`].
    pub fn value(&mut self, class: usize, stage: usize, bytes: f64, stored_instead: bool) {
        self.costs.value(class, stage, bytes, stored_instead);
    }

    /// So many seconds passed since this was called last. What was [seen](Link::seen) of the link in them is its rate only
    /// where neither of its ends had its hands full: with steps, by what was told of samples, or with anything.
    pub fn elapsed(&mut self, seconds: f64, ends: &Ends) {
        if let Some(part) = ends.beside_steps {
            let full = ends.gateway.is_some_and(|busy| busy >= FULL);
            self.others.passed(seconds, part, full);
        }
        let [gateway, host] = std::mem::take(&mut self.busy);
        let full = |busy: f64, cores: f64, end: Option<f64>| {
            busy >= FULL * seconds * cores || end.is_some_and(|part| part >= FULL)
        };
        let gateway_full = self
            .gateway_cores
            .is_some_and(|cores| full(gateway, cores, ends.gateway));
        self.link
            .settle(gateway_full || full(host, self.host_cores, ends.host));
    }

    /// The link, to be told of more.
    pub const fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    /// The trainer took so many seconds for a sample.
    pub fn trainer(&mut self, seconds: f64) {
        self.trainer.add(seconds);
    }

    /// The gateway has so many cores for this reader.
    pub fn gateway_cores(&mut self, cores: f64) {
        if cores.is_finite() && cores >= 0.0 {
            self.gateway_cores = Some(cores);
        }
    }

    /// Whether both sides work on the same CPUs, so that their work [adds up](Tiers::shared). Until this is told they do not.
    pub const fn shared(&mut self, shared: bool) {
        self.shared = shared;
    }

    /// What those samples cost that have not come.
    fn work_under_way(&self, classes: &[Class]) -> UnderWay {
        let mut all = UnderWay::default();
        for ((class, stage), count) in &self.asked {
            let candidates = classes.get(*class).map_or(&[][..], |class| &class.candidates);
            if let Some(way) = candidates.iter().find(|way| way.stage == *stage) {
                let count = float(*count);
                all.gateway_seconds += count * way.gateway_seconds;
                all.bytes += count * way.bytes;
                all.host_seconds += count * way.host_seconds;
            }
        }
        all
    }

    /// Plans again, behind a batch, for the samples that are still to be asked for, behind those that are under way. Layers
    /// of a way are loaded, or being loaded, once a sample was asked for that goes it.
    ///
    /// `None` while too little is known: of either side, or of the gateway's cores.
    pub fn next_batch(&mut self, mut lacking: Lacking, rules: &Rules) -> Option<&Decision> {
        for (stage, loading) in lacking.loading.iter_mut().enumerate() {
            if self.begun.contains(&stage) {
                *loading = Loading::default();
            }
        }
        if let Some(classes) = self.costs.classes(&lacking)
            && let Some(gateway_cores) = self.gateway_cores
        {
            let tiers = Tiers {
                gateway_cores,
                beside_steps: self.others.seconds(),
                link_bytes: self.link.rate().unwrap_or(f64::INFINITY),
                host_cores: self.host_cores,
                trainer_seconds: self.trainer.median().unwrap_or_default(),
                shared: self.shared,
            };
            let rules = Rules {
                under_way: self.work_under_way(&classes),
                ..*rules
            };
            let plan = self.hysteresis.decide(&tiers, &classes, &rules);
            self.decision = Some(Decision {
                tiers,
                classes,
                rules,
                plan,
            });
        }
        self.costs.next_batch();
        self.link.next_batch();
        self.trainer.next_batch();
        self.decision()
    }

    /// The plan in force.
    pub const fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }
}

#[cfg(test)]
mod tests;
