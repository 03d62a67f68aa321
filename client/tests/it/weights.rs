//! Weights of models: on their way, and of no use.

use std::fs;

use futures::TryStreamExt as _;
use pushdown_client::{Mode, Row};
use pushdown_testkit::model_folder;
use tempfile::TempDir;

use super::{
    cli::pushdown,
    relay::gated,
    world::{Objects, World, photos, reader, rows, run},
};

const PREPARED: &str = "decode | resize(224, 224) | to_float | normalize(imagenet)";

/// A gateway with these models, and so many photos in turns.
fn world(models: &TempDir, count: usize, flag: &str) -> World {
    let some = photos()
        .into_iter()
        .filter(|(_, bytes)| (5_000..12_000).contains(&bytes.len()));
    let some: Vec<_> = some.collect();
    let object = |index: usize| {
        let (name, bytes) = &some[index % some.len()];
        (format!("{index:03}-{name}"), bytes.clone())
    };
    let objects: Objects = (0..count).map(object).collect();
    let flags = [format!("--models={}", models.path().display()), flag.to_owned()];
    World::with_flags(objects, &flags)
}

/// Even with weights at hand: ways that run layers here are none of the plan's.
#[test]
fn a_host_without_onnx_runtime_reads_by_pushing() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world(&models, 6, "--threads=2");
    let pipeline = format!("{PREPARED} | model(squeezenet) | cast(f16)");
    let weights = world.folder().join("weights");
    let plain = world.reader(&pipeline).cache(&weights).mode(Mode::Plain);
    assert_eq!(rows(plain).len(), 6);
    let cache = world.folder().join("pushdown");
    fs::create_dir(&cache).unwrap();
    fs::rename(weights, cache.join("models")).unwrap();
    let read = |flags: &[&str]| {
        let arguments = [
            "read",
            "s3://photos/",
            "-p",
            &pipeline,
            "--json",
            "--batch-size",
            "2",
        ];
        let mut command = pushdown(&[&arguments, flags].concat());
        command
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", "/nowhere/libonnxruntime.so");
        let output = command.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (report, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (report, said) = read(&["--auto"]);
    assert_eq!(
        (&report["samples"], &report["errors"]),
        (&6.into(), &0.into()),
        "{said}"
    );
    assert_eq!(
        report["value_bytes"],
        6 * 2_000,
        "what came is what is behind the model"
    );
    assert!(said.contains("cannot load ONNX Runtime from /nowhere"), "{said}");
    assert!(said.contains("models run at the gateway alone"), "{said}");
    // What is kept then are values behind the model, too.
    let kept = world.folder().join("kept");
    for (epoch, bytes) in [(0, 6 * 2_000), (1, 0)] {
        let (report, said) = read(&["--auto", "--keep", kept.to_str().unwrap()]);
        assert_eq!(report["errors"], 0, "{said}");
        assert_eq!(report["value_bytes"], bytes, "epoch {epoch}");
    }
    let (report, said) = read(&["--plain"]);
    assert_eq!(
        report["errors"], 6,
        "the rest of the pipeline is for a host that can: {said}"
    );
}

/// With one thread at the gateway and a link that is open, a plan has this host run layers, too.
#[test]
fn weights_come_once_and_nobody_waits_for_them() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world(&models, 400, "--threads=1");
    let (relay, gate) = gated(world.gateway.listen());
    let endpoint = format!("http://{}", relay.address());
    let pipeline = format!("{PREPARED} | model(squeezenet) | cast(f16)");
    let cache = world.folder().join("weights");
    let auto = || {
        let reader = reader(&endpoint, &pipeline).cache(&cache);
        reader.mode(Mode::Auto).batch_size(8)
    };
    run(async {
        let mut reader = auto().build().await.unwrap();
        let behind = reader.pipeline().len() - 1;
        let mut rows: Vec<Row> = Vec::new();
        while gate.asked() == 0 {
            let batch = reader.try_next().await.unwrap();
            rows.extend(batch.expect("no plan needs the weights").into_rows());
        }
        for _ in 0..8 {
            rows.extend(reader.try_next().await.unwrap().unwrap().into_rows());
        }
        assert!(!cache.exists(), "they are still on their way");
        assert!(
            rows.iter()
                .all(|row| usize::from(row.stage) >= behind && row.value.is_ok())
        );
        gate.open();
        let mut later: Vec<Row> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            later.extend(batch.into_rows());
        }
        assert_eq!(rows.len() + later.len(), 400);
        assert!(
            later.iter().any(|row| usize::from(row.stage) < behind),
            "they are of use"
        );
        assert!(later.iter().all(|row| row.value.is_ok()));
    });
    assert_eq!(gate.asked(), 1);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    assert_eq!(rows(auto()).len(), 400);
    assert_eq!(gate.asked(), 1, "what was kept is not asked for again");
}
