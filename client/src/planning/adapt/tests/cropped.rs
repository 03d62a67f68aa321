//! Photos that may be requested as cropped JPEGs.

use super::*;

/// Pixels of 150 KB, floats of 600 KB: neither fits.
const PIPELINE: &str = "decode | random_resized_crop(224) | to_float";
const STORED: u64 = 110_000;
const CROPPED: u64 = 57_000;
const BATCH: u64 = 64;
/// Time of the trainer for a batch. The CPU time of these tests is real, and must not count as a saturated host.
const CONSUMED: Duration = Duration::from_secs(3);
/// Bytes per second of a link on which a photo takes 176 ms, and of one on which it takes 9.
const THIN: u64 = 625_000;
const FAST: u64 = 12_500_000;

fn adapter() -> Adapter {
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    Adapter::new(&pipeline, &objects(&[STORED; 2048]), 64, 2, 1.0).unwrap()
}

fn sample(index: u64) -> SampleRef {
    SampleRef {
        position: index,
        index: usize::try_from(index).unwrap(),
        is_padding: false,
    }
}

fn stages(adapter: &Adapter) -> Vec<Stage> {
    let assignment = adapter.assignment();
    (0..1000)
        .map(|index| assignment.stage(sample(index), Some(STORED), || 0.5))
        .collect()
}

fn count(stages: &[Stage], stage: Stage) -> usize {
    stages.iter().filter(|found| **found == stage).count()
}

/// Reads a batch by the plan in force, over a path of this many bytes per second. One crop in `whole_period` is sent whole.
async fn read_batch(adapter: &Adapter, number: u64, bytes_per_second: u64, whole_period: u64) {
    let assignment = adapter.assignment();
    let transfer = |bytes: u64| Duration::from_micros(bytes * 1_000_000 / bytes_per_second);
    let stage = |index: u64| assignment.stage(sample(index), Some(STORED), || 0.5);
    let indices = number * BATCH..(number + 1) * BATCH;
    let in_flight = adapter.track_batch(indices.clone().map(|index| (Some(STORED), stage(index))));
    let request = adapter.begin_batch();
    state_cores(adapter, None);
    let ran = |steps, microseconds| StepTiming {
        steps,
        time: Duration::from_micros(microseconds),
    };
    for (slot, index) in indices.enumerate() {
        let mut is_cropped = stage(index) == Stage::CroppedJpeg;
        if is_cropped {
            let is_whole = index % whole_period == 0;
            let (arrived, bytes) = if is_whole {
                (Stage::Object, STORED)
            } else {
                (Stage::CroppedJpeg, CROPPED)
            };
            adapter.observe(Event::ValueReceived {
                stored: Some(STORED),
                requested: Stage::CroppedJpeg,
                value: ReceivedValue {
                    stage: arrived,
                    bytes,
                    seconds: 0.001,
                    cache: CacheStatus::Computed,
                },
                hash_fraction: 0.5,
            });
            adapter.traffic.received_bytes.fetch_add(bytes, Relaxed);
            advance(transfer(bytes)).await;
            is_cropped = !is_whole;
        } else {
            assert_eq!(stage(index), Stage::Object, "nothing else fits");
            read(adapter, STORED, transfer(STORED)).await;
        }
        adapter.observe(Event::HostStepsRan {
            stored: Some(STORED),
            is_cropped,
            ran: vec![ran(0..2, if is_cropped { 900 } else { 1_200 }), ran(2..3, 100)],
        });
        in_flight.end(slot);
    }
    drop(request);
    drop(in_flight);
    advance(CONSUMED).await;
    adapter.observe(Event::BatchConsumed {
        time: CONSUMED,
        samples: 64,
    });
    end_batch(adapter, 1_024);
}

#[test]
fn objects_are_cropped_only_if_that_is_allowed() {
    let adapter = adapter();
    let all = objects(&[STORED; 4]);
    assert_eq!(adapter.crop_steps(), Some(2));
    assert_eq!(count(&stages(&adapter), Stage::Object), 1_000);
    assert!(adapter.reason_to_read_plainly(&all).is_some());
    adapter.allow_crops(true);
    // Every other object, as long as nothing is known.
    assert_eq!(count(&stages(&adapter), Stage::CroppedJpeg), 500);
    assert_eq!(adapter.reason_to_read_plainly(&all), None);
    adapter.allow_crops(true);
    adapter.allow_crops(false);
    assert_eq!(count(&stages(&adapter), Stage::Object), 1_000);
    let events = adapter.state.lock().trace.clone();
    assert_eq!(events, [Event::CropsAllowed(true), Event::CropsAllowed(false)]);
}

#[test]
fn pipelines_without_a_region_and_small_limits_have_no_crops() {
    for (pipeline, max_expand) in [("decode | resize(224, 224) | to_float", 1.0), (PIPELINE, 0.9)] {
        let pipeline = Pipeline::parse(pipeline).unwrap();
        let adapter = Adapter::new(&pipeline, &objects(&[STORED; 256]), 64, 2, max_expand).unwrap();
        assert_eq!(adapter.crop_steps(), None);
        adapter.allow_crops(true);
        assert_eq!(count(&stages(&adapter), Stage::Object), 1_000, "{pipeline}");
    }
}

/// On the fast link the trainer takes longer than anything else.
#[tokio::test(start_paused = true)]
async fn small_photos_are_cropped_on_a_thin_link_and_read_plainly_on_a_fast_one() {
    for whole_period in [u64::MAX, 5] {
        let adapter = adapter();
        adapter.allow_crops(true);
        for number in 0..4 {
            read_batch(&adapter, number, THIN, whole_period).await;
        }
        let plan = adapter.plan_report().unwrap();
        let found = stages(&adapter);
        assert!(count(&found, Stage::CroppedJpeg) > 900, "{plan}");
        assert!(plan.to_string().contains(" % cropped"), "{plan}");
        let candidates = &plan.decision.classes[0].candidates;
        let expected = if whole_period == 5 { 67_600.0 } else { 57_000.0 };
        assert!((candidates[1].bytes - expected).abs() < 2_000.0, "{candidates:?}");
        assert!(
            candidates[1].host_seconds < candidates[0].host_seconds,
            "{candidates:?}"
        );
        assert!(
            (candidates[0].host_seconds - 0.0013).abs() < 1e-6,
            "{candidates:?}"
        );
        // A rate follows from a few plain reads, and only trials are read plainly.
        for number in 4..16 {
            read_batch(&adapter, number, FAST, whole_period).await;
        }
        let found = stages(&adapter);
        let plan = adapter.plan_report().unwrap();
        assert!(count(&found, Stage::Object) >= 950, "{plan}");
        // An older gateway has taken its place.
        adapter.allow_crops(false);
        assert_eq!(count(&stages(&adapter), Stage::Object), 1_000);
        read_batch(&adapter, 16, THIN, whole_period).await;
        assert_eq!(
            adapter.plan_report().unwrap().decision.classes[0]
                .candidates
                .len(),
            1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_fast_link_is_read_plainly_from_the_first_plan_on() {
    let adapter = adapter();
    adapter.allow_crops(true);
    for number in 0..3 {
        read_batch(&adapter, number, FAST, u64::MAX).await;
    }
    let plan = adapter.plan_report().unwrap();
    assert!(count(&stages(&adapter), Stage::Object) >= 950, "{plan}");
}

#[tokio::test(start_paused = true)]
async fn a_recorded_trace_with_crops_leads_a_new_planner_to_the_same_plan() {
    let recorded = adapter();
    recorded.allow_crops(true);
    for number in 0..5 {
        read_batch(&recorded, number, THIN, 7).await;
    }
    let trace = recorded.state.lock().trace.clone();
    let replayed = adapter();
    for event in trace {
        replayed.observe(event);
    }
    assert!(replayed.plan_report().is_some());
    assert_eq!(replayed.plan_report(), recorded.plan_report());
    let routes = |adapter: &Adapter| format!("{:?}", adapter.assignment());
    assert_eq!(routes(&replayed), routes(&recorded));
    // The next reader goes on with what is known, if its gateway makes crops as well.
    let next = adapter().with_observations(recorded.observations().unwrap());
    assert!(count(&stages(&next), Stage::CroppedJpeg) > 900);
    next.allow_crops(false);
    assert_eq!(count(&stages(&next), Stage::Object), 1_000);
}
