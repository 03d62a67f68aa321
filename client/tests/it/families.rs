//! A gateway whose steps have other versions than those of this host: it runs the steps before the first one that differs.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Batch, Mode, Row, Split};
use pushdown_testkit::{RelayAction, faulty_relay};

use super::world::{World, into_rows, reader, run};

const PIPELINE: &str = "decode | resize(8, 8)";

/// The rows, the mode in force at the end, and the number of batch requests.
fn read(world: &World, action: RelayAction, split: Split, mode: Mode) -> (Vec<Row>, Mode, usize) {
    let relay = faulty_relay(world.gateway.listen(), move |_| action).unwrap();
    let (rows, mode) = run(async {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE);
        let builder = builder.split(split).mode(mode).batch_size(3).requests(1);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(reader.stats().retries, 0);
        (into_rows(batches), reader.mode())
    });
    let requests = relay.requests();
    let batches = requests.iter().filter(|head| head.starts_with("POST")).count();
    (rows, mode, batches)
}

#[test]
fn a_gateway_runs_the_longest_prefix_whose_families_agree() {
    use RelayAction::{OlderFamily, OlderFamilyInStream};

    let world = World::with_photos(6);
    let (expected, ..) = read(&world, RelayAction::Forward, Split::Full, Mode::Plain);
    // The split, the expected stage, and the number of batch requests.
    for (action, split, stage, batches) in [
        (OlderFamily("table"), Split::Full, 2, 2),
        (OlderFamily("resample"), Split::Full, 1, 3),
        (OlderFamily("resample"), Split::At(2), 1, 3),
        (OlderFamily("resample"), Split::At(1), 1, 2),
        (OlderFamilyInStream("resample"), Split::Full, 1, 3),
        // With `smallest` the gateway chooses the stage, so the reader has no stage to limit.
        (OlderFamily("resample"), Split::Smallest, 0, 1),
        (OlderFamily("decode"), Split::Full, 0, 1),
    ] {
        let (rows, mode, requests) = read(&world, action, split, Mode::Pushdown);
        let case = format!("{action:?}, {split:?}");
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(&expected) {
            assert_eq!((&row.key, &row.value), (&expected.key, &expected.value), "{case}");
            assert_eq!(usize::from(row.stage), stage, "{case}: {}", row.key);
        }
        assert_eq!(requests, batches, "{case}");
        assert_eq!(mode == Mode::Plain, action == OlderFamily("decode"), "{case}");
    }
}

#[test]
fn auto_is_correct_next_to_an_older_family() {
    let world = World::with_photos(12);
    let (expected, ..) = read(&world, RelayAction::Forward, Split::Full, Mode::Plain);
    let (rows, ..) = read(
        &world,
        RelayAction::OlderFamily("resample"),
        Split::Full,
        Mode::Auto,
    );
    for (row, expected) in rows.iter().zip(&expected) {
        assert_eq!((&row.key, &row.value), (&expected.key, &expected.value));
        assert!(row.stage < 2, "{}: stage {}", row.key, row.stage);
    }
}
