//! A gateway beside the store: the paths from store and gateway are measured apart.

use pushdown::plan::Paths;

use super::*;

const STORED: u64 = 4_000_000;
const PIPELINE: &str = "decode | resize(100, 100)";

pub(super) fn with_two_paths(adapter: Adapter) -> Adapter {
    adapter.with_traffic(Arc::default(), Some(Arc::default()))
}

fn adapter() -> Adapter {
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    with_two_paths(Adapter::new(&pipeline, &objects(&[STORED; 256]), 64, 2, 1.0).unwrap())
}

/// Bytes of a value arrive in that time.
pub(super) async fn arrive(adapter: &Adapter, bytes: u64, time: Duration) {
    for traffic in [Some(&adapter.traffic), adapter.gateway_traffic.as_ref()] {
        traffic.unwrap().received_bytes.fetch_add(bytes, Relaxed);
    }
    advance(time).await;
}

/// A value of this many bytes, whose first chunk has only a part of it.
async fn receive_in_parts(adapter: &Adapter, answer: &mut ArrivingAnswer<'_>, bytes: u64, time: Duration) {
    answer.on_chunk(100, false, true);
    arrive(adapter, bytes, time).await;
    answer.on_chunk(bytes, true, false);
    receive(adapter, Some(STORED), 2);
}

fn paths(adapter: &Adapter) -> (f64, Paths) {
    let tiers = adapter.plan_report().unwrap().decision.tiers;
    (tiers.link_bytes_per_second, tiers.paths.unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_path_is_measured_by_its_own_bytes() {
    let adapter = adapter();
    state_cores(&adapter, None);
    for _ in 0..2 {
        for _ in 0..8 {
            read(&adapter, STORED, Duration::from_millis(40)).await;
            run_steps(&adapter, STORED);
            let mut answer = adapter.begin_answer().unwrap();
            receive_in_parts(&adapter, &mut answer, 300_000, Duration::from_millis(100)).await;
        }
        end_batch(&adapter, 128);
    }
    let expected = Paths {
        store_bytes_per_second: 1e8,
        gateway_bytes_per_second: 3e6,
    };
    assert_eq!(paths(&adapter), (f64::INFINITY, expected));
    let text = adapter.plan_report().unwrap().to_string();
    let line = "  link not measured, from the store 800 Mbit/s, from the gateway 24 Mbit/s, ";
    assert!(text.contains(line), "{text}");
}

/// A photo arrives while a value has arrived in part: together they have what the link can carry.
#[tokio::test(start_paused = true)]
async fn the_link_is_measured_while_both_paths_are_busy() {
    let adapter = adapter();
    state_cores(&adapter, None);
    for _ in 0..2 {
        for _ in 0..8 {
            let mut answer = adapter.begin_answer().unwrap();
            answer.on_chunk(100, false, true);
            let mut object = adapter.begin_read();
            object.on_headers(Some(STORED));
            adapter.traffic.received_bytes.fetch_add(STORED, Relaxed);
            arrive(&adapter, 1_000_000, Duration::from_millis(500)).await;
            answer.on_chunk(1_000_000, true, false);
            drop(object);
            receive(&adapter, Some(STORED), 2);
            run_steps(&adapter, STORED);
        }
        end_batch(&adapter, 128);
    }
    let unknown = Paths {
        store_bytes_per_second: f64::INFINITY,
        gateway_bytes_per_second: f64::INFINITY,
    };
    assert_eq!(paths(&adapter), (1e7, unknown));
}

/// What arrived during a pause is in buffers, and says nothing about the path.
#[tokio::test(start_paused = true)]
async fn a_path_is_not_measured_by_what_arrived_during_a_pause() {
    let adapter = adapter();
    state_cores(&adapter, None);
    run_steps(&adapter, STORED);
    let mut answer = adapter.begin_answer().unwrap();
    answer.on_chunk(100, false, true);
    answer.pause();
    arrive(&adapter, 1_000_000, Duration::from_secs(9)).await;
    for _ in 0..8 {
        receive_in_parts(&adapter, &mut answer, 1_000_000, Duration::from_millis(1)).await;
    }
    read(&adapter, STORED, Duration::from_millis(400)).await;
    for _ in 0..2 {
        end_batch(&adapter, 128);
    }
    assert!(paths(&adapter).1.gateway_bytes_per_second.is_infinite());
    for _ in 0..3 {
        receive_in_parts(&adapter, &mut answer, 1_000_000, Duration::from_millis(200)).await;
    }
    end_batch(&adapter, 128);
    let measured = paths(&adapter).1.gateway_bytes_per_second;
    assert!((measured - 5e6).abs() < 1.0, "{measured}");
}

#[test]
fn with_one_address_answers_are_not_measured() {
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[STORED; 256]), 64, 2, 1.0).unwrap();
    assert!(adapter.begin_answer().is_none());
    let adapter = adapter.with_traffic(Arc::default(), None);
    assert!(adapter.begin_answer().is_none());
}

/// Bandwidths of one path say nothing about two.
#[tokio::test(start_paused = true)]
async fn a_reader_with_other_paths_begins_anew() {
    let first = adapter();
    state_cores(&first, None);
    run_steps(&first, STORED);
    receive(&first, Some(STORED), 2);
    for _ in 0..2 {
        end_batch(&first, 128);
    }
    let known = first.observations().unwrap();
    assert!(adapter().with_observations(known.clone()).plan_report().is_some());
    let pipeline = Pipeline::parse(PIPELINE).unwrap();
    let one_path = Adapter::new(&pipeline, &objects(&[STORED; 256]), 64, 2, 1.0).unwrap();
    assert!(one_path.with_observations(known).plan_report().is_none());
}
