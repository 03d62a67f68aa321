//! `pushdown materialize`: what it prints, and what is left of it if it is killed.

use std::{collections::BTreeMap, process::Stdio, thread, time::Duration};

use pushdown_testkit::{ACCESS_KEY, BUCKET, Keys, Payload, Request, SECRET_KEY, World, photos};
use serde_json::Value;

use super::cli::{pushdown, run_command};

const SOURCE: &str = "s3://photos/train/";
const PIPELINE: &str = "decode | resize(300, 300) | resize(32, 32) | encode(png)";
/// Moments of a killed client in `.ci/run`, and in the full tests.
const FEW_MOMENTS: u32 = 2;
const MANY_MOMENTS: u32 = 20;

fn world(count: usize) -> World {
    let photos: Vec<_> = photos().unwrap().into_iter().collect();
    let photos = photos.iter().cycle().take(count).enumerate();
    let keyed = photos.map(|(number, (name, bytes))| {
        let class = if number % 2 == 0 { "cat" } else { "dog" };
        (format!("train/{class}/{number:03}-{name}"), bytes.clone())
    });
    World::with_objects(keyed.collect()).unwrap()
}

fn arguments(target: &str) -> Vec<&str> {
    let mut arguments = vec!["materialize", SOURCE, target, "-p", PIPELINE, "--format", "wds"];
    arguments.extend(["--labels", "dir", "--part-samples", "4", "--json"]);
    arguments
}

fn get(world: &World, target: &str) -> Vec<u8> {
    let listen = world.gateway.listen();
    let request = Request::new("GET", target).header("Host", &listen.to_string());
    let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
    let answer = keys.sign(request, Payload::Signed).unwrap().send(listen).unwrap();
    assert_eq!(answer.status, 200, "{target}: {}", answer.text());
    answer.body
}

/// All objects of a target by name, as its manifest lists them, and its documents.
fn target(world: &World, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let read = |name: &str| get(world, &format!("/{BUCKET}/{prefix}{name}"));
    let manifest: Value = serde_json::from_slice(&read("_manifest.json")).unwrap();
    let parts = manifest["parts"].as_array().unwrap();
    let parts = parts.iter().map(|part| part["name"].as_str().unwrap().to_owned());
    let names = parts.chain(["_recipe.json", "_manifest.json"].map(str::to_owned));
    names.map(|name| (name.clone(), read(&name))).collect()
}

fn report(world: &World, arguments: &[&str]) -> Value {
    let output = run_command(world, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_data_set_is_written_once() {
    let world = world(10);
    let plan = report(
        &world,
        &[&arguments("s3://photos/out/")[..], &["--dry-run"]].concat(),
    );
    assert_eq!(
        (&plan["samples"], &plan["parts"], &plan["parts_done"]),
        (&10.into(), &3.into(), &0.into())
    );
    let first = report(&world, &arguments("s3://photos/out/"));
    assert_eq!(
        (&first["samples"], &first["parts_written"]),
        (&10.into(), &3.into())
    );
    let again = report(&world, &arguments("s3://photos/out/"));
    assert_eq!(
        (&again["samples"], &again["parts_written"]),
        (&10.into(), &0.into())
    );
    let local = report(
        &world,
        &[&arguments("s3://photos/local/")[..], &["--local"]].concat(),
    );
    assert_eq!(local["parts_written"], 3);
    assert_eq!(target(&world, "out/"), target(&world, "local/"));
}

#[test]
fn bad_samples_and_errors_are_named() {
    let world = world(3);
    world.put("train/cat/broken.jpg", b"no photo").unwrap();
    let output = run_command(&world, &arguments("s3://photos/out/"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.contains("cat/broken.jpg: UndecodableObject: "),
        "{stderr}"
    );
    for (arguments, expected) in [
        (arguments("s3://photos/train/small/"), "is inside of the data set"),
        (arguments("s3://missing/out/"), "NoSuchBucket"),
        (
            vec![
                "materialize",
                "s3://photos/none/",
                "s3://photos/x/",
                "-p",
                "decode | encode(png)",
                "--format",
                "wds",
            ],
            "no objects found",
        ),
    ] {
        let output = run_command(&world, &arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(expected),
            "{arguments:?}: {stderr}"
        );
    }
}

/// Kills the client at moments spread over its run, and lets the next one end it.
fn kill(moments: u32) {
    let world = world(40);
    let started = std::time::Instant::now();
    report(&world, &arguments("s3://photos/undisturbed/"));
    let time = started.elapsed();
    let expected = target(&world, "undisturbed/");
    for moment in 1..=moments {
        let pause = time * moment / (moments + 1);
        let prefix = format!("killed-{moment}/");
        let url = format!("s3://photos/{prefix}");
        let mut command = pushdown(&arguments(&url));
        command.env("PUSHDOWN_ENDPOINT", world.endpoint());
        let mut client = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(pause);
        // SIGKILL.
        client.kill().unwrap();
        client.wait().unwrap();
        report(&world, &arguments(&url));
        assert_eq!(target(&world, &prefix), expected, "{pause:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_client_loses_nothing() {
    kill(FEW_MOMENTS);
}

#[test]
#[ignore = "half a minute"]
fn a_client_that_is_killed_at_any_moment_loses_nothing() {
    kill(MANY_MOMENTS);
}
