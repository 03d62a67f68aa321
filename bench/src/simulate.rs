//! Epochs without a clock: what the planner's simulator makes of recorded costs, for `bench/e2e` to hold
//! against epochs that were timed.

use std::num::NonZeroUsize;

use anyhow::Result;
use pushdown::plan::{
    Bound, Candidate, Class, LoadingCost, Plan, Rules, Tiers,
    simulate::{self, ReadAhead},
};
use serde::{Deserialize, Serialize};

/// What was recorded, and for which epoch.
#[derive(Debug, Deserialize)]
pub struct Recorded {
    samples: usize,
    /// Samples that the accelerator takes at once.
    #[serde(default = "one")]
    batch_size: NonZeroUsize,
    plain: Way,
    pushed: Way,
    auto: Option<Mixture>,
    /// Cores on the store's side, for store and gateway together.
    store_cores: f64,
    host_cores: f64,
    /// Seconds that an accelerator takes for one sample.
    #[serde(default)]
    trainer_seconds: f64,
    /// Bits per second; none for a link that is never waited for.
    link_bits: Option<f64>,
}

/// What a sample costs when it goes one way.
#[derive(Debug, Deserialize)]
struct Way {
    /// On the wire.
    bytes: f64,
    /// CPU seconds of store and gateway.
    store_seconds: f64,
    /// CPU seconds of the reader.
    host_seconds: f64,
}

/// What a sample costs where some go either way. Two busy sides slow each other down, so that this is more than the sum of what
/// the ways cost alone.
#[derive(Debug, Deserialize)]
struct Mixture {
    /// The share of samples that come as they are stored.
    plainly: f64,
    #[serde(flatten)]
    cost: Way,
}

/// Seconds that an epoch takes.
#[derive(Debug, Serialize)]
pub struct Epochs {
    plain: f64,
    pushed: f64,
    /// By the mixture that was recorded, at what it cost.
    auto: Option<f64>,
    /// By the best mixture of both, at what they cost alone.
    best: f64,
    /// What limits that.
    bound: &'static str,
}

/// Simulates the epoch in every way.
///
/// # Errors
/// When what was recorded is not JSON of this form.
pub fn run(recorded: &str) -> Result<Epochs> {
    let recorded: Recorded = serde_json::from_str(recorded)?;
    let tiers = Tiers {
        gateway_cores: recorded.store_cores,
        // Those are in what each way costs.
        background_seconds: 0.0,
        link_bytes_per_second: recorded.link_bits.map_or(f64::INFINITY, |bits| bits / 8.0),
        host_cores: recorded.host_cores,
        trainer_seconds: recorded.trainer_seconds,
        shared: false,
    };
    let (plain, pushed) = (&recorded.plain, &recorded.pushed);
    let classes = classes(plain, pushed);
    let of = |classes: &[Class], plan: &Plan| {
        let samples = simulate::sample_costs(classes, plan, recorded.samples);
        simulate::epoch_seconds(&tiers, &samples, ReadAhead::for_batch(recorded.batch_size))
    };
    let epoch = |plan: &Plan| of(&classes, plan);
    let rules = Rules {
        samples_left: number(recorded.samples),
        batch_size: number(recorded.batch_size.get()),
        ..Rules::default()
    };
    let best = Plan::best(&tiers, &classes, &rules);
    let auto = recorded.auto.as_ref().map(|mixture| {
        let classes = mixture.classes(plain, pushed);
        let shares = vec![vec![mixture.plainly, 1.0 - mixture.plainly]];
        let plan = Plan::from_shares(&tiers, &classes, shares, &rules);
        of(&classes, &plan)
    });
    Ok(Epochs {
        plain: epoch(&Plan::plain(&tiers, &classes, &rules)),
        pushed: epoch(&Plan::from_shares(&tiers, &classes, vec![vec![0.0, 1.0]], &rules)),
        auto,
        best: epoch(&best),
        bound: match best.load.bound() {
            Bound::Gateway => "gateway",
            Bound::Link => "link",
            Bound::Host => "host",
            Bound::Trainer => "trainer",
        },
    })
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Where nothing tells of batches.
const fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// All samples cost the same, and go either way.
fn classes(plain: &Way, pushed: &Way) -> [Class; 1] {
    let candidate = |stage, way: &Way| Candidate {
        stage,
        bytes: way.bytes,
        gateway_seconds: way.store_seconds,
        host_seconds: way.host_seconds,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
    };
    [Class {
        share: 1.0,
        candidates: vec![candidate(0, plain), candidate(1, pushed)],
    }]
}

impl Mixture {
    /// The ways at what they cost together: each tier's costs are as many times those of the ways alone.
    fn classes(&self, plain: &Way, pushed: &Way) -> [Class; 1] {
        let times = |cost: fn(&Way) -> f64| {
            let alone = self.plainly * cost(plain) + (1.0 - self.plainly) * cost(pushed);
            if alone > 0.0 {
                cost(&self.cost) / alone
            } else {
                1.0
            }
        };
        let (bytes, store, host) = (
            times(|way| way.bytes),
            times(|way| way.store_seconds),
            times(|way| way.host_seconds),
        );
        let together = |way: &Way| Way {
            bytes: way.bytes * bytes,
            store_seconds: way.store_seconds * store,
            host_seconds: way.host_seconds * host,
        };
        classes(&together(plain), &together(pushed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_as_long_as_its_slowest_tier() {
        let epochs = run(
            r#"{"samples": 1000, "batch_size": 32, "store_cores": 1, "host_cores": 1, "link_bits": 8e6,
                "plain": {"bytes": 1e5, "store_seconds": 1e-3, "host_seconds": 1e-2},
                "pushed": {"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 1e-3}}"#,
        )
        .unwrap();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(epochs.plain, 100.0), "the link: {epochs:?}");
        assert!(near(epochs.pushed, 10.0), "the store's side: {epochs:?}");
        // A part goes plainly as long as the link has nothing else to do.
        assert!(epochs.best < 0.97 * epochs.pushed, "{epochs:?}");
        assert!(epochs.auto.is_none(), "no mixture was recorded: {epochs:?}");
        // The best mixture keeps both busy.
        assert!(["gateway", "link"].contains(&epochs.bound), "{epochs:?}");
        assert!(run("{}").is_err());
    }

    #[test]
    fn an_accelerator_that_is_slower_than_all_is_the_bound() {
        let epochs = run(
            r#"{"samples": 1000, "store_cores": 1, "host_cores": 1, "link_bits": null, "trainer_seconds": 0.02,
                "plain": {"bytes": 1e5, "store_seconds": 1e-3, "host_seconds": 1e-2},
                "pushed": {"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 1e-3}}"#,
        )
        .unwrap();
        assert_eq!(epochs.bound, "trainer", "{epochs:?}");
        for way in [epochs.plain, epochs.pushed, epochs.best] {
            assert!((way / 20.0 - 1.0).abs() < 0.01, "{epochs:?}");
        }
    }

    /// The accelerator begins once the whole of its first batch is there.
    #[test]
    fn an_accelerator_takes_batches() {
        let of = |batch_size: u32| {
            let recorded = format!(
                r#"{{"samples": 320, "batch_size": {batch_size}, "store_cores": 1, "host_cores": 1, "link_bits": null,
                    "trainer_seconds": 0.01,
                    "plain": {{"bytes": 1e5, "store_seconds": 0, "host_seconds": 1e-2}},
                    "pushed": {{"bytes": 1e3, "store_seconds": 5e-3, "host_seconds": 0}}}}"#
            );
            run(&recorded).unwrap()
        };
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        let (one, batches) = (of(1), of(32));
        assert!(
            near(one.plain, 3.21) && near(batches.plain, 3.52),
            "{one:?} {batches:?}"
        );
        assert!(
            near(one.pushed, 3.205) && near(batches.pushed, 3.36),
            "{one:?} {batches:?}"
        );
        assert!(near(of(320).plain, 6.4));
    }

    #[test]
    fn a_mixture_takes_what_it_cost() {
        let of = |plainly: f64, store: f64, host: f64| {
            let recorded = format!(
                r#"{{"samples": 1000, "store_cores": 1, "host_cores": 1, "link_bits": null,
                    "plain": {{"bytes": 1e5, "store_seconds": 0, "host_seconds": 1e-2}},
                    "pushed": {{"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 0}},
                    "auto": {{"plainly": {plainly}, "bytes": 5e4, "store_seconds": {store}, "host_seconds": {host}}}}}"#
            );
            run(&recorded).unwrap().auto.unwrap()
        };
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.02;
        assert!(near(of(0.5, 5e-3, 5e-3), 5.0), "as each alone");
        assert!(near(of(0.5, 7.5e-3, 6e-3), 7.5), "both slow each other down");
        assert!(near(of(0.8, 2e-3, 8e-3), 8.0), "the host is the bound");
        assert!(near(of(0.0, 1e-2, 0.0), 10.0), "all of one kind");
    }
}
