use super::*;
use crate::{Class, SetupCosts, StepCost};

/// `decode` and `random_resized_crop`, which run as one, and a step after them.
fn costs(classes: &[(f64, f64)]) -> Costs {
    let mut costs = costs_without_crops(classes);
    costs.set_cropped_share(Some(0.47));
    costs
}

fn costs_without_crops(classes: &[(f64, f64)]) -> Costs {
    let steps = [None, Some(150_528), Some(602_112)].map(|output_bytes| StepCost {
        output_bytes,
        macs: 0,
        needs_model: false,
    });
    Costs::new(&steps, classes)
}

fn crop(bytes: f64, gateway_seconds: f64) -> CropAnswer {
    CropAnswer {
        object_bytes: Some(100_000.0),
        bytes,
        gateway_seconds,
        is_object: false,
    }
}

fn candidates(costs: &Costs, class: usize) -> Vec<Candidate> {
    let setup = SetupCosts::default();
    let classes: Vec<Class> = costs.classes(&setup).unwrap();
    classes[class].candidates.clone()
}

/// The candidate of crops of a class, which is the second one.
#[track_caller]
fn cropped(costs: &Costs, class: usize) -> Candidate {
    let found = candidates(costs, class)[1];
    assert_eq!(found.stage, Stage::CroppedJpeg);
    found
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
        "expected {expected}, found {found}"
    );
}

/// The host has decoded objects in 3 ms, and taken 1 ms for the step after it.
fn observe_plain(costs: &mut Costs, class: usize) {
    for _ in 0..8 {
        costs.observe_host_seconds(class, 0, 2, 0.003);
        costs.observe_host_seconds(class, 2, 1, 0.001);
    }
}

#[test]
fn only_a_reader_that_may_ask_for_crops_has_the_candidate() {
    let stages = |costs: &Costs| -> Vec<Stage> {
        let all = candidates(costs, 0);
        all.iter().map(|split| split.stage).collect()
    };
    let mut costs = costs_without_crops(&[(1.0, 100_000.0)]);
    observe_plain(&mut costs, 0);
    costs.observe_gateway_seconds(0, 3, 0.008);
    assert_eq!(stages(&costs), [Stage::Object, Stage::After(2), Stage::After(3)]);
    costs.set_cropped_share(Some(0.47));
    assert_eq!(
        stages(&costs),
        [
            Stage::Object,
            Stage::CroppedJpeg,
            Stage::After(2),
            Stage::After(3)
        ]
    );
    // Before the first one: the share of the bytes, and the time that decoding takes at the gateway.
    let plain = candidates(&costs, 0)[0];
    let estimated = cropped(&costs, 0);
    assert_near(estimated.bytes, 47_000.0);
    assert_near(estimated.gateway_seconds, 0.006);
    assert_near(estimated.host_seconds, plain.host_seconds);
}

/// Values that are never tried since they do not fit: crops alone make a plan possible.
#[test]
fn answers_correct_the_estimates() {
    let mut costs = costs(&[(0.5, 100_000.0), (0.5, 4e6)]);
    observe_plain(&mut costs, 0);
    assert_eq!(costs.classes(&SetupCosts::default()), None);
    costs.observe_crop_answer(0, &crop(60_000.0, 0.002));
    assert_near(cropped(&costs, 0).bytes, 60_000.0);
    costs.observe_crop_answer(0, &crop(50_000.0, 0.004));
    let found = cropped(&costs, 0);
    assert_near(found.bytes, 55_000.0);
    assert_near(found.gateway_seconds, 0.003);
    assert_near(found.host_seconds, 0.004);
    // The other class has its own objects, and no answer yet.
    assert_near(cropped(&costs, 1).bytes, 0.47 * 4e6);
    assert_near(cropped(&costs, 1).gateway_seconds, 0.003);
    // An object of another size has another ratio.
    costs.observe_crop_answer(
        1,
        &CropAnswer {
            object_bytes: None,
            ..crop(1e6, 0.1)
        },
    );
    assert_near(cropped(&costs, 1).bytes, 1e6);
    // Decoding a crop takes the host less time, which is not that of plain reading.
    for _ in 0..40 {
        costs.observe_cropped_host_seconds(0, 2, 0.0021);
    }
    let plain = candidates(&costs, 0)[0];
    assert_near(plain.host_seconds, 0.004);
    assert_near(cropped(&costs, 0).host_seconds, 0.0031);
    // Invalid observations are ignored.
    let before = costs.clone();
    costs.observe_crop_answer(7, &crop(1.0, 1.0));
    costs.observe_cropped_host_seconds(7, 2, 1.0);
    costs.observe_crop_answer(0, &crop(f64::NAN, f64::NAN));
    let (found, expected) = (cropped(&costs, 0), cropped(&before, 0));
    assert_near(found.gateway_seconds, expected.gateway_seconds);
    assert_near(found.bytes, expected.bytes);
}

/// Nothing can be cropped from a quarter of the objects: they arrive whole, and the host decodes them whole.
#[test]
fn whole_objects_count_among_the_answers() {
    let mut costs = costs(&[(1.0, 100_000.0)]);
    observe_plain(&mut costs, 0);
    for number in 0..40 {
        costs.observe_crop_answer(
            0,
            &if number % 4 == 0 {
                CropAnswer {
                    is_object: true,
                    ..crop(100_000.0, 0.001)
                }
            } else {
                crop(40_000.0, 0.003)
            },
        );
        costs.observe_cropped_host_seconds(0, 2, 0.0015);
    }
    let found = cropped(&costs, 0);
    assert_near(found.bytes, 55_000.0);
    assert_near(found.gateway_seconds, 0.75 * 0.003 + 0.25 * 0.001);
    assert_near(found.host_seconds, 0.001 + 0.75 * 0.0015 + 0.25 * 0.003);
    // With whole objects only, a crop saves nothing.
    let mut whole = self::costs(&[(1.0, 100_000.0)]);
    observe_plain(&mut whole, 0);
    whole.observe_crop_answer(
        0,
        &CropAnswer {
            is_object: true,
            ..crop(100_000.0, 0.0)
        },
    );
    assert_near(cropped(&whole, 0).bytes, 100_000.0);
}

/// Crops show how fast a tier is now, also if hardly anything else is read.
#[test]
fn crops_have_the_pace_of_their_tier() {
    let mut costs = costs(&[(1.0, 100_000.0)]);
    observe_plain(&mut costs, 0);
    let read = |costs: &mut Costs, gateway_load: f64, host_load: f64| {
        for _ in 0..3 {
            for _ in 0..64 {
                costs.observe_crop_answer(0, &crop(50_000.0, 0.002 * gateway_load));
                costs.observe_cropped_host_seconds(0, 2, 0.002 * host_load);
                costs.observe_host_seconds(0, 2, 1, 0.001 * host_load);
            }
            costs.next_batch();
        }
        let all = candidates(costs, 0);
        (all[0].host_seconds, all[1].host_seconds, all[1].gateway_seconds)
    };
    let (plain, cropped, gateway) = read(&mut costs, 1.0, 1.0);
    assert_near(plain, 0.004);
    assert_near(cropped, 0.003);
    assert_near(gateway, 0.002);
    let (plain, cropped, gateway) = read(&mut costs, 4.0, 3.0);
    // The mean of crops follows the load a little before the pace is known, that of plain reading does not.
    assert!((0.008..0.012).contains(&plain), "{plain}");
    assert!((cropped / 0.009 - 1.0).abs() < 0.05, "{cropped}");
    assert!((gateway / 0.008 - 1.0).abs() < 0.05, "{gateway}");
}

/// The host runs all steps, so that a crop needs the weights and the layers of plain reading, and no cache has it.
#[test]
fn a_crop_has_the_setup_costs_of_plain_reading() {
    let mut costs = costs(&[(1.0, 100_000.0)]);
    observe_plain(&mut costs, 0);
    costs.observe_crop_answer(0, &crop(50_000.0, 0.002));
    costs.result_cache.announce([(2, 1.0), (3, 1.0)]);
    let found = candidates(&costs, 0);
    assert_eq!(found[1].hits, found[0].hits);
    assert_eq!(found[1].loading, found[0].loading);
    assert_near(found[1].weights_bytes, found[0].weights_bytes);
}
