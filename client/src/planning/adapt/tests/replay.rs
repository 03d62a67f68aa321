//! Recorded events, replayed into a new planner.

use super::{
    two_paths::{arrive, with_two_paths},
    *,
};

const BATCH: usize = 64;

/// Reads six batches of objects, over a link that becomes ten times slower after the third one.
async fn run(adapter: &Adapter, objects: &Objects) {
    let samples = objects.len();
    for number in 0..samples / BATCH {
        let assignment = adapter.assignment();
        let first = number * BATCH;
        let stage = |slot: usize| {
            let index = first + slot;
            let sample = SampleRef {
                position: index as u64,
                index,
                is_padding: false,
            };
            assignment.stage(sample, objects.bytes(index), || objects.hash_fraction(index))
        };
        let stages = (0..BATCH).map(|slot| (objects.bytes(first + slot), stage(slot)));
        let in_flight = adapter.track_batch(stages);
        let request = adapter.begin_batch();
        state_cores(adapter, Some(2.0));
        for slot in 0..BATCH {
            match stage(slot).steps() {
                0 => {
                    let stored = if slot % 4 == 0 { 400_000 } else { 4_000_000 };
                    let microseconds = stored / if number < 3 { 20 } else { 2 };
                    read(adapter, stored, Duration::from_micros(microseconds)).await;
                    run_steps(adapter, stored);
                }
                stage => {
                    if let Some(mut answer) = adapter.begin_answer() {
                        answer.on_chunk(100, false, true);
                        arrive(adapter, 300_000, Duration::from_millis(30)).await;
                        answer.on_chunk(300_000, true, false);
                    }
                    receive(adapter, objects.bytes(first + slot), stage);
                }
            }
            in_flight.end(slot);
        }
        drop(request);
        drop(in_flight);
        adapter.observe(Event::BatchConsumed {
            time: Duration::from_millis(30),
            samples: BATCH,
        });
        end_batch(adapter, samples - first - BATCH);
    }
}

#[tokio::test(start_paused = true)]
async fn a_recorded_trace_leads_a_new_planner_to_the_same_plan() {
    let sizes: Vec<_> = (0..6 * BATCH)
        .map(|index| if index % 4 == 0 { 400_000 } else { 4_000_000 })
        .collect();
    let listed = objects(&sizes);
    let unlisted = Objects::from_keys("b", vec!["k"; sizes.len()]);
    let one_path: fn(Adapter) -> Adapter = |adapter| adapter;
    for (objects, paths) in [
        (&listed, one_path),
        (&unlisted, one_path),
        (&listed, with_two_paths),
    ] {
        let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
        let new = || paths(Adapter::new(&pipeline, objects, BATCH, 2, 1.0).unwrap());
        let adapter = new();
        run(&adapter, objects).await;
        let plan = adapter.plan_report().expect("a plan");
        let tiers = plan.decision.tiers;
        match tiers.paths {
            None => assert!(tiers.link_bytes_per_second.is_finite(), "{plan}"),
            Some(paths) => assert!(
                paths.store_bytes_per_second.is_finite() && paths.gateway_bytes_per_second.is_finite(),
                "{plan}"
            ),
        }
        let trace = adapter.state.lock().trace.clone();
        let replay = |events: &[Event]| {
            let replayed = new();
            events.iter().cloned().for_each(|event| replayed.observe(event));
            replayed
        };
        assert_ne!(
            replay(&trace[..trace.len() / 2]).plan_report(),
            Some(plan.clone())
        );
        let replayed = replay(&trace);
        assert_eq!(replayed.plan_report(), Some(plan));
        let routes = |adapter: &Adapter| format!("{:?}", adapter.assignment());
        assert_eq!(routes(&replayed), routes(&adapter));
    }
}
