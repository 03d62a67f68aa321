use super::*;
use crate::LoadingCost;

const NO_SETUP: SetupCosts = SetupCosts {
    weights_bytes: 0.0,
    loading: Vec::new(),
};

/// Steps without models, by the bytes of their outputs.
fn steps<const N: usize>(output_bytes: [Option<u64>; N]) -> [StepCost; N] {
    output_bytes.map(|output_bytes| StepCost {
        output_bytes,
        macs: 0,
        needs_model: false,
    })
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9,
        "expected {expected}, found {found}"
    );
}

#[test]
fn costs_follow_from_the_observations_of_both_tiers() {
    let steps = steps([None, Some(192), Some(48), Some(192)]);
    let mut costs = Costs::new(&steps, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    assert_eq!(costs.classes(&NO_SETUP), None);
    // Three steps as one, for the large class; the small class has no observations yet.
    costs.observe_host_seconds(1, 0, 3, 0.008);
    costs.observe_host_seconds(1, 3, 1, 0.002);
    assert_eq!(costs.classes(&NO_SETUP), None, "the gateway has no observations");
    costs.observe_gateway_seconds(1, 4, 0.005);
    costs.observe_gateway_seconds(1, 3, 0.004);
    let loading = |gateway_seconds| LoadingCost {
        gateway_seconds,
        host_seconds: 0.0,
    };
    let setup = SetupCosts {
        weights_bytes: 1e6,
        loading: vec![LoadingCost::default(), loading(0.1), loading(0.2), loading(0.3)],
    };
    let classes = costs.classes(&setup).unwrap();
    let large = &classes[1].candidates;
    let stages: Vec<_> = large.iter().map(|split| split.stage.steps()).collect();
    assert_eq!(stages, [0, 3, 4], "no split within steps that run as one");
    assert_near(large[0].host_seconds, 0.010);
    assert_near(large[1].gateway_seconds, 0.004);
    assert_near(large[1].host_seconds, 0.002);
    assert_near(large[2].gateway_seconds, 0.005);
    assert_near(large[2].bytes, 4.0 * 4.0 * 3.0 * 4.0);
    assert_near(large[0].weights_bytes, 0.0);
    let loaded: Vec<_> = large.iter().map(|split| split.loading.gateway_seconds).collect();
    assert_eq!(
        format!("{loaded:?}"),
        "[0.0, 0.3, 0.0]",
        "each stage has its own cost, and stages past the end of the list have none"
    );
    assert_near(classes[0].candidates[0].bytes, 1_000.0);
    assert_near(classes[0].candidates[0].host_seconds, 0.010);
    costs.set_object_bytes(0, 2_000.0);
    assert_near(costs.classes(&setup).unwrap()[0].candidates[0].bytes, 2_000.0);
    costs.set_object_bytes(0, 1_000.0);
    // Invalid observations are ignored.
    costs.set_object_bytes(7, 1.0);
    costs.observe_host_seconds(7, 0, 1, 1.0);
    costs.observe_host_seconds(0, 3, 9, 1.0);
    costs.observe_gateway_seconds(1, 9, 1.0);
    costs.observe_gateway_seconds(1, 4, f64::INFINITY);
    assert_eq!(costs.classes(&setup).unwrap(), classes);
}

/// A host that loads weights, or waits for its first object, reports later than the gateway.
#[test]
fn early_gateway_observations_are_kept() {
    let steps = steps([None, Some(192), Some(768)]);
    let mut costs = Costs::new(&steps, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    for _ in 0..2 * MAX_EARLY_OBSERVATIONS {
        costs.observe_gateway_seconds(1, 3, 0.030);
    }
    assert_eq!(costs.early.len(), MAX_EARLY_OBSERVATIONS);
    assert_eq!(costs.classes(&NO_SETUP), None, "the host has no observations");
    costs.observe_host_seconds(0, 0, 2, 0.010);
    assert_eq!(
        costs.classes(&NO_SETUP),
        None,
        "the last step has no observations"
    );
    costs.observe_host_seconds(0, 2, 1, 0.005);
    let classes = costs.classes(&NO_SETUP).unwrap();
    assert_near(classes[1].candidates[0].host_seconds, 0.015);
    assert_near(classes[1].candidates[2].gateway_seconds, 0.030);
    assert!(costs.early.is_empty());
}

#[test]
fn values_of_unknown_size_are_candidates_once_observed() {
    let steps = steps([None, None, None]);
    let mut costs = Costs::new(&steps, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    for step in 0..3 {
        costs.observe_host_seconds(0, step, 1, 0.001);
    }
    costs.observe_gateway_seconds(0, 3, 0.003);
    let stages = |costs: &Costs| -> Vec<Vec<usize>> {
        let classes = costs.classes(&NO_SETUP).unwrap();
        let stages = |class: &Class| class.candidates.iter().map(|split| split.stage.steps()).collect();
        classes.iter().map(stages).collect()
    };
    assert_eq!(stages(&costs), [[0], [0]]);
    costs.observe_value_bytes(1, 3, 2_000.0, false);
    assert_eq!(stages(&costs), [vec![0], vec![0, 3]], "each class separately");
    costs.observe_value_bytes(0, 3, 500.0, false);
    costs.observe_value_bytes(0, 3, 1_000.0, true);
    let split = costs.classes(&NO_SETUP).unwrap()[0].candidates[1];
    assert_near(split.bytes, 750.0);
    assert_near(split.gateway_seconds, 0.003);
    // Every other answer is the object, and the host runs all of its steps.
    assert_near(split.host_seconds, 0.0015);
    // Invalid observations are ignored.
    for (class, stage) in [(7, 3), (0, 0), (0, 9)] {
        costs.observe_value_bytes(class, stage, 1.0, false);
    }
    assert_near(costs.classes(&NO_SETUP).unwrap()[0].candidates[1].bytes, 750.0);
    // If the gateway sends objects only, plain reading is the only candidate.
    let mut costs = Costs::new(&steps, &[(1.0, 1_000.0)]);
    costs.observe_host_seconds(0, 0, 3, 0.003);
    assert_eq!(costs.classes(&NO_SETUP), None);
    costs.observe_value_bytes(0, 3, 1_000.0, true);
    assert_eq!(stages(&costs), [[0]]);
}

#[test]
fn stages_have_ratios_of_their_own() {
    let steps = steps([None, Some(192), Some(768)]);
    let mut costs = Costs::new(&steps, &[(1.0, 1_000.0)]);
    for step in 0..3 {
        costs.observe_host_seconds(0, step, 1, 0.001);
    }
    for _ in 0..20 {
        costs.observe_gateway_seconds(0, 2, 0.002);
        costs.observe_gateway_seconds(0, 3, 0.030);
    }
    let classes = costs.classes(&NO_SETUP).unwrap();
    assert_near(classes[0].candidates[1].gateway_seconds, 0.002);
    assert_near(classes[0].candidates[2].gateway_seconds, 0.030);
}
