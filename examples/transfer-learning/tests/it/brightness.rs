//! Photos whose label is learnable: whether the photo is bright.

use std::process::Output;

use serde_json::Value;

use super::world::{Objects, World, brightness_labels, photos, text};

const PIPELINE: &str = "decode | resize(12, 12) | to_float | cast(f16)";
const AUGMENTED: &str = "decode | random_resized_crop(12) | flip_h | to_float | cast(f16)";

/// Sixty photos with fewer bytes than their pixels, and one object without a label.
fn world() -> World {
    let all = photos();
    let large = all
        .iter()
        .filter(|(name, bytes)| name.starts_with("jpeg_") && bytes.len() > 5_000);
    let mut objects: Objects = large
        .cycle()
        .take(60)
        .enumerate()
        .map(|(index, (name, bytes))| (format!("set/{index:02}-{name}"), bytes.clone()))
        .collect();
    objects.insert("set/unlabelled.png".to_owned(), b"no photo".to_vec());
    World::new(objects, &[])
}

fn transfer(world: &World, labels: &str, extra_arguments: &[&str]) -> Output {
    transfer_with_pipeline(world, labels, PIPELINE, extra_arguments)
}

fn transfer_with_pipeline(world: &World, labels: &str, pipeline: &str, extra_arguments: &[&str]) -> Output {
    let pipelines = ["--pipeline", pipeline, "--augmented-pipeline", AUGMENTED];
    let arguments = [&pipelines[..], extra_arguments].concat();
    world.program(labels, &arguments).output().unwrap()
}

#[test]
fn every_mode_trains_the_same_head() {
    let world = world();
    let admin = format!("http://{}", world.gateway.admin());
    let store = format!("http://{}", world.gateway.store().unwrap());
    let flags = [
        "--epochs",
        "2",
        "--l2",
        "1",
        "--admin",
        &admin,
        "--plain-endpoint",
        &store,
    ];
    let output = transfer(
        &world,
        &brightness_labels(&world.objects),
        &[&flags[..], &["--json"]].concat(),
    );
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("1 objects have no label and are left out: set/unlabelled.png"),
        "{stderr}"
    );
    assert!(stderr.contains("1 labels have no object: gone.png"), "{stderr}");

    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&report["samples"], &report["held_out"]),
        (&60.into(), &16.into())
    );
    let parts = report["parts"].as_array().unwrap();
    let number = |line: &Value, name: &str| line[name].as_f64().unwrap();
    for (part, expected_modes) in parts.iter().zip([
        &["plain", "pushed", "auto", "cached", "cached, again"][..],
        &["plain", "pushed", "auto", "cached"],
    ]) {
        let lines = part["lines"].as_array().unwrap();
        let found: Vec<_> = lines
            .iter()
            .map(|line| line["method"].as_str().unwrap())
            .collect();
        assert_eq!(found, expected_modes);
        for line in lines {
            assert_eq!(line["other_predictions"], 0, "{line}");
            assert_eq!(
                line["auc"], lines[0]["auc"],
                "the features are equal bit for bit: {line}"
            );
            assert!(number(line, "balanced_accuracy") > 0.7, "{line}");
            assert!(number(line, "gateway_cpu_seconds") >= 0.0);
            assert!(number(line, "peak_bytes") > 1e6);
            assert!(number(line, "train_seconds") > 0.0, "{line}");
        }
        let (plain, pushed) = (&lines[0], &lines[1]);
        assert_eq!(plain["stages"].as_object().unwrap().len(), 1);
        assert_eq!(plain["stages"]["0"], plain["samples"]);
        assert_eq!(
            pushed["stages"][part["pipeline"].as_str().unwrap().split('|').count().to_string()],
            pushed["samples"]
        );
        assert!(number(pushed, "received_bytes") < number(plain, "received_bytes"));
    }
    let cached = &parts[0]["lines"][4];
    assert_eq!(
        (&cached["cache_hits"], &cached["received_bytes"]),
        (&60.into(), &0.into()),
        "{cached}"
    );
    assert_eq!(
        parts[1]["lines"][3]["cache_hits"], 0,
        "nothing is cached of a pipeline that starts with random steps"
    );

    let table = transfer(
        &world,
        &brightness_labels(&world.objects),
        &["--epochs", "0", "--methods", "plain,pushed", "--samples", "40"],
    );
    let table = text(&table.stdout);
    assert!(table.starts_with("40 samples, "), "{table}");
    assert!(
        table.contains("\nplain: 40 as stored\npushed: 40 after step 4, `cast`\n"),
        "{table}"
    );
}

#[test]
fn invalid_inputs_are_reported() {
    let world = world();
    let error_of = |output: Output| {
        let stderr = text(&output.stderr);
        let line = stderr.lines().find(|line| line.starts_with("Error: "));
        let line = line.unwrap_or_default();
        format!("exit {}: {line}", output.status.code().unwrap())
    };
    let error = |labels: &str, extra_arguments: &[&str]| error_of(transfer(&world, labels, extra_arguments));
    let labels = brightness_labels(&world.objects);
    let store = format!("http://{}", world.gateway.store().unwrap());
    let file = world.folder().join("labels.csv").display().to_string();
    let refused = transfer(&world, &labels, &["--admin", &store]);
    let stderr = text(&refused.stderr);
    assert!(stderr.contains("403 Forbidden"), "{stderr}");
    let errors = [
        error("00.png;1\n", &[]),
        error("a,b\nnone.png,1\n", &[]),
        error(&labels.replace("0.2", "0.9"), &[]),
        error_of(transfer_with_pipeline(
            &world,
            &labels,
            "decode | resize(8, 8)",
            &["--methods", "plain"],
        )),
        error_of(transfer_with_pipeline(
            &world,
            &labels,
            "decode | rezise(8, 8)",
            &[],
        )),
        error(&labels, &["--l2", "0"]),
        error(&labels, &["--endpoint-url", &store, "--methods", "pushed"]),
        error(
            &labels,
            &["--endpoint-url", "http://127.0.0.1:9", "--methods", "pushed"],
        ),
        error_of(refused),
    ];
    let address = (r"127\.0\.0\.1:\d{3,}", "[address]");
    insta::with_settings!({ filters => [address, (file.as_str(), "labels.csv")] }, {
        insta::assert_snapshot!(errors.join("\n"));
    });
}
