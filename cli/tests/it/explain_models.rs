//! `pushdown explain` of a pipeline with a model.

use pushdown_testkit::{Objects, World, model_folder, onnxruntime, photos};

use super::cli::pushdown;

pub(super) const PREPARATION: &str = "decode | resize(224, 224) | to_float | normalize(imagenet)";

/// The command measures both tiers; the plan depends on the flags that describe them.
#[test]
fn explain_measures_and_plans() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let large = photos()
        .unwrap()
        .into_iter()
        .filter(|(_, bytes)| bytes.len() > 5_000);
    let objects: Objects = large.take(6).collect();
    assert_eq!(objects.len(), 6);
    let world = World::with_flags(objects, &flags).unwrap();
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let explain = |flags: &[&str]| {
        let arguments = ["explain", "s3://photos/", "-p", &pipeline, "--samples", "4"];
        let mut command = pushdown(&[&arguments, flags].concat());
        command
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", onnxruntime());
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    let json = |flags: &[&str]| -> serde_json::Value {
        serde_json::from_str(&explain(&[flags, &["--json"]].concat())).unwrap()
    };
    let fractions = |plan: &serde_json::Value| -> Vec<f64> {
        let fractions = plan["shares"].as_array().unwrap();
        fractions
            .iter()
            .map(|fraction| fraction.as_f64().unwrap())
            .collect()
    };
    // The output of the model has 2,000 bytes: over a slow link the gateway computes it for all photos that are larger.
    let slow = json(&["--bandwidth", "0.05", "--gateway-cores", "64"]);
    let ways = slow["classes"][0]["candidates"].as_array().unwrap();
    assert_eq!(ways[0]["stage"], 0);
    // Plain reading needs the weights. Measuring has fetched them.
    let weights = |explained: &serde_json::Value| {
        explained["classes"][0]["candidates"][0]["weights_bytes"]
            .as_f64()
            .unwrap()
    };
    assert!(weights(&slow) > 4e6, "{}", weights(&slow));
    assert_eq!(slow["samples_left"], 6.0);
    let many_epochs = json(&["--epochs", "90"]);
    assert!(weights(&many_epochs) < 1.0, "the weights are cached");
    assert_eq!(many_epochs["samples_left"], 540.0);
    let last = ways.last().unwrap();
    assert_eq!(last["host_seconds"], 0.0);
    assert!(last["gateway_seconds"].as_f64().unwrap() > 0.0);
    assert!(ways.len() >= 5, "expected splits inside the model: {ways:?}");
    let planned = fractions(&slow["plan"]);
    assert!((planned.iter().sum::<f64>() - 1.0).abs() < 1e-6);
    assert!(planned[0] < 0.5, "{planned:?}");
    let rate = |plan: &serde_json::Value| plan["samples_per_second"].as_f64().unwrap();
    assert!(rate(&slow["plan"]) > rate(&slow["plain"]));
    assert_eq!(slow["plan"]["bound"], "the link");
    // Each stage has the kind of its value and the rate if all samples use this split.
    let stages = slow["stages"].as_array().unwrap();
    assert_eq!(stages.len(), ways.len());
    assert_eq!(stages[0]["kind"], "Bytes");
    assert!(stages[0]["shape"].is_null());
    let resized = stages.iter().find(|stage| stage["after"] == "resize").unwrap();
    assert_eq!(resized["kind"], "Image");
    assert_eq!(resized["shape"], serde_json::json!([224, 224, 3]));
    let features = stages.last().unwrap();
    assert_eq!(features["kind"], "Tensor");
    assert_eq!(features["dtype"], "f16");
    assert_eq!(features["shape"][0], 1000);
    assert_eq!(features["bytes"], 2000.0);
    // The link limits the rate at every stage.
    for stage in stages {
        let (rate, bytes) = (rate(stage), stage["bytes"].as_f64().unwrap());
        assert!((rate * bytes * 8.0 / 50_000.0 - 1.0).abs() < 1e-6, "{stage}");
    }
    // A host that is 1000 times as fast: the margin allows for other load on this machine.
    let host = |explained: &serde_json::Value| explained["stages"][0]["host_seconds"].as_f64().unwrap();
    let fast = json(&["--bandwidth", "0.05", "--host-speed", "1000"]);
    assert!(
        host(&fast) < host(&slow) / 10.0,
        "{} {}",
        host(&fast),
        host(&slow)
    );
    // If the gateway has no cores, everything is read plainly.
    let no_cores = json(&["--gateway-cores", "0"]);
    assert!((fractions(&no_cores["plan"])[0] - 1.0).abs() < 1e-9);
    let table = explain(&["--trainer", "50"]);
    assert!(table.contains("model until"), "{table}");
    assert!(table.contains("  Image(224x224x3 u8)  "), "{table}");
    assert!(table.contains("limited by training"), "{table}");
    assert!(table.contains("assumed: 6 samples to read, "), "{table}");
}
