//! Weights of models: fetched in the background, or useless without ONNX Runtime.

use std::fs;

use futures::TryStreamExt as _;
use pushdown_client::{Mode, Row};
use pushdown_testkit::model_folder;
use tempfile::TempDir;

use super::{
    cli::pushdown,
    relay::gated_relay,
    world::{Objects, World, photos, read_rows, reader, run},
};

const PREPARATION: &str = "decode | resize(224, 224) | to_float | normalize(imagenet)";

/// A gateway with these models, and `count` objects made of a few photos.
fn world(models: &TempDir, count: usize, flag: &str) -> World {
    let small = photos()
        .into_iter()
        .filter(|(_, bytes)| (5_000..12_000).contains(&bytes.len()));
    let small: Vec<_> = small.collect();
    let object = |index: usize| {
        let (name, bytes) = &small[index % small.len()];
        (format!("{index:03}-{name}"), bytes.clone())
    };
    let objects: Objects = (0..count).map(object).collect();
    let flags = [format!("--models={}", models.path().display()), flag.to_owned()];
    World::with_flags(objects, &flags)
}

/// Even with cached weights, no plan runs the model on this host.
#[test]
fn a_host_without_onnx_runtime_runs_models_at_the_gateway() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world(&models, 6, "--threads=2");
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let weights = world.folder().join("weights");
    let plain = world.reader(&pipeline).model_cache(&weights).mode(Mode::Plain);
    assert_eq!(read_rows(plain).len(), 6);
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
    let (report, stderr) = read(&["--auto"]);
    assert_eq!(
        (&report["samples"], &report["errors"]),
        (&6.into(), &0.into()),
        "{stderr}"
    );
    assert_eq!(
        report["value_bytes"],
        6 * 2_000,
        "only the outputs of the model are transferred"
    );
    assert!(
        stderr.contains("cannot load ONNX Runtime from /nowhere"),
        "{stderr}"
    );
    assert!(
        stderr.contains("models: they run at the gateway only"),
        "{stderr}"
    );
    // The value cache then has the outputs of the model.
    let cached_values = world.folder().join("cached_values");
    for (epoch, bytes) in [(0, 6 * 2_000), (1, 0)] {
        let (report, stderr) = read(&["--auto", "--value-cache", cached_values.to_str().unwrap()]);
        assert_eq!(report["errors"], 0, "{stderr}");
        assert_eq!(report["value_bytes"], bytes, "epoch {epoch}");
    }
    let (report, stderr) = read(&["--plain"]);
    assert_eq!(report["errors"], 6, "the host cannot run the pipeline: {stderr}");
}

/// With one thread at the gateway and a fast link, a plan runs the model on this host too.
#[test]
fn weights_are_fetched_once_in_the_background() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world(&models, 400, "--threads=1");
    let (relay, gate) = gated_relay(world.gateway.listen());
    let endpoint = format!("http://{}", relay.address());
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let cache = world.folder().join("weights");
    let auto = || {
        let reader = reader(&endpoint, &pipeline).model_cache(&cache);
        reader.mode(Mode::Auto).batch_size(8)
    };
    run(async {
        let mut reader = auto().build().await.unwrap();
        let after_model = reader.pipeline().len() - 1;
        let mut rows: Vec<Row> = Vec::new();
        while gate.requests() == 0 {
            let batch = reader.try_next().await.unwrap();
            rows.extend(
                batch
                    .expect("the epoch ends before the weights are requested")
                    .into_rows(),
            );
        }
        for _ in 0..8 {
            rows.extend(reader.try_next().await.unwrap().unwrap().into_rows());
        }
        assert!(!cache.exists(), "the weights are not cached yet");
        assert!(
            rows.iter()
                .all(|row| usize::from(row.stage) >= after_model && row.value.is_ok())
        );
        gate.open();
        let mut later: Vec<Row> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            later.extend(batch.into_rows());
        }
        assert_eq!(rows.len() + later.len(), 400);
        assert!(
            later.iter().any(|row| usize::from(row.stage) < after_model),
            "expected samples whose model runs on the host"
        );
        assert!(later.iter().all(|row| row.value.is_ok()));
    });
    assert_eq!(gate.requests(), 1);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    assert_eq!(read_rows(auto()).len(), 400);
    assert_eq!(gate.requests(), 1, "cached weights are not requested again");
}
