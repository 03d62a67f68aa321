//! The planner: how far the gateway takes which samples, so that the slowest tier is as fast as it can be.
//!
//! A plan is a mixture: of each class of samples a share goes by each split. What a mixture costs each tier per sample
//! is linear in the shares, and an epoch is as slow as its slowest tier, so the best mixture is the solution of a small
//! linear program. Not to push is split 0, a candidate like any other: a plan is never slower than reading plainly, by
//! the costs it was made from. Pure: costs in, plan out.

mod simplex;
pub mod simulate;

use simplex::Tableau;

/// Plans this close to the fastest count as fast; among them the one with the fewest bytes is taken.
const TIE: f64 = 0.03;
/// What a second of the host's CPU is worth in bytes, beside bytes: little.
const HOST_SECOND: f64 = 1.0;

/// What there is to work with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tiers {
    /// Cores of the gateway that are free for this reader; 0 for none.
    pub gateway_cores: f64,
    /// Bytes per second from gateway to host; infinite where it was never the bound.
    pub link_bytes: f64,
    /// Cores of the host that are free for steps.
    pub host_cores: f64,
    /// Seconds that the trainer takes for one sample.
    pub trainer_seconds: f64,
    /// Whether gateway and host are the same machine: their work adds up, on the cores of the host.
    pub shared: bool,
}

/// What one way of a sample costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Steps that the gateway runs; 0 to read the object as it is.
    pub stage: usize,
    /// Bytes of the value at that stage.
    pub bytes: f64,
    /// CPU seconds at the gateway.
    pub gateway_seconds: f64,
    /// CPU seconds on the host.
    pub host_seconds: f64,
    /// Bytes of weights that the host still has to fetch for this, once.
    pub weights: f64,
}

/// Samples that are alike: of about the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its share of the samples; those of all classes add up to 1.
    pub share: f64,
    /// Every way that its samples can go. One has stage 0.
    pub candidates: Vec<Candidate>,
}

/// What a plan may do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// A value has at most so many times the bytes of its object.
    pub max_expand: f64,
    /// Samples that are still to come, over which weights are spread.
    pub samples_left: f64,
}

/// What limits an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The gateway's CPU.
    Gateway,
    /// The link from gateway to host.
    Link,
    /// The host's CPU.
    Host,
    /// The training itself: nothing is to be gained.
    Trainer,
}

/// What each tier needs for a sample on average, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// The gateway, all of its cores together.
    pub gateway: f64,
    /// The link.
    pub link: f64,
    /// The host, all of its cores together.
    pub host: f64,
    /// The trainer.
    pub trainer: f64,
}

/// Which share of each class goes which way.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For each class the shares of its candidates, in their order; they add up to the class's share.
    pub shares: Vec<Vec<f64>>,
    /// What each tier needs.
    pub load: Load,
    /// Mean bytes of a value.
    pub bytes: f64,
}

// === impl Rules ===

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_expand: 1.0,
            samples_left: f64::INFINITY,
        }
    }
}

// === impl Load ===

impl Load {
    /// What the slowest tier needs: seconds per sample.
    pub fn seconds(&self) -> f64 {
        self.gateway.max(self.link).max(self.host).max(self.trainer)
    }

    /// The slowest tier; of equal ones the last.
    pub fn bound(&self) -> Bound {
        let seconds = self.seconds();
        if self.trainer >= seconds {
            Bound::Trainer
        } else if self.host >= seconds {
            Bound::Host
        } else if self.link >= seconds {
            Bound::Link
        } else {
            Bound::Gateway
        }
    }
}

// === impl Tiers ===

impl Tiers {
    /// What one sample takes of each tier when it goes this way.
    fn load(&self, candidate: &Candidate) -> Load {
        let (gateway, host) = (candidate.gateway_seconds, candidate.host_seconds);
        let (gateway, host) = if self.shared {
            (0.0, (gateway + host) / self.host_cores)
        } else {
            (
                if gateway > 0.0 {
                    gateway / self.gateway_cores
                } else {
                    0.0
                },
                host / self.host_cores,
            )
        };
        Load {
            gateway,
            link: candidate.bytes / self.link_bytes,
            host,
            trainer: self.trainer_seconds,
        }
    }

    /// Whether the tiers can take a sample this way at all.
    fn can(&self, candidate: &Candidate) -> bool {
        self.shared || self.gateway_cores > 0.0 || candidate.gateway_seconds <= 0.0
    }
}

// === impl Plan ===

impl Plan {
    /// The best mixture: of those within 3 % of the fastest the one with the fewest bytes.
    ///
    /// Each class needs a candidate with stage 0, which stays whatever the rules say.
    pub fn best(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let plain = Self::plain(tiers, classes).load.seconds();
        let without = Self::among(tiers, classes, rules, 0.0, plain);
        // Weights come once and whole, however few samples need them: a mixture that has them pays before it gains.
        let candidates = classes.iter().flat_map(|class| &class.candidates);
        let weights = candidates.map(|candidate| candidate.weights).fold(0.0, f64::max);
        if weights == 0.0 {
            return without;
        }
        let with = Self::among(tiers, classes, rules, weights, plain);
        if with.load.seconds() < without.load.seconds() * (1.0 - TIE) {
            with
        } else {
            without
        }
    }

    /// The best mixture of those ways for which `weights` bytes, fetched once, are enough.
    fn among(tiers: &Tiers, classes: &[Class], rules: &Rules, weights: f64, plain: f64) -> Self {
        // (class, candidate), the plain one of each class first.
        let mut ways = Vec::new();
        for (index, class) in classes.iter().enumerate() {
            let plain = class.candidates.iter().position(|candidate| candidate.stage == 0);
            let stored = plain.map_or(f64::INFINITY, |plain| class.candidates[plain].bytes);
            ways.extend(plain.map(|plain| (index, plain)));
            ways.extend(
                class
                    .candidates
                    .iter()
                    .enumerate()
                    .filter_map(|(place, candidate)| {
                        let fits =
                            candidate.bytes <= rules.max_expand * stored && candidate.weights <= weights;
                        (Some(place) != plain && fits && tiers.can(candidate)).then_some((index, place))
                    }),
            );
        }
        let loads: Vec<Load> = ways
            .iter()
            .map(|(class, place)| tiers.load(&classes[*class].candidates[*place]))
            .collect();
        let fetching = weights / rules.samples_left.max(1.0) / tiers.link_bytes;
        let taken = solve(classes, &ways, &loads, fetching, |best| {
            // A tie costs no one who reads plainly, and the trainer waits for no one anyway.
            (best.max(tiers.trainer_seconds) * (1.0 + TIE)).min(plain)
        });
        let mut shares: Vec<Vec<f64>> = classes
            .iter()
            .map(|class| vec![0.0; class.candidates.len()])
            .collect();
        for ((class, place), share) in ways.iter().zip(&taken) {
            shares[*class][*place] = *share;
        }
        let mut plan = Self::of(tiers, classes, shares);
        plan.load.link += fetching;
        plan
    }

    /// The plan with these shares, weights apart.
    pub fn of(tiers: &Tiers, classes: &[Class], shares: Vec<Vec<f64>>) -> Self {
        let mut load = Load {
            gateway: 0.0,
            link: 0.0,
            host: 0.0,
            trainer: tiers.trainer_seconds,
        };
        let mut bytes = 0.0;
        for (class, shares) in classes.iter().zip(&shares) {
            let taken = class
                .candidates
                .iter()
                .zip(shares)
                .filter(|(_, share)| **share > 0.0);
            for (candidate, share) in taken {
                let part = tiers.load(candidate);
                load.gateway += share * part.gateway;
                load.link += share * part.link;
                load.host += share * part.host;
                bytes += share * candidate.bytes;
            }
        }
        Self { shares, load, bytes }
    }

    /// Reading all objects as they are.
    pub fn plain(tiers: &Tiers, classes: &[Class]) -> Self {
        let share =
            |class: &Class, candidate: &Candidate| if candidate.stage == 0 { class.share } else { 0.0 };
        let shares = classes
            .iter()
            .map(|class| {
                class
                    .candidates
                    .iter()
                    .map(|candidate| share(class, candidate))
                    .collect()
            })
            .collect();
        Self::of(tiers, classes, shares)
    }
}

/// The share of each way. Two programs over the same constraints: first the least time of the slowest tier, then, up to
/// the time that `tie` makes of that, the fewest bytes.
///
/// Columns: the ways, the time `t`, a slack for each tier and one for `t`. Rows: each class is shared out whole; no tier
/// takes longer than `t`; `t` has a most.
fn solve(
    classes: &[Class],
    ways: &[(usize, usize)],
    loads: &[Load],
    fetching: f64,
    tie: impl Fn(f64) -> f64,
) -> Vec<f64> {
    /// More than any time: no bound yet.
    const OPEN: f64 = 1e12;
    let tiers: [fn(&Load) -> f64; 3] = [|load| load.gateway, |load| load.link, |load| load.host];
    // What the link takes before any sample.
    let fixed = [0.0, fetching, 0.0];
    let time = ways.len();
    let columns = time + 1 + tiers.len() + 1;
    let row = || vec![0.0; columns];
    let mut rows = Vec::new();
    let mut basis = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let mut shares = row();
        for (way, (of, _)) in ways.iter().enumerate() {
            shares[way] = if *of == index { 1.0 } else { 0.0 };
        }
        rows.push((shares, class.share));
        // All of it plainly: the first way of the class.
        basis.push(ways.iter().position(|(of, _)| *of == index).unwrap_or(time));
    }
    for (slack, tier) in tiers.iter().enumerate() {
        let mut limit = row();
        for (way, load) in loads.iter().enumerate() {
            limit[way] = tier(load);
        }
        limit[time] = -1.0;
        limit[time + 1 + slack] = 1.0;
        rows.push((limit, -fixed[slack]));
        basis.push(time + 1 + slack);
    }
    let mut most = row();
    most[time] = 1.0;
    most[columns - 1] = 1.0;
    rows.push((most, OPEN));
    basis.push(columns - 1);

    // The start has to be feasible: `t` is what the slowest tier takes of plain reading.
    let slowest = (0..tiers.len()).max_by(|a, b| {
        let taken = |tier: usize| -> f64 {
            let plain = basis[..classes.len()].iter().zip(classes);
            let taken: f64 = plain
                .map(|(way, class)| loads.get(*way).map_or(0.0, tiers[tier]) * class.share)
                .sum();
            taken + fixed[tier]
        };
        taken(*a).total_cmp(&taken(*b))
    });
    basis[classes.len() + slowest.unwrap_or_default()] = time;

    let mut tableau = Tableau::new(rows, basis);
    let mut objective = row();
    objective[time] = 1.0;
    tableau.minimise(&objective);
    let best = tableau.value(time);
    tableau.bound(columns - 1, (tie(best) - best).max(0.0));
    let mut objective = row();
    for (way, (class, place)) in ways.iter().enumerate() {
        let candidate = &classes[*class].candidates[*place];
        objective[way] = candidate.bytes + HOST_SECOND * candidate.host_seconds;
    }
    tableau.minimise(&objective);
    (0..ways.len()).map(|way| tableau.value(way)).collect()
}

#[cfg(test)]
mod tests;
