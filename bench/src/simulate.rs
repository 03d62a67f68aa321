//! Simulates epochs from recorded costs with the planner's simulator, for `bench/e2e` to compare with measured epochs.

use std::num::NonZeroUsize;

use anyhow::Result;
use pushdown::plan::{
    Bound, CacheHits, Candidate, Class, LoadingCost, Plan, Rules, Stage, Tiers,
    simulate::{self, ReadAhead},
};
use serde::{Deserialize, Serialize};

/// Recorded costs of an epoch.
#[derive(Debug, Deserialize)]
pub struct RecordedCosts {
    samples: usize,
    /// Samples per batch of the accelerator.
    #[serde(default = "one")]
    batch_size: NonZeroUsize,
    plain: SampleCost,
    pushed: SampleCost,
    auto: Option<MixedCost>,
    /// Cores of the store's host, shared by store and gateway.
    store_cores: f64,
    host_cores: f64,
    /// Seconds that the accelerator takes per sample.
    #[serde(default)]
    trainer_seconds: f64,
    /// Bits per second; `None` for a link without a limit.
    link_bits: Option<f64>,
}

/// The cost of a sample with one split.
#[derive(Debug, Deserialize)]
struct SampleCost {
    /// Bytes transferred.
    bytes: f64,
    /// CPU seconds of store and gateway.
    store_seconds: f64,
    /// CPU seconds of the reader.
    host_seconds: f64,
}

/// The mean cost of a sample in an epoch with both splits. Two busy hosts slow each other down, so that this is more than the
/// weighted mean of the separate costs.
#[derive(Debug, Deserialize)]
struct MixedCost {
    /// The fraction of samples that are read as stored.
    #[serde(rename = "plainly")]
    plain_ratio: f64,
    #[serde(flatten)]
    cost: SampleCost,
}

/// Simulated seconds per epoch.
#[derive(Debug, Serialize)]
pub struct EpochSeconds {
    plain: f64,
    pushed: f64,
    /// With the recorded mixture of splits, at its recorded cost.
    auto: Option<f64>,
    /// With the optimal mixture of splits, at their separate costs.
    best: f64,
    /// The bottleneck of `best`.
    bound: &'static str,
}

/// Simulates the epoch with each split.
///
/// # Errors
/// If `recorded` is not JSON of [`RecordedCosts`].
pub fn run(recorded: &str) -> Result<EpochSeconds> {
    let recorded: RecordedCosts = serde_json::from_str(recorded)?;
    let tiers = Tiers {
        gateway_cores: recorded.store_cores,
        // Background load is included in the recorded costs.
        background_seconds: 0.0,
        link_bytes_per_second: recorded.link_bits.map_or(f64::INFINITY, |bits| bits / 8.0),
        paths: None,
        host_cores: recorded.host_cores,
        trainer_seconds: recorded.trainer_seconds,
        shared: false,
    };
    let (plain, pushed) = (&recorded.plain, &recorded.pushed);
    let classes = classes(plain, pushed);
    let epoch_seconds = |classes: &[Class], plan: &Plan| {
        let samples = simulate::sample_costs(classes, plan, recorded.samples);
        simulate::epoch_seconds(&tiers, &samples, ReadAhead::for_batch(recorded.batch_size))
    };
    let epoch = |plan: &Plan| epoch_seconds(&classes, plan);
    let rules = Rules {
        samples_left: number(recorded.samples),
        batch_size: number(recorded.batch_size.get()),
        ..Rules::default()
    };
    let best = Plan::best(&tiers, &classes, &rules);
    let auto = recorded.auto.as_ref().map(|mixture| {
        let classes = mixture.classes(plain, pushed);
        let fractions = vec![vec![mixture.plain_ratio, 1.0 - mixture.plain_ratio]];
        let plan = Plan::from_fractions(&tiers, &classes, fractions, &rules);
        epoch_seconds(&classes, &plan)
    });
    Ok(EpochSeconds {
        plain: epoch(&Plan::plain(&tiers, &classes, &rules)),
        pushed: epoch(&Plan::from_fractions(
            &tiers,
            &classes,
            vec![vec![0.0, 1.0]],
            &rules,
        )),
        auto,
        best: epoch(&best),
        bound: match best.load.bound() {
            Bound::Gateway => "gateway",
            Bound::Link | Bound::GatewayPath | Bound::StorePath => "link",
            Bound::Host => "host",
            Bound::Trainer => "trainer",
        },
    })
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// The default batch size.
const fn one() -> NonZeroUsize {
    NonZeroUsize::MIN
}

/// A class of samples of equal cost with two candidate splits.
fn classes(plain: &SampleCost, pushed: &SampleCost) -> [Class; 1] {
    let candidate = |stage, cost: &SampleCost| Candidate {
        stage,
        bytes: cost.bytes,
        gateway_seconds: cost.store_seconds,
        host_seconds: cost.host_seconds,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
        hits: CacheHits::default(),
    };
    [Class {
        fraction: 1.0,
        candidates: vec![
            candidate(Stage::Object, plain),
            candidate(Stage::After(1), pushed),
        ],
    }]
}

impl MixedCost {
    /// Classes with the costs of both splits scaled, per resource, so that their mixture has the recorded cost.
    fn classes(&self, plain: &SampleCost, pushed: &SampleCost) -> [Class; 1] {
        let scale = |resource: fn(&SampleCost) -> f64| {
            let separate = self.plain_ratio * resource(plain) + (1.0 - self.plain_ratio) * resource(pushed);
            if separate > 0.0 {
                resource(&self.cost) / separate
            } else {
                1.0
            }
        };
        let (bytes, store, host) = (
            scale(|cost| cost.bytes),
            scale(|cost| cost.store_seconds),
            scale(|cost| cost.host_seconds),
        );
        let scaled = |cost: &SampleCost| SampleCost {
            bytes: cost.bytes * bytes,
            store_seconds: cost.store_seconds * store,
            host_seconds: cost.host_seconds * host,
        };
        classes(&scaled(plain), &scaled(pushed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_as_long_as_its_slowest_tier() {
        let epochs = run(
            r#"{"samples": 1000, "batch_size": 32, "store_cores": 1, "host_cores": 1, "link_bits": 8e6,
                "plain": {"bytes": 1e5, "store_seconds": 1e-3, "host_seconds": 1e-2},
                "pushed": {"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 1e-3}}"#,
        )
        .unwrap();
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
        assert!(near(epochs.plain, 100.0), "the link: {epochs:?}");
        assert!(near(epochs.pushed, 10.0), "the gateway: {epochs:?}");
        // Some samples are read as stored while the link has spare capacity.
        assert!(epochs.best < 0.97 * epochs.pushed, "{epochs:?}");
        assert!(epochs.auto.is_none(), "no mixture was recorded: {epochs:?}");
        // The optimal mixture saturates both.
        assert!(["gateway", "link"].contains(&epochs.bound), "{epochs:?}");
        assert!(run("{}").is_err());
    }

    #[test]
    fn an_accelerator_slower_than_all_tiers_is_the_bottleneck() {
        let epochs = run(
            r#"{"samples": 1000, "store_cores": 1, "host_cores": 1, "link_bits": null, "trainer_seconds": 0.02,
                "plain": {"bytes": 1e5, "store_seconds": 1e-3, "host_seconds": 1e-2},
                "pushed": {"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 1e-3}}"#,
        )
        .unwrap();
        assert_eq!(epochs.bound, "trainer", "{epochs:?}");
        for seconds in [epochs.plain, epochs.pushed, epochs.best] {
            assert!((seconds / 20.0 - 1.0).abs() < 0.01, "{epochs:?}");
        }
    }

    /// The accelerator starts once its first batch is complete.
    #[test]
    fn an_accelerator_processes_whole_batches() {
        let simulate = |batch_size: u32| {
            let recorded = format!(
                r#"{{"samples": 320, "batch_size": {batch_size}, "store_cores": 1, "host_cores": 1, "link_bits": null,
                    "trainer_seconds": 0.01,
                    "plain": {{"bytes": 1e5, "store_seconds": 0, "host_seconds": 1e-2}},
                    "pushed": {{"bytes": 1e3, "store_seconds": 5e-3, "host_seconds": 0}}}}"#
            );
            run(&recorded).unwrap()
        };
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6;
        let (one, batches) = (simulate(1), simulate(32));
        assert!(
            near(one.plain, 3.21) && near(batches.plain, 3.52),
            "{one:?} {batches:?}"
        );
        assert!(
            near(one.pushed, 3.205) && near(batches.pushed, 3.36),
            "{one:?} {batches:?}"
        );
        assert!(near(simulate(320).plain, 6.4));
    }

    #[test]
    fn a_mixture_takes_its_recorded_cost() {
        let simulate = |plain_ratio: f64, store: f64, host: f64| {
            let recorded = format!(
                r#"{{"samples": 1000, "store_cores": 1, "host_cores": 1, "link_bits": null,
                    "plain": {{"bytes": 1e5, "store_seconds": 0, "host_seconds": 1e-2}},
                    "pushed": {{"bytes": 1e3, "store_seconds": 1e-2, "host_seconds": 0}},
                    "auto": {{"plainly": {plain_ratio}, "bytes": 5e4, "store_seconds": {store}, "host_seconds": {host}}}}}"#
            );
            run(&recorded).unwrap().auto.unwrap()
        };
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.02;
        assert!(near(simulate(0.5, 5e-3, 5e-3), 5.0), "the separate costs");
        assert!(
            near(simulate(0.5, 7.5e-3, 6e-3), 7.5),
            "higher than the separate costs"
        );
        assert!(near(simulate(0.8, 2e-3, 8e-3), 8.0), "the host is the bottleneck");
        assert!(near(simulate(0.0, 1e-2, 0.0), 10.0), "one split only");
    }
}
