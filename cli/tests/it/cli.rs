//! The `pushdown` binary.

use std::process::{Command, Output};

use pushdown::{Context, Limits, Pipeline, Sample, wire};
use pushdown_testkit::{ACCESS_KEY, Objects, SECRET_KEY, World, photos};

const SHORT: &str = "decode | resize(short=40) | center_crop(32)";

/// The command with a clean environment: no endpoint, and the credentials of the tests.
pub(super) fn pushdown(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pushdown"));
    command.env_clear().args(arguments);
    command
        .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    command
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null");
    command
}

/// The exit code and both output streams, for a snapshot.
fn shown(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = pushdown(arguments).output().unwrap();
    let (stdout, stderr) = (
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    );
    format!(
        "$ pushdown {}\nexit {}\n{stdout}{stderr}",
        arguments.join(" "),
        status.code().unwrap()
    )
}

pub(super) fn run_command(world: &World, arguments: &[&str]) -> Output {
    pushdown(arguments)
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap()
}

/// Runs the pipeline on an object in this process and returns the value.
fn expected(world: &World, pipeline: &str, key: &str, seed: Option<u64>, epoch: u32) -> Sample {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    let mut context = Context::new(key.as_bytes());
    context.seed = seed;
    context.epoch = Some(epoch);
    let object = Sample::Bytes(world.objects[key].clone().into());
    pipeline.run(0..pipeline.len(), object, &context).unwrap()
}

#[test]
fn help() {
    insta::assert_snapshot!(
        [
            shown(&["--help"]),
            shown(&["get", "--help"]),
            shown(&["schema", "--help"]),
            shown(&["read", "--help"]),
            shown(&["explain", "--help"]),
            shown(&["ls", "--help"]),
            shown(&["pack", "--help"]),
            shown(&["index", "--help"]),
            shown(&["warm", "--help"]),
            shown(&["steps", "--help"]),
            shown(&["check", "--help"]),
            shown(&["store-check", "--help"])
        ]
        .join("\n")
    );
}

#[test]
fn steps() {
    insta::assert_snapshot!(shown(&["steps"]));
    let json: serde_json::Value =
        serde_json::from_slice(&pushdown(&["steps", "--json"]).output().unwrap().stdout).unwrap();
    assert_eq!(json.as_array().unwrap().len(), pushdown::step::ALL.len());
    assert_eq!(json[0]["name"], "decode");
}

#[test]
fn check() {
    let pipeline =
        "decode | resize(short=256) | center_crop(224) | to_float | normalize(imagenet) | cast(f16)";
    insta::assert_snapshot!(
        [
            shown(&["check", pipeline, "--size", "500x375", "--bytes", "110000"]),
            shown(&["check", pipeline]),
            shown(&[
                "check",
                "decode | random_resized_crop(64) | encode(jpeg)",
                "--size",
                "40x30"
            ]),
        ]
        .join("\n")
    );
    let json = pushdown(&[
        "check", pipeline, "--size", "500x375", "--bytes", "110000", "--json",
    ])
    .output()
    .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["stages"][2]["shape"], serde_json::json!([256, 341, 3]));
    assert_eq!(json["stages"][3]["bytes"], 150_528);
    assert_eq!(json["smallest"], 0);
}

#[test]
fn command_line_errors_exit_with_2() {
    insta::assert_snapshot!(
        [
            shown(&["check", "decode | rezise(8)"]),
            shown(&["check", "decode | resize(0, 8)"]),
            shown(&["check", "decode", "--size", "500"]),
            shown(&["get", "photos/cat.jpg", "--pipeline", "decode", "-o", "-"]),
            shown(&["get", "s3://photos", "--pipeline", "decode", "-o", "x"]),
            shown(&[
                "read",
                "s3://photos/",
                "--pipeline",
                "decode | flip_h",
                "--endpoint-url",
                "http://127.0.0.1:9"
            ]),
            shown(&[
                "read",
                "s3://photos/",
                "--pipeline",
                "decode",
                "--endpoint-url",
                "localhost:9900"
            ]),
            shown(&[
                "read",
                "s3://photos/",
                "--pipeline",
                "decode",
                "--split",
                "2",
                "--endpoint-url",
                "http://127.0.0.1:9"
            ]),
        ]
        .join("\n")
    );
}

#[test]
fn get_writes_the_value_of_the_pipeline() {
    let world = World::with_photos(1).unwrap();
    let key = world.objects.keys().next().unwrap();
    let (object, file) = (format!("s3://photos/{key}"), world.folder().join("value"));
    let file = file.to_str().unwrap();
    let expected_value = expected(&world, SHORT, key, None, 0);
    for accept in ["npy", "arrow", "safetensors", "raw"] {
        let get = |extra_arguments: &[&str]| {
            let arguments = [
                "get",
                &object,
                "--pipeline",
                SHORT,
                "--accept",
                accept,
                "-o",
                file,
            ];
            let output = run_command(&world, &[&arguments, extra_arguments].concat());
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            std::fs::read(file).unwrap()
        };
        let pushed = get(&[]);
        assert_eq!(pushed, get(&["--plain"]), "{accept}");
        if accept == "safetensors" {
            let value = wire::decode(
                "application/vnd.safetensors",
                |_| None,
                pushed.into(),
                &Limits::default(),
            )
            .unwrap();
            assert_eq!(value, expected_value);
        }
    }
    let random = "decode | random_resized_crop(24) | encode(jpeg, quality=90)";
    let arguments = [
        "get",
        &object,
        "--pipeline",
        random,
        "--seed",
        "3",
        "--epoch",
        "2",
        "-o",
        "-",
    ];
    let output = run_command(&world, &arguments);
    assert_eq!(
        expected(&world, random, key, Some(3), 2),
        Sample::Bytes(output.stdout.clone().into())
    );
    assert_eq!(
        output.stdout,
        run_command(&world, &[&arguments[..], &["--plain"]].concat()).stdout
    );
}

#[test]
fn get_reports_errors() {
    let mut objects = photos().unwrap();
    objects.retain(|key, _| key == "jpeg_420.jpg");
    objects.insert("none.txt".to_owned(), b"text".to_vec());
    let world = World::with_objects(objects).unwrap();
    let get = |arguments: &[&str]| {
        let output = run_command(&world, &[&["get", "-o", "-"], arguments].concat());
        format!(
            "exit {}: {}",
            output.status.code().unwrap(),
            String::from_utf8_lossy(&output.stderr)
        )
    };
    let store = format!("http://{}", world.gateway.store().unwrap());
    let filters = [(r"127\.0\.0\.1:\d+", "[address]")];
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!(
            [
                get(&["s3://photos/missing.jpg", "--pipeline", "decode"]),
                get(&["s3://photos/none.txt", "--pipeline", "decode"]),
                get(&["s3://photos/none.txt", "--pipeline", "decode", "--plain"]),
                get(&["s3://photos/jpeg_420.jpg", "--pipeline", "decode | flip_h"]),
                get(&["s3://photos/jpeg_420.jpg", "--pipeline", "decode | flip_h", "--plain"]),
                get(&["s3://photos/jpeg_420.jpg", "--pipeline", "decode", "--endpoint-url", &store]),
            ]
            .join("")
        );
    });
}

#[test]
fn read_reports_its_statistics() {
    let mut objects: Objects = photos().unwrap().into_iter().take(6).collect();
    objects.insert("none.txt".to_owned(), b"text".to_vec());
    let world = World::with_objects(objects).unwrap();
    for (mode, extra_arguments) in [("pushdown", &[][..]), ("plain", &["--plain"][..])] {
        let arguments = [
            "read",
            "s3://photos/",
            "--pipeline",
            SHORT,
            "--seed",
            "1",
            "--batch-size",
            "3",
            "--json",
        ];
        let output = run_command(&world, &[&arguments, extra_arguments].concat());
        assert_eq!(output.status.code(), Some(1), "one sample failed");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            stderr.starts_with("none.txt: UndecodableObject: ") && stderr.lines().count() == 1,
            "{stderr}"
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut names: Vec<_> = report.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "batch_wait_p50_seconds",
                "batch_wait_p99_seconds",
                "cache_hits",
                "cache_writes",
                "cpu_seconds",
                "cropped_samples",
                "endpoint",
                "epoch_seconds",
                "errors",
                "first_batch_seconds",
                "gateway_bytes_down",
                "gateway_bytes_up",
                "gateway_cache_hits",
                "gateway_prefix_hits",
                "gateway_shared",
                "last_epoch",
                "mode",
                "not_cached",
                "peak_bytes",
                "retries",
                "samples",
                "samples_per_second",
                "seconds",
                "split",
                "stages",
                "start_seconds",
                "stored_bytes",
                "value_bytes",
                "waiting_seconds",
                "wire_bytes_down",
                "wire_bytes_up"
            ]
        );
        assert_eq!(report["epoch_seconds"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            report["last_epoch"]["stages"], report["stages"],
            "the only epoch is the last one"
        );
        let cpu = |report: &serde_json::Value| report["cpu_seconds"].as_f64().unwrap();
        assert!((0.0..=cpu(&report)).contains(&cpu(&report["last_epoch"])));
        let stages = report["stages"].as_object().unwrap();
        assert_eq!(
            stages.values().filter_map(serde_json::Value::as_u64).sum::<u64>(),
            6
        );
        assert_eq!(
            stages.get("0").is_some_and(|as_stored| as_stored == 6),
            mode == "plain",
            "{report}"
        );
        let seconds = |name: &str| report[name].as_f64().unwrap();
        assert!(
            seconds("start_seconds") <= seconds("first_batch_seconds"),
            "{report}"
        );
        assert!(
            seconds("batch_wait_p50_seconds") <= seconds("batch_wait_p99_seconds"),
            "{report}"
        );
        assert_eq!(
            (&report["mode"], &report["samples"], &report["errors"]),
            (&mode.into(), &6.into(), &1.into())
        );
    }
    let nothing = run_command(&world, &["read", "s3://photos/nothing/", "--pipeline", SHORT]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nothing.stderr).contains("no objects found under s3://photos/nothing/"));
}

/// The limit holds for any batch size and any shard of the data set.
#[test]
fn read_stops_exactly_at_the_limit() {
    let world = World::with_photos(20).unwrap();
    for (limit, extra_arguments, samples) in [
        ("10", &[][..], 10),
        ("10", &["--batch-size", "4"], 10),
        ("10", &["--batch-size", "64", "--plain"], 10),
        ("10", &["--batch-size", "3", "--auto"], 10),
        ("1", &["--batch-size", "4"], 1),
        ("20", &["--batch-size", "7"], 20),
        ("21", &[], 20),
        ("7", &["--rank", "1", "--world", "2", "--batch-size", "2"], 7),
        ("11", &["--rank", "1", "--world", "2"], 10),
    ] {
        let arguments = [
            "read",
            "s3://photos/",
            "-p",
            SHORT,
            "--seed",
            "1",
            "--json",
            "--limit",
            limit,
        ];
        let output = run_command(&world, &[&arguments, extra_arguments].concat());
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["samples"], samples, "--limit {limit} {extra_arguments:?}");
        let stages = report["stages"].as_object().unwrap();
        let delivered: u64 = stages.values().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(delivered, samples, "--limit {limit} {extra_arguments:?}");
    }
    let zero_limit = run_command(&world, &["read", "s3://photos/", "-p", SHORT, "--limit", "0"]);
    assert_eq!(zero_limit.status.code(), Some(2));
}
