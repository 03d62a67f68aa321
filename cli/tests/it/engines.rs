//! A gateway with another version of ONNX Runtime than this host.

use pushdown_testkit::{Objects, World, model_folder, onnxruntime, other_onnxruntime, photos};

use super::{cli::pushdown, explain_models::PREPARATION};

/// Features of two versions must not be mixed, so the reader runs the model itself. The steps before it, a pipeline without a
/// model, and one that runs completely at the gateway are still pushed down.
#[test]
fn models_run_on_the_host_if_the_gateway_has_another_onnx_runtime() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let library = other_onnxruntime();
    assert!(
        library.exists(),
        "scripts/models.sh installs {}",
        library.display()
    );
    let flags = [
        format!("--models={}", models.path().display()),
        format!("--onnxruntime={}", library.display()),
    ];
    let large = photos()
        .unwrap()
        .into_iter()
        .filter(|(_, bytes)| bytes.len() > 5_000);
    let objects: Objects = large.take(6).collect();
    let stored: usize = objects.values().map(Vec::len).sum();
    let world = World::with_flags(objects, &flags).unwrap();
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let read = |pipeline: &str, flags: &[&str]| {
        let arguments = [
            "read",
            "s3://photos/",
            "-p",
            pipeline,
            "--json",
            "--batch-size",
            "2",
        ];
        let output = pushdown(&[&arguments, flags].concat())
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", onnxruntime())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&stderr);
        assert_eq!(
            (&report["samples"], &report["errors"]),
            (&6.into(), &0.into()),
            "{stderr}"
        );
        (report["value_bytes"].as_u64().unwrap(), stderr)
    };
    let (bytes, stderr) = read(&pipeline, &["--auto"]);
    assert!(bytes >= stored as u64, "{bytes} of {stored} bytes: {stderr}");
    for expected in [
        "the gateway runs models with onnxruntime=1.30.0; provider=cpu; ",
        "this host with onnxruntime=1.31.1; provider=cpu; ",
        "the gateway is older",
        "the same version of ONNX Runtime",
    ] {
        assert!(stderr.contains(expected), "no `{expected}` in: {stderr}");
    }
    // Only this host runs the model.
    let (bytes, stderr) = read(&pipeline, &["--split", "4"]);
    assert_eq!(
        (bytes, stderr.contains("ONNX Runtime")),
        (6 * 3 * 224 * 224 * 4, false),
        "{stderr}"
    );
    let explained = pushdown(&["explain", "s3://photos/", "-p", &pipeline, "--samples", "2"])
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .env("XDG_CACHE_HOME", world.folder())
        .env("ORT_DYLIB_PATH", onnxruntime())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&explained.stderr);
    assert!(explained.status.success(), "{stderr}");
    assert!(
        stderr.contains("use the same version of ONNX Runtime on both"),
        "{stderr}"
    );
    // The whole model runs at the gateway.
    let (bytes, stderr) = read(&pipeline, &["--split", "full"]);
    assert_eq!(
        (bytes, stderr.contains("plainly")),
        (6 * 2_000, false),
        "{stderr}"
    );
    // The pipeline has no model.
    let (bytes, stderr) = read("decode | resize(8, 8) | to_float", &["--split", "2"]);
    assert_eq!((bytes, stderr.contains("plainly")), (6 * 192, false), "{stderr}");
}
