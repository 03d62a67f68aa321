//! `pushdown explain` on a host that shares its CPUs with the gateway.

use std::thread::available_parallelism;

use pushdown::{Context, Pipeline, Sample};
use pushdown_testkit::{World, photos};

use super::cli::pushdown;

const PIPELINE: &str = "decode | resize(64, 64) | to_float";

fn explain(world: &World, extra_arguments: &[&str]) -> String {
    let arguments = ["explain", "s3://photos/", "-p", PIPELINE];
    let output = pushdown(&[&arguments, extra_arguments].concat())
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn json(world: &World, extra_arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&explain(world, &[extra_arguments, &["--json"]].concat())).unwrap()
}

#[test]
fn cpus_shared_by_both_tiers_are_counted_once() {
    let world = World::with_photos(5).unwrap();
    let found = json(&world, &["--bandwidth", "1e6"]);
    let tiers = &found["tiers"];
    assert_eq!(
        (&tiers["shared"], &tiers["has_shared_cpus"]),
        (&true.into(), &true.into())
    );
    // The work of both tiers adds up on the shared cores, independent of the split.
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    for stage in found["stages"].as_array().unwrap() {
        let seconds = number(&stage["gateway_seconds"]) + number(&stage["host_seconds"]);
        let expected = number(&tiers["host_cores"]) / seconds;
        let found = number(&stage["samples_per_second"]);
        assert!(
            (found / expected - 1.0).abs() < 1e-6,
            "{stage}: {found}, expected {expected}"
        );
    }
    let text = explain(&world, &[]);
    assert!(text.contains("gateway and host use the same CPUs"), "{text}");
    let cores = format!(
        "{:.1} cores shared by gateway and host;",
        found["tiers"]["host_cores"].as_f64().unwrap()
    );
    assert!(text.contains(&cores), "{text}");
}

/// Steps are measured, and so run anew, although the result cache has all values.
#[test]
fn explain_measures_steps_whose_values_are_cached() {
    let photos = photos().unwrap().into_iter().take(5).collect();
    let world = World::with_flags(photos, &["--cache-memory=64MiB".to_owned()]).unwrap();
    let warmed = pushdown(&["warm", "s3://photos/", "-p", PIPELINE])
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap();
    assert!(
        warmed.status.success(),
        "{}",
        String::from_utf8_lossy(&warmed.stderr)
    );
    let found = json(&world, &["--bandwidth", "1e6"]);
    let last = found["stages"].as_array().unwrap().last().unwrap();
    assert!(last["gateway_seconds"].as_f64().unwrap() > 0.0, "{found}");
}

/// Photos whose pixels have more bytes than they have, and of which the pipeline reads a part.
#[test]
fn cropped_jpegs_are_measured_and_planned() {
    let enlarge = Pipeline::parse("decode | resize(500, 375) | encode(jpeg, quality=95)").unwrap();
    let world = World::with_photos(0).unwrap();
    for (number, photo) in photos()
        .unwrap()
        .into_values()
        .filter(|photo| photo.len() > 5_000)
        .take(3)
        .enumerate()
    {
        let photo = Sample::Bytes(photo.into());
        let large = enlarge.run(0..enlarge.len(), photo, &Context::new(b"")).unwrap();
        let Sample::Bytes(large) = large else {
            panic!("encode gives bytes");
        };
        world.put(&format!("{number}.jpg"), &large).unwrap();
    }
    let pipeline = "decode | random_resized_crop(224) | to_float";
    let explain = |extra_arguments: &[&str]| {
        let arguments = ["explain", "s3://photos/", "-p", pipeline, "--seed", "7"];
        let tiers = ["--gateway-cores", "8", "--host-cores", "8"];
        let output = pushdown(&[&arguments[..], &tiers, extra_arguments].concat())
            .env("PUSHDOWN_ENDPOINT", world.endpoint())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        String::from_utf8(output.stdout).unwrap()
    };
    let thin: serde_json::Value = serde_json::from_str(&explain(&["--bandwidth", "1", "--json"])).unwrap();
    let stages = thin["stages"].as_array().unwrap();
    let forms: Vec<_> = stages.iter().map(|stage| &stage["form"]).collect();
    assert_eq!(forms[1], "cropped-jpeg");
    assert!(forms.iter().filter(|form| form.is_null()).count() == forms.len() - 1);
    assert_eq!(
        (&stages[1]["stage"], &stages[1]["after"]),
        (&0.into(), &"(cropped JPEG)".into())
    );
    let number = |stage: usize, name: &str| stages[stage][name].as_f64().unwrap();
    assert!(number(1, "bytes") < 0.9 * number(0, "bytes"), "{stages:?}");
    assert!(number(1, "gateway_seconds") > 0.0 && number(1, "host_seconds") > 0.0);
    assert!(thin["plan"]["shares"][1].as_f64().unwrap() > 0.5, "{thin}");
    // With a trainer that takes longer than anything else, nothing is cropped.
    let idle: serde_json::Value =
        serde_json::from_str(&explain(&["--bandwidth", "1000", "--trainer", "100", "--json"])).unwrap();
    assert!(idle["plan"]["shares"][0].as_f64().unwrap() > 0.95, "{idle}");
    let text = explain(&["--bandwidth", "1"]);
    assert!(text.contains("(cropped JPEG)"), "{text}");
}

#[test]
fn a_sample_that_failed_is_named_once() {
    let world = World::with_photos(2).unwrap();
    world.put("broken.jpg", b"no image").unwrap();
    let output = pushdown(&["explain", "s3://photos/", "-p", PIPELINE])
        .env("PUSHDOWN_ENDPOINT", world.endpoint())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("broken.jpg: 422 UndecodableObject: "), "{text}");
    assert_eq!(text.matches("broken.jpg").count(), 1, "{text}");
}

/// A flag with a number of cores describes another machine, so CPUs are not shared unless `--shared` is set.
#[test]
fn hypothetical_tiers_have_separate_cpus() {
    let world = World::with_photos(3).unwrap();
    for (flags, shared) in [
        (&["--gateway-cores", "64"][..], false),
        (&["--host-cores", "1"], false),
        (&["--gateway-cores", "64", "--shared"], true),
        (&["--bandwidth", "100"], true),
        (&["--host-speed", "2"], true),
    ] {
        let tiers = &json(&world, flags)["tiers"];
        assert_eq!(
            (&tiers["shared"], &tiers["has_shared_cpus"]),
            (&shared.into(), &true.into()),
            "{flags:?}"
        );
        let text = explain(&world, flags);
        let reported = text.contains("use the same CPUs, as reported by the gateway");
        assert_eq!(
            reported,
            shared && !flags.contains(&"--shared"),
            "{flags:?}: {text}"
        );
        assert_eq!(
            text.contains("cores shared by gateway and host"),
            shared,
            "{flags:?}: {text}"
        );
    }
}

/// The plan has the cores of all replicas that batches keep busy, and none of them is this host.
#[test]
fn replicas_are_planned_together() {
    let world = World::with_photos(3).unwrap();
    let flags = ["--gateways", "4", "--gateway-cores", "0.5"];
    let found = json(&world, &flags);
    assert_eq!(found["tiers"]["gateway_cores"], 2.0);
    let replicas = &found["replicas"];
    assert_eq!((&replicas["count"], &replicas["used"]), (&4.into(), &4.into()));
    assert_eq!(replicas["min_samples_in_flight"], 128);
    let text = explain(&world, &flags);
    assert!(
        text.contains("\nreplicas: 4 of 0.5 cores, each computes "),
        "{text}"
    );
    assert!(!text.contains("too small"), "{text}");
    let small = [&flags[..], &["--batch-size", "16"]].concat();
    assert_eq!(json(&world, &small)["tiers"]["gateway_cores"], 1.0);
    let text = explain(&world, &small);
    assert!(
        text.contains("\nbatches are too small for 4 replicas: "),
        "{text}"
    );
    let tiers = &json(&world, &["--gateways", "2"])["tiers"];
    assert_eq!(
        (&tiers["shared"], &tiers["has_shared_cpus"]),
        (&false.into(), &true.into())
    );
    assert!(!explain(&world, &[]).contains("replicas"));
}

/// Stored objects do not pass the gateway, but arrive over another path.
#[test]
fn a_path_from_the_store_is_apart_from_that_of_the_gateway() {
    let world = World::with_photos(3).unwrap();
    let flags = ["--bandwidth", "8000", "--store-bandwidth", "0.8"];
    let found = json(&world, &flags);
    let tiers = &found["tiers"];
    assert_eq!(tiers["link_bytes_per_second"], serde_json::Value::Null);
    assert_eq!(tiers["gateway_bytes_per_second"], 1e9);
    assert_eq!(tiers["store_bytes_per_second"], 1e5);
    assert_eq!(found["plain"]["bound"], "the path from the store");
    let text = explain(&world, &flags);
    let network = "link unlimited, from the store 1 Mbit/s, from the gateway 8000 Mbit/s, ";
    assert!(text.contains(network), "{text}");
    let one_path = &json(&world, &["--bandwidth", "80"])["tiers"];
    assert_eq!(one_path["link_bytes_per_second"], 1e7);
    assert_eq!(one_path["store_bytes_per_second"], serde_json::Value::Null);
}

/// A gateway that leaves a CPU to other processes does not report which CPUs it uses.
#[test]
fn cpus_are_not_shared_with_a_gateway_of_fewer_threads() {
    let cpus = available_parallelism().unwrap().get();
    assert!(cpus > 1, "expected a machine with two CPUs or more");
    let objects = photos().unwrap().into_iter().take(3).collect();
    let world = World::with_flags(objects, &[format!("--threads={}", cpus - 1)]).unwrap();
    let tiers = &json(&world, &[])["tiers"];
    assert_eq!(
        (&tiers["shared"], &tiers["has_shared_cpus"]),
        (&false.into(), &false.into())
    );
    assert!(!explain(&world, &[]).contains("share"));
}

/// The requested number is measured, or all objects if there are fewer. A fixed stride would skip up to half of them.
#[test]
fn explain_measures_the_requested_number_of_samples() {
    let world = World::with_photos(5).unwrap();
    for (samples, measured) in [("1", 1), ("3", 3), ("4", 4), ("5", 5), ("24", 5)] {
        let found = json(&world, &["--samples", samples]);
        assert_eq!(found["samples"], measured, "--samples {samples}");
    }
}

/// The gateway is slow, but for what it has cached. One epoch finds it there; of several, the first one fills the cache.
#[test]
fn a_result_cache_is_assumed_at_every_stage() {
    let world = World::with_photos(5).unwrap();
    let flags = ["--gateway-cores", "0.01", "--bandwidth", "1e6"];
    let cached = |extra: &[&str]| json(&world, &[&flags, extra].concat());
    let rate = |plan: &serde_json::Value, member: &str| plan[member].as_f64().unwrap_or_default();
    let without = cached(&[]);
    let all = cached(&["--cached", "1"]);
    let stages = |found: &serde_json::Value| -> Vec<f64> {
        let stages = found["stages"].as_array().unwrap();
        stages
            .iter()
            .map(|stage| stage["gateway_seconds"].as_f64().unwrap())
            .collect()
    };
    assert!(stages(&all)[0].abs() < 1e-9, "{all}");
    assert!(
        stages(&all)[1..]
            .iter()
            .all(|seconds| (seconds - 1e-4).abs() < 1e-9),
        "{all}"
    );
    assert!(rate(&all["plan"], "samples_per_second") > 0.0);
    assert!(all["plan"]["last_epoch_samples_per_second"].is_null());
    let epochs = cached(&["--cached", "1", "--epochs", "90"]);
    assert_eq!(
        (&epochs["samples_left"], &without["samples_left"]),
        (&450.0.into(), &5.0.into())
    );
    assert!(rate(&epochs["plan"], "last_epoch_samples_per_second") > 0.0);
    let text = explain(&world, &[&flags[..], &["--cached", "0.5"]].concat());
    let assumed =
        "assumed: 50 % of the values of stages 1 to 3 in the gateway's result cache, 0.1 ms per hit; ";
    assert!(text.contains(assumed), "{text}");
    let text = explain(
        &world,
        &[&flags[..], &["--cached", "0.5", "--epochs", "3"]].concat(),
    );
    assert!(text.contains("from the second of 3 epochs on"), "{text}");
    assert!(text.contains("\nlast epoch: "), "{text}");
}
