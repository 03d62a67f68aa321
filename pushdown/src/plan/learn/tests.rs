use super::*;
use crate::plan::Loading;

const HERE: Lacking = Lacking {
    weights: 0.0,
    loading: Vec::new(),
};

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
}

#[test]
fn both_sides_come_from_what_each_tells() {
    let pipeline = Pipeline::parse("decode | resize(8, 8) | center_crop(4) | to_float").unwrap();
    let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    assert_eq!(costs.classes(&HERE), None);
    // As one, of the large ones; of the small ones nothing yet.
    costs.host(1, 0, 3, 0.008);
    costs.host(1, 3, 1, 0.002);
    assert_eq!(costs.classes(&HERE), None, "nothing is known of the gateway");
    costs.gateway(1, 4, 0.005);
    costs.gateway(1, 3, 0.004);
    let loading = |gateway_seconds| Loading {
        gateway_seconds,
        host_seconds: 0.0,
    };
    let lacking = Lacking {
        weights: 1e6,
        loading: vec![Loading::default(), loading(0.1), loading(0.2), loading(0.3)],
    };
    let classes = costs.classes(&lacking).unwrap();
    let large = &classes[1].candidates;
    let stages: Vec<_> = large.iter().map(|way| way.stage).collect();
    assert_eq!(stages, [0, 3, 4], "no split within steps that run as one");
    near(large[0].host_seconds, 0.010);
    near(large[1].gateway_seconds, 0.004);
    near(large[1].host_seconds, 0.002);
    near(large[2].gateway_seconds, 0.005);
    near(large[2].bytes, 4.0 * 4.0 * 3.0 * 4.0);
    near(large[0].weights, 0.0);
    let loaded: Vec<_> = large.iter().map(|way| way.loading.gateway_seconds).collect();
    assert_eq!(
        format!("{loaded:?}"),
        "[0.0, 0.3, 0.0]",
        "of each stage its own, and none behind the last told"
    );
    near(classes[0].candidates[0].bytes, 1_000.0);
    near(classes[0].candidates[0].host_seconds, 0.010);
    costs.stored(0, 2_000.0);
    near(costs.classes(&lacking).unwrap()[0].candidates[0].bytes, 2_000.0);
    costs.stored(0, 1_000.0);
    // Nonsense is left out.
    costs.stored(7, 1.0);
    costs.host(7, 0, 1, 1.0);
    costs.host(0, 3, 9, 1.0);
    costs.gateway(1, 9, 1.0);
    costs.gateway(1, 4, f64::INFINITY);
    assert_eq!(costs.classes(&lacking).unwrap(), classes);
}

/// A host that is busy with weights, or waits for its first object, is behind a gateway that is not.
#[test]
fn what_the_gateway_tells_first_is_not_lost() {
    let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
    let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    for _ in 0..2 * EARLY {
        costs.gateway(1, 3, 0.030);
    }
    assert_eq!(costs.early.len(), EARLY);
    assert_eq!(costs.classes(&HERE), None, "nothing is known of the host");
    costs.host(0, 0, 2, 0.010);
    assert_eq!(costs.classes(&HERE), None, "nothing is known of the last step");
    costs.host(0, 2, 1, 0.005);
    let classes = costs.classes(&HERE).unwrap();
    near(classes[1].candidates[0].host_seconds, 0.015);
    near(classes[1].candidates[2].gateway_seconds, 0.030);
    assert!(costs.early.is_empty());
}

#[test]
fn values_of_unknown_sizes_are_planned_with_once_some_came() {
    let pipeline = Pipeline::parse("decode | resize(short=64) | encode(jpeg)").unwrap();
    let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
    for step in 0..3 {
        costs.host(0, step, 1, 0.001);
    }
    costs.gateway(0, 3, 0.003);
    let stages = |costs: &Costs| -> Vec<Vec<usize>> {
        let classes = costs.classes(&HERE).unwrap();
        let stages = |class: &Class| class.candidates.iter().map(|way| way.stage).collect();
        classes.iter().map(stages).collect()
    };
    assert_eq!(stages(&costs), [[0], [0]]);
    costs.value(1, 3, 2_000.0, false);
    assert_eq!(stages(&costs), [vec![0], vec![0, 3]], "of each class by itself");
    costs.value(0, 3, 500.0, false);
    costs.value(0, 3, 1_000.0, true);
    let way = costs.classes(&HERE).unwrap()[0].candidates[1];
    near(way.bytes, 750.0);
    near(way.gateway_seconds, 0.003);
    // Of every other one all steps run here.
    near(way.host_seconds, 0.0015);
    // Nonsense is left out.
    for (class, stage) in [(7, 3), (0, 0), (0, 9)] {
        costs.value(class, stage, 1.0, false);
    }
    near(costs.classes(&HERE).unwrap()[0].candidates[1].bytes, 750.0);
    // A gateway that sends nothing but objects leaves plain reading.
    let mut costs = Costs::new(&pipeline, &[(1.0, 1_000.0)]);
    costs.host(0, 0, 3, 0.003);
    assert_eq!(costs.classes(&HERE), None);
    costs.value(0, 3, 1_000.0, true);
    assert_eq!(stages(&costs), [[0]]);
}

#[test]
fn a_stage_that_is_slower_there_than_others_is_told_apart() {
    let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
    let mut costs = Costs::new(&pipeline, &[(1.0, 1_000.0)]);
    for step in 0..3 {
        costs.host(0, step, 1, 0.001);
    }
    for _ in 0..20 {
        costs.gateway(0, 2, 0.002);
        costs.gateway(0, 3, 0.030);
    }
    let classes = costs.classes(&HERE).unwrap();
    near(classes[0].candidates[1].gateway_seconds, 0.002);
    near(classes[0].candidates[2].gateway_seconds, 0.030);
}
