//! `pushdown explain` where gateway and host have the same CPUs.

use std::thread::available_parallelism;

use super::{cli::pushdown, world::World};

const PIPELINE: &str = "decode | resize(64, 64) | to_float";

fn explain(world: &World, more: &[&str]) -> String {
    let arguments = ["explain", "s3://photos/", "-p", PIPELINE];
    let output = pushdown(&[&arguments, more].concat())
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

fn json(world: &World, more: &[&str]) -> serde_json::Value {
    serde_json::from_str(&explain(world, &[more, &["--json"]].concat())).unwrap()
}

#[test]
fn cpus_that_both_sides_have_are_counted_once() {
    let world = World::with_photos(5);
    let found = json(&world, &["--bandwidth", "1e6"]);
    let tiers = &found["tiers"];
    assert_eq!(
        (&tiers["shared"], &tiers["same_cpus"]),
        (&true.into(), &true.into())
    );
    // The work of both sides adds up on the cores that there are, wherever a sample's steps run.
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
    assert!(
        text.contains("gateway and host compute on the same CPUs"),
        "{text}"
    );
    let cores = format!(
        "{:.1} cores that gateway and host share;",
        found["tiers"]["host_cores"].as_f64().unwrap()
    );
    assert!(text.contains(&cores), "{text}");
}

/// Numbers of cores are those of two machines, of which one is not this one.
#[test]
fn what_if_the_gateway_were_elsewhere() {
    let world = World::with_photos(3);
    for (flags, shared) in [
        (&["--gateway-cores", "64"][..], false),
        (&["--host-cores", "1"], false),
        (&["--gateway-cores", "64", "--shared"], true),
        (&["--bandwidth", "100"], true),
        (&["--host-speed", "2"], true),
    ] {
        let tiers = &json(&world, flags)["tiers"];
        assert_eq!(
            (&tiers["shared"], &tiers["same_cpus"]),
            (&shared.into(), &true.into()),
            "{flags:?}"
        );
        let text = explain(&world, flags);
        let says = text.contains("on the same CPUs, as the gateway tells");
        assert_eq!(says, shared && !flags.contains(&"--shared"), "{flags:?}: {text}");
        assert_eq!(
            text.contains("cores that gateway and host share"),
            shared,
            "{flags:?}: {text}"
        );
    }
}

/// A gateway that leaves a CPU to others does not say which ones it has.
#[test]
fn cpus_that_are_not_all_the_gateways_are_not_shared() {
    let cpus = available_parallelism().unwrap().get();
    assert!(cpus > 1, "expected a machine with two CPUs or more");
    let objects = super::world::photos().into_iter().take(3).collect();
    let world = World::with_flags(objects, &[format!("--threads={}", cpus - 1)]);
    let tiers = &json(&world, &[])["tiers"];
    assert_eq!(
        (&tiers["shared"], &tiers["same_cpus"]),
        (&false.into(), &false.into())
    );
    assert!(!explain(&world, &[]).contains("share"));
}

/// As many as were asked for, or all that there are: a step of whole objects would leave out up to half of them.
#[test]
fn as_many_samples_are_measured_as_were_asked_for() {
    let world = World::with_photos(5);
    for (samples, measured) in [("1", 1), ("3", 3), ("4", 4), ("5", 5), ("24", 5)] {
        let found = json(&world, &["--samples", samples]);
        assert_eq!(found["samples"], measured, "--samples {samples}");
    }
}
