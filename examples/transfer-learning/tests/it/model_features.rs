//! Features of a real model, computed at the gateway, on the host, or split between both.

use pushdown_testkit::{model_folder, onnxruntime};
use serde_json::Value;

use super::world::{Objects, World, brightness_labels, photos, text};

/// Runs the default pipeline over one epoch, with weights cached in a folder of this name.
fn transfer(world: &World, cache: &str, extra_arguments: &[&str]) -> String {
    let labels = brightness_labels(&world.objects);
    let output = world
        .program(&labels, &[&["--epochs", "0"][..], extra_arguments].concat())
        .env("XDG_CACHE_HOME", world.folder().join(cache))
        .env("ORT_DYLIB_PATH", onnxruntime())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Features computed on different tiers differ by the tolerance of law 1 and one step of f16. This is thousands of times less than
/// what changes a prediction of the head.
#[test]
fn every_mode_predicts_the_same_from_the_features_of_a_model() {
    let models = model_folder(&["efficientnet_lite0"]).unwrap();
    let objects = photos().into_iter();
    let objects: Objects = objects
        .map(|(name, bytes)| (format!("set/{name}"), bytes))
        .collect();
    let world = World::new(objects, &[format!("--models={}", models.path().display())]);
    let all = world.objects.len();

    // `auto` runs before `plain`, so that it plans before the weights are fetched.
    let flags = ["--methods", "pushed,auto,plain,cached", "--json"];
    let report: Value = serde_json::from_str(&transfer(&world, "first", &flags)).unwrap();
    assert_eq!(report["samples"], all);
    let lines = report["parts"][0]["lines"].as_array().unwrap();
    let found: Vec<_> = lines
        .iter()
        .map(|line| line["method"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["pushed", "auto", "plain", "cached", "cached, again"]);
    let number = |line: &Value, name: &str| line[name].as_f64().unwrap();
    for line in lines {
        assert_eq!(line["other_predictions"], 0, "{line}");
        let difference = (number(line, "auc") - number(&lines[0], "auc")).abs();
        assert!(difference <= 1e-3, "{line}");
        assert!(number(line, "balanced_accuracy") > 0.7, "{line}");
    }
    assert_eq!(lines[0]["stages"]["7"], all, "the gateway runs all steps");
    assert_eq!(lines[2]["stages"]["0"], all, "the host runs all steps");
    assert!(number(&lines[0], "received_bytes") < number(&lines[2], "received_bytes"));
    let plan = lines[1]["plan"].as_str().unwrap_or_default();
    assert!(plan.starts_with("plan: "), "{}", lines[1]);
    for line in lines
        .iter()
        .filter(|line| line["method"] == "plain" || line["method"] == "pushed")
    {
        assert!(line["plan"].is_null(), "{line}");
    }

    // The report shows the plan, the measured tiers, and the classes of objects.
    let table = transfer(&world, "second", &["--methods", "auto", "--samples", "16"]);
    let (_, report_lines) = table.split_once("\nauto: ").expect(&table);
    let mut lines = report_lines.lines().skip(1);
    let mut next = || lines.next().unwrap_or_default();
    let plan = next();
    assert!(plan.starts_with("  plan: "), "{table}");
    assert!(plan.contains("), limited by "), "{table}");
    let tiers = next();
    assert!(
        tiers.starts_with("    link ") && tiers.contains(" cores at the gateway, "),
        "{table}"
    );
    let class = next();
    assert!(class.contains("objects") && class.contains(" % "), "{table}");
}
