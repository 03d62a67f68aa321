//! Where the rows of tables are made: at the gateway, or here of columns as they are stored, whichever is sooner.

use pushdown_testkit::Parquet;

use super::{
    cli::pushdown,
    throttle::Throttle,
    world::{Objects, World},
};

/// Four fifths of 4 MB: not much is spared, so that a link has to be thin to be waited for.
const PIPELINE: &str = "select(columns=[c000], where='c000 < 0.8')";
const THIN: u64 = 4 << 20;
/// Even where the reader waits for a CPU for a quarter of a second, no burst of what waited for it seems fast.
const VERY_THIN: u64 = 1 << 20;
const OPEN: u64 = 0;

fn world() -> (World, Throttle, String) {
    let object = Parquet {
        rows: 500_000,
        noise: 1,
        row_group: 50_000,
    };
    let object = object.write().unwrap();
    let world = World::with(Objects::from([
        ("t/a.parquet".to_owned(), object.clone()),
        ("t/b.parquet".to_owned(), object),
    ]));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    (world, throttle, format!("http://{address}"))
}

#[test]
fn a_table_is_made_where_it_is_there_sooner() {
    let (world, throttle, endpoint) = world();
    let made_there = |what: &str, pipeline: &str, rate: u64| {
        throttle.set(rate);
        let metric = "pushdown_step_seconds_total{step=\"select\"}";
        let seconds = || world.gateway.metric(metric).unwrap_or_default();
        let before = seconds();
        let done = pushdown(&["get", what, "--pipeline", pipeline, "--split", "smallest"])
            .args(["--format", "csv", "--endpoint-url", &endpoint])
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let lines = String::from_utf8_lossy(&done.stdout).lines().count();
        (lines, seconds() > before)
    };
    // An open link is as slow as the machine behind it, where that has other work: not each time then.
    let made_here = |what: &str, lines: usize| {
        (0..8).any(|_| {
            let (found, there) = made_there(what, PIPELINE, OPEN);
            assert_eq!(found, lines);
            !there
        })
    };
    let (of_one, there) = made_there("s3://photos/t/a.parquet", PIPELINE, VERY_THIN);
    assert!(there, "over a thin link it is made at the gateway");
    assert!(made_here("s3://photos/t/a.parquet", of_one));
    // A projection alone takes as many bytes as rows.
    let all = made_there("s3://photos/t/a.parquet", "select(columns=[c000])", VERY_THIN);
    assert_eq!(all, (500_001, false));
    let of_both = 2 * of_one - 1;
    assert_eq!(made_there("s3://photos/t/", PIPELINE, VERY_THIN), (of_both, true));
    assert!(made_here("s3://photos/t/", of_both));
}

/// What is not known beforehand is measured: of text how many rows it makes, of a query how few are left.
#[test]
fn what_cannot_be_told_beforehand_is_measured() {
    let line = |n: u32| format!("{n},{}\n", n.wrapping_mul(2_654_435_761));
    let text: String = ["n,m\n".to_owned()]
        .into_iter()
        .chain((0..400_000).map(line))
        .collect();
    let world = World::with(Objects::from([("t.csv".to_owned(), text.into_bytes())]));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    throttle.set(THIN);
    let stored = f64::from(u32::try_from(world.objects["t.csv"].len()).unwrap());
    let endpoint = format!("http://{address}");
    let sent = || world.gateway.metric("pushdown_client_sent_bytes_total").unwrap();
    for pipeline in ["select", "sql(\"select count(*) as n from object\")"] {
        let before = sent();
        let done = pushdown(&[
            "get",
            "s3://photos/t.csv",
            "--pipeline",
            pipeline,
            "--format",
            "ndjson",
        ])
        .args(["--split", "smallest", "--endpoint-url", &endpoint])
        .output()
        .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let travelled = sent() - before;
        assert!(travelled < 1.1 * stored, "{pipeline}: {travelled} of {stored}");
    }
}

/// Rows that turn out to be many more bytes than was to be expected are read here after all, from where they were.
#[test]
fn no_more_than_the_object_travels_whatever_the_rows_are() {
    let world = World::with(Objects::from([
        (
            "skewed.parquet".to_owned(),
            Parquet::skewed(600_000, 60_000).unwrap(),
        ),
        (
            "unique.parquet".to_owned(),
            Parquet::unique(400_000, 40_000).unwrap(),
        ),
    ]));
    let (throttle, address) = Throttle::start(world.gateway.listen());
    let endpoint = format!("http://{address}");
    let metric = |name: &str| world.gateway.metric(name).unwrap_or_default();
    for (object, step, pipeline) in [
        // Taken to be a hundredth of the rows by their least and their greatest value, and nearly all.
        (
            "skewed.parquet",
            "select",
            "select(columns=[n, x], where='x >= 990000')",
        ),
        // Of groups nothing is known before they are made.
        (
            "unique.parquet",
            "sql",
            "sql('select url, count(*) as n from object group by url')",
        ),
    ] {
        let get = |split: &str| {
            let key = format!("s3://photos/{object}");
            let done = pushdown(&["get", &key, "--pipeline", pipeline, "--format", "ndjson"])
                .args(["--split", split, "--endpoint-url", &endpoint])
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            done.stdout
        };
        throttle.set(OPEN);
        let all = get("full");
        throttle.set(THIN);
        let made = || metric(&format!("pushdown_step_seconds_total{{step=\"{step}\"}}"));
        let before = (throttle.passed(), made());
        let rows = get("smallest");
        let travelled = throttle.passed() - before.0;
        assert!(made() > before.1, "{object}: it was begun at the gateway");
        assert!(rows == all, "{object}: {} bytes of {}", rows.len(), all.len());
        let stored = world.objects[object].len() as u64;
        // Beside what the reader took there is what waited for it in buffers: a busy machine fills them.
        let most = stored / 10 * 11 + (1 << 20);
        assert!(travelled < most, "{object}: {travelled} of {stored}");
    }
}
