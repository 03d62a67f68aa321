//! Plans again while an epoch runs.

use super::{Candidate, Class, Plan, Rules, Tiers};

/// A plan stays until another one is so much faster: measurements are never the same twice.
const FASTER: f64 = 0.04;
/// Or sends so much less.
const LESS: f64 = 0.10;

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Hysteresis {
    /// For each class its stages, each with its part of the class.
    ways: Option<Vec<Vec<(usize, f64)>>>,
}

impl Hysteresis {
    /// The plan to go on with, by what is known now. The plan in force stays while it is about as good as the best one;
    /// it never stays behind reading plainly.
    pub(super) fn decide(&mut self, tiers: &Tiers, classes: &[Class], rules: &Rules) -> Plan {
        let best = Plan::best(tiers, classes, rules);
        let seconds = best.seconds(rules);
        let plain = Plan::plain(tiers, classes, rules).seconds(rules);
        if let Some(stays) = self.current(tiers, classes, rules)
            && stays.seconds(rules) <= (seconds * (1.0 + FASTER)).min(plain)
            && stays.bytes * (1.0 - LESS) <= best.bytes
        {
            return stays;
        }
        let ways = classes.iter().zip(&best.shares).map(|(class, shares)| {
            let taken = class.candidates.iter().zip(shares);
            let taken = taken.filter(|(_, share)| **share > 0.0);
            taken
                .map(|(way, share)| (way.stage, share / class.share))
                .collect()
        });
        self.ways = Some(ways.collect());
        best
    }

    /// The plan in force at today's costs; `None` where it can no longer be kept to.
    fn current(&self, tiers: &Tiers, classes: &[Class], rules: &Rules) -> Option<Plan> {
        let ways = self.ways.as_ref().filter(|ways| ways.len() == classes.len())?;
        let mut shares = Vec::new();
        for (class, ways) in classes.iter().zip(ways) {
            let stored = class.candidates.iter().find(|way| way.stage == 0)?.bytes;
            let mut of_class = vec![0.0; class.candidates.len()];
            for (stage, part) in ways {
                let place = class.candidates.iter().position(|way| way.stage == *stage)?;
                let way: &Candidate = &class.candidates[place];
                if *stage > 0 && (way.bytes > rules.max_expand * stored || !tiers.can(way)) {
                    return None;
                }
                of_class[place] = part * class.share;
            }
            shares.push(of_class);
        }
        Some(Plan::of(tiers, classes, shares, rules))
    }
}
