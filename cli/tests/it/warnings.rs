//! Warnings of the command line: pipelines that run, but may not give the results expected of their models.

use std::fs;

use pushdown_testkit::{Objects, World, model_folder, onnxruntime, photos};

use super::cli::pushdown;

#[test]
fn check_warns_of_models_that_take_one_sample_at_a_time() {
    let models = model_folder(&["tiny/batch_mean", "tiny/constants"]).unwrap();
    let check = |model: &str| {
        let pipeline = format!("decode | resize(4, 4) | to_float | model({model})");
        let folder = models.path().to_str().unwrap();
        let output = pushdown(&["check", &pipeline, "--models", folder])
            .env("ORT_DYLIB_PATH", onnxruntime())
            .output()
            .unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        stderr
    };
    assert_eq!(check("constants"), "");
    assert_eq!(
        check("batch_mean"),
        "warning: the model batch_mean runs on one sample at a time: its results in a batch differ from those of single samples\n"
    );
}

/// A pipeline that normalizes its inputs unlike the training of the model gets a warning, with a local description of the model
/// or the description of the gateway.
#[test]
fn check_and_explain_warn_of_inputs_with_another_normalization() {
    let models = model_folder(&["tiny/constants"]).unwrap();
    let description = r#"{"mean": [0.5], "std": [0.25]}"#;
    fs::write(models.path().join("constants.json"), description).unwrap();
    let folder = models.path().to_str().unwrap();
    let objects: Objects = photos().unwrap().into_iter().take(2).collect();
    let world = World::with_flags(objects, &[format!("--models={folder}")]).unwrap();
    let warnings = |arguments: &[&str]| {
        let mut command = pushdown(arguments);
        command
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .env("XDG_CACHE_HOME", world.folder())
            .env("ORT_DYLIB_PATH", onnxruntime());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        let warnings = stderr.lines().filter_map(|line| line.strip_prefix("warning: "));
        warnings.map(str::to_owned).collect::<Vec<_>>()
    };
    let trained = "the model constants was trained with mean=[0.5] and std=[0.25], but";
    let otherwise =
        format!("{trained} the pipeline normalizes with other values; use normalize(model=constants)");
    let nothing =
        format!("{trained} the pipeline does not normalize; put normalize(model=constants) before it");
    for (normalize, expected) in [
        ("normalize(model=constants) | ", None),
        ("normalize(mean=[0.5, 0.5, 0.5], std=0.25) | ", None),
        ("normalize(imagenet) | ", Some(otherwise)),
        ("", Some(nothing)),
    ] {
        let pipeline = format!("decode | resize(4, 4) | to_float | {normalize}model(constants)");
        let expected: Vec<_> = expected.into_iter().collect();
        for arguments in [
            &["check", &pipeline, "--models", folder][..],
            &["check", &pipeline],
            &["explain", "s3://photos/", "-p", &pipeline, "--samples", "2"],
        ] {
            assert_eq!(warnings(arguments), expected, "{arguments:?}");
        }
    }
}

/// Nothing is asked of the gateway then, so that no answer shows that the endpoint is a plain store.
#[test]
fn auto_says_why_it_reads_everything_plainly() {
    let world = World::with_photos(3).unwrap();
    let gateway = world.endpoint();
    let store = format!("http://{}", world.gateway.store().unwrap());
    let read = |endpoint: &str, pipeline: &str, extra: &[&str]| {
        let arguments = ["read", "s3://photos/", "-p", pipeline, "--endpoint-url", endpoint];
        let output = pushdown(&[&arguments, extra].concat()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{stderr}");
        stderr
    };
    let (large, small) = ("decode | resize(900, 900) | to_float", "decode | resize(8, 8)");
    let fallback = "falling back to plain reading: the whole pipeline runs on this host why=";
    for endpoint in [&store, &gateway] {
        let stderr = read(endpoint, large, &["--auto"]);
        let reason = "\"values are too large: expected at most 1 times the bytes of their objects (max_expand), found 2430000 bytes";
        assert_eq!(stderr.matches(fallback).count(), 1, "{stderr}");
        assert!(stderr.contains(&format!("{fallback}{reason}")), "{stderr}");
        // Plain reading was asked for.
        assert_eq!(read(endpoint, large, &["--plain"]), "");
    }
    assert!(!read(&gateway, small, &["--auto"]).contains(fallback));
    let expanded = ["--auto", "--max-expand", "1e9"];
    assert!(!read(&gateway, large, &expanded).contains(fallback));
}
