//! Why values are not cached, in the report of `pushdown read`.

use pushdown_testkit::{Objects, World, model_folder, photos};

use super::cli::pushdown;

/// Six photos with more bytes than a small crop and fewer bytes than their pixels.
fn photos_larger_than_crops() -> Objects {
    let large: Vec<_> = photos()
        .unwrap()
        .into_iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && bytes.len() > 5_000)
        .collect();
    let objects = (0..6).map(|index| {
        let (name, bytes) = &large[index % large.len()];
        (format!("{index}-{name}"), bytes.clone())
    });
    objects.collect()
}

/// The report has the same counts as text and as JSON.
#[test]
fn the_report_lists_the_reasons() {
    let models = model_folder(&["tiny/constants"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let world = World::with_flags(photos_larger_than_crops(), &flags).unwrap();
    let read = |pipeline: &str, extra_arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let arguments = [
            "read",
            "s3://photos/",
            "-p",
            pipeline,
            "--seed",
            "1",
            "--value-cache",
        ];
        let mut command = pushdown(&arguments);
        command.arg(folder.path()).args(extra_arguments);
        command
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", "/no/library.so");
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = read("decode | to_float", &[]);
    let summary = "0 values written to the value cache; not cached: 6 larger than their objects\n";
    assert!(text.ends_with(summary), "{text}");
    let json: serde_json::Value = serde_json::from_str(&read("decode | to_float", &["--json"])).unwrap();
    assert_eq!(json["not_cached"], serde_json::json!({"larger": 6}));
    assert_eq!(json["cache_writes"], 0);
    let kept = read("decode | resize(short=40) | center_crop(16)", &[]);
    assert!(!kept.contains("not cached"), "{kept}");
    // A host without ONNX Runtime cannot use the value before the first random step.
    let pipeline = "decode | resize(4, 4) | flip_h | to_float | model(constants)";
    let json: serde_json::Value = serde_json::from_str(&read(pipeline, &["--auto", "--json"])).unwrap();
    assert_eq!(json["not_cached"], serde_json::json!({"no_models": 6}));
}
