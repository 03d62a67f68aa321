//! Epochs without a clock: what the planner's simulator makes of recorded costs, for `bench/e2e` to hold
//! against epochs that were timed.

use anyhow::Result;
use pushdown::plan::{Bound, Candidate, Class, Plan, Rules, Tiers, simulate};
use serde::{Deserialize, Serialize};

/// What was recorded, and for which epoch.
#[derive(Debug, Deserialize)]
pub struct Recorded {
    samples: usize,
    plain: Way,
    pushed: Way,
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

/// Seconds that an epoch takes.
#[derive(Debug, Serialize)]
pub struct Epochs {
    plain: f64,
    pushed: f64,
    /// By the best mixture of both.
    auto: f64,
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
        link_bytes: recorded.link_bits.map_or(f64::INFINITY, |bits| bits / 8.0),
        host_cores: recorded.host_cores,
        trainer_seconds: recorded.trainer_seconds,
        shared: false,
    };
    let candidate = |stage, way: &Way| Candidate {
        stage,
        bytes: way.bytes,
        gateway_seconds: way.store_seconds,
        host_seconds: way.host_seconds,
        weights: 0.0,
    };
    let classes = [Class {
        share: 1.0,
        candidates: vec![candidate(0, &recorded.plain), candidate(1, &recorded.pushed)],
    }];
    let epoch = |plan: &Plan| simulate::run(&tiers, &simulate::jobs(&classes, plan, recorded.samples));
    let rules = Rules {
        samples_left: f64::from(u32::try_from(recorded.samples).unwrap_or(u32::MAX)),
        ..Rules::default()
    };
    let best = Plan::best(&tiers, &classes, &rules);
    Ok(Epochs {
        plain: epoch(&Plan::plain(&tiers, &classes, &rules)),
        pushed: epoch(&Plan::of(&tiers, &classes, vec![vec![0.0, 1.0]], &rules)),
        auto: epoch(&best),
        bound: match best.load.bound() {
            Bound::Gateway => "gateway",
            Bound::Link => "link",
            Bound::Host => "host",
            Bound::Trainer => "trainer",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_as_long_as_its_slowest_tier() {
        let epochs = run(
            r#"{"samples": 1000, "store_cores": 1, "host_cores": 1, "link_bits": 8e6,
                "plain": {"bytes": 1e5, "store_seconds": 1e-3, "host_seconds": 1e-2},
                "pushed": {"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 1e-3}}"#,
        )
        .unwrap();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(epochs.plain, 100.0), "the link: {epochs:?}");
        assert!(near(epochs.pushed, 10.0), "the store's side: {epochs:?}");
        // A part goes plainly as long as the link has nothing else to do.
        assert!(epochs.auto < 0.97 * epochs.pushed, "{epochs:?}");
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
        for way in [epochs.plain, epochs.pushed, epochs.auto] {
            assert!((way / 20.0 - 1.0).abs() < 0.01, "{epochs:?}");
        }
    }
}
