//! Plans of a reader with two addresses: the paths from store and gateway are measured apart.

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::reader::{Batch, Mode, PlanReport};
use pushdown_testkit::Throttle;

use super::{
    auto::{KEY, bitmap},
    two_addresses::Lab,
    world::{World, into_rows, run},
};

/// Values of 30 KB, from an image of 197 KB.
const PIPELINE: &str = "decode | resize(100, 100)";
/// The bandwidth of a slow path: a value takes 30 ms.
const SLOW_BYTES_PER_SECOND: u64 = 1 << 20;

const SAMPLES: usize = 192;

/// The plan after reading all samples, with a gateway at the end of a slow path.
fn plan(lab: &Lab) -> PlanReport {
    let (throttle, address) = Throttle::start(lab.gateway.listen()).unwrap();
    throttle.set_rate(SLOW_BYTES_PER_SECOND);
    run(async {
        let builder = lab.reader_through(&format!("http://{address}"), PIPELINE);
        let builder = builder.keys(vec![KEY; SAMPLES]).mode(Mode::Auto).batch_size(32);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let rows = into_rows(batches);
        assert_eq!(rows.len(), SAMPLES);
        assert!(rows.iter().all(|row| row.value.is_ok()));
        reader.plan().expect("a plan")
    })
}

#[test]
fn a_slow_path_from_the_gateway_makes_that_from_the_store_no_slower() {
    let world = World::with_objects(bitmap());
    let lab = Lab::path_style(&world);
    let plan = plan(&lab);
    let paths = plan.decision.tiers.paths.expect("two paths");
    // Buffered bytes arrive in a burst: on a busy machine the measured rate can be several times the real rate.
    assert!(paths.gateway_bytes_per_second < 8e6, "{plan}");
    assert!(
        paths.store_bytes_per_second > 2.0 * paths.gateway_bytes_per_second,
        "{plan}"
    );
    assert!(plan.to_string().contains(", from the gateway "), "{plan}");
}

/// The gateway at the store's address: there is one path.
#[test]
fn with_one_address_there_is_one_path() {
    let world = World::with_objects(bitmap());
    run(async {
        let builder = world.reader(PIPELINE).keys(vec![KEY; SAMPLES]);
        let builder = builder.mode(Mode::Auto).batch_size(32);
        let mut reader = builder.build().await.unwrap();
        let _rows: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let plan = reader.plan().expect("a plan");
        assert_eq!(plan.decision.tiers.paths, None);
        assert!(!plan.to_string().contains("from the gateway"), "{plan}");
    });
}
