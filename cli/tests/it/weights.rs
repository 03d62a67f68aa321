//! Weights of models on a host without ONNX Runtime.

use std::{fs, path::Path};

use pushdown_testkit::{Objects, World, model_folder, onnxruntime, photos};

use super::{cli::pushdown, explain_models::PREPARATION};

/// Even with cached weights, no plan runs the model on this host.
#[test]
fn a_host_without_onnx_runtime_runs_models_at_the_gateway() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let small = photos().unwrap().into_iter();
    let small = small.filter(|(_, bytes)| (5_000..12_000).contains(&bytes.len()));
    let objects: Objects = small.take(6).collect();
    assert_eq!(objects.len(), 6);
    let flags = [
        format!("--models={}", models.path().display()),
        "--threads=2".to_owned(),
    ];
    let world = World::with_flags(objects, &flags).unwrap();
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let read = |library: &Path, flags: &[&str]| {
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
            .env("ORT_DYLIB_PATH", library);
        let output = command.output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (report, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (report, stderr) = read(&onnxruntime(), &["--plain"]);
    assert_eq!(report["errors"], 0, "{stderr}");
    let cached = fs::read_dir(world.folder().join("pushdown/models")).unwrap();
    assert_eq!(cached.count(), 1);
    let missing = Path::new("/nowhere/libonnxruntime.so");
    let (report, stderr) = read(missing, &["--auto"]);
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
        let (report, stderr) = read(
            missing,
            &["--auto", "--value-cache", cached_values.to_str().unwrap()],
        );
        assert_eq!(report["errors"], 0, "{stderr}");
        assert_eq!(report["value_bytes"], bytes, "epoch {epoch}");
    }
    let (report, stderr) = read(missing, &["--plain"]);
    assert_eq!(report["errors"], 6, "the host cannot run the pipeline: {stderr}");
}
