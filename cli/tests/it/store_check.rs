//! Stores that authorize a request before they compare ETags, and stores that do not.

use std::{fs, io, net::SocketAddr, path::Path, process::Output};

use pushdown_testkit::{
    ACCESS_KEY, Backend, Exchange, Keys, RealStore, Request, SECRET_KEY, ScriptedOrigin, World,
};
use serde_json::Value;

use super::cli::pushdown;

const BODY: &str = "the object";
/// MD5 of the body.
const ETAG: &str = "ae295757cd41e8715d851709cee3dd7b";

/// A gateway whose embedded store has the object.
fn world() -> World {
    World::with_objects([("object".to_owned(), BODY.into())].into()).unwrap()
}

/// Runs the command on `s3://photos/object` of an embedded store, with a profile `guest`.
fn check(store: SocketAddr, folder: &Path, extra_arguments: &[&str]) -> Output {
    let (owner, guest) = (
        Keys::new(ACCESS_KEY, SECRET_KEY),
        Keys::new("guestkey", "guestsecret"),
    );
    check_as(&owner, &guest, store, folder, extra_arguments)
}

/// The same with these accounts.
fn check_as(
    owner: &Keys,
    guest: &Keys,
    store: SocketAddr,
    folder: &Path,
    extra_arguments: &[&str],
) -> Output {
    let profiles = folder.join("credentials");
    let (access_key, secret_key) = (&guest.access, &guest.secret);
    let text = format!("[guest]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret_key}\n");
    fs::write(&profiles, text).unwrap();
    let mut command = pushdown(&["store-check", "s3://photos/object"]);
    command
        .args(extra_arguments)
        .env("PUSHDOWN_ENDPOINT", format!("http://{store}"))
        .env("AWS_ACCESS_KEY_ID", &owner.access)
        .env("AWS_SECRET_ACCESS_KEY", &owner.secret)
        .env("AWS_SHARED_CREDENTIALS_FILE", profiles);
    command.output().unwrap()
}

fn check_as_json(store: SocketAddr, extra_arguments: &[&str]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["--json"], extra_arguments].concat();
    report_of(&check(store, folder.path(), &arguments))
}

fn report_of(output: &Output) -> (Option<i32>, Value) {
    let json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code(), json)
}

/// The outcomes of all checks, each with its status.
fn outcomes(report: &Value) -> Vec<(&str, &str, Option<u64>)> {
    let checks = report["checks"].as_array().unwrap().iter();
    checks
        .map(|check| {
            let text = |name: &str| check[name].as_str().unwrap();
            (text("name"), text("outcome"), check["status"].as_u64())
        })
        .collect()
}

const SAFE: [(&str, &str, Option<u64>); 7] = [
    ("right signature", "ok", Some(304)),
    ("right signature, other ETag", "ok", Some(200)),
    ("wrong signature", "ok", Some(403)),
    ("expired signature", "ok", Some(403)),
    ("no signature", "ok", Some(403)),
    ("credentials without the right", "ok", Some(403)),
    ("missing key", "ok", Some(404)),
];

#[test]
fn the_embedded_store_is_safe() {
    let world = world();
    for address in [world.gateway.store().unwrap(), world.gateway.listen()] {
        let (code, report) = check_as_json(address, &["--other-profile", "guest"]);
        assert_eq!(outcomes(&report), SAFE, "{report}");
        assert_eq!(
            (code, &report["safe"], &report["ignores_condition"]),
            (Some(0), &true.into(), &false.into())
        );
    }
}

#[test]
fn seaweedfs_is_safe() {
    if !Backend::SeaweedFs.is_enabled().unwrap() {
        return;
    }
    check_real_store(&RealStore::seaweedfs().unwrap(), 403);
}

#[test]
#[ignore = "JuiceFS is not installed by default: make test-full"]
fn juicefs_is_safe() {
    check_real_store(&RealStore::juicefs().unwrap(), 403);
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn ceph_is_safe() {
    check_real_store(&RealStore::ceph().unwrap(), 403);
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn garage_is_safe() {
    check_real_store(&RealStore::garage().unwrap(), 400);
}

/// Adds the object, and checks the store, which refuses expired signatures with this status.
fn check_real_store(store: &RealStore, expired: u64) {
    store.put("/photos", "").unwrap();
    store.put("/photos/object", BODY).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = check_as(
        &store.owner,
        &store.guest,
        store.address().unwrap(),
        folder.path(),
        &["--json", "--other-profile", "guest"],
    );
    let (code, report) = report_of(&output);
    let mut expected = SAFE;
    expected[3].2 = Some(expired);
    assert_eq!(outcomes(&report), expected, "{report}");
    assert_eq!(code, Some(0));
}

/// A store that differs from the embedded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It compares the ETag before it checks the signature.
    ComparesFirst,
    /// It ignores `If-None-Match`.
    IgnoresCondition,
    /// It compares only after the check, but anyone may read the object.
    IsPublic,
}

/// A relay with this fault in front of the embedded store of a gateway.
fn faulty_store(world: &World, fault: Fault) -> ScriptedOrigin {
    let store = world.gateway.store().unwrap();
    ScriptedOrigin::start(move |exchange| {
        let (condition, request) = split_condition(exchange);
        let etag = format!("\"{ETAG}\"");
        let is_match = condition.as_ref() == Some(&etag) && !request.target.contains(".store-check-");
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\nETag: {etag}\r\n\r\n");
        if fault == Fault::ComparesFirst && is_match {
            return exchange.send(not_modified);
        }
        let answer = request.send(store).map_err(io::Error::other)?;
        let (status, body) = match answer.status {
            403 if fault == Fault::IsPublic => (200, BODY.to_owned()),
            status => (status, answer.text()),
        };
        if status == 200 && is_match && fault == Fault::IsPublic {
            return exchange.send(not_modified);
        }
        let length = body.len();
        exchange.send(format!(
            "HTTP/1.1 {status} Status\r\nETag: {etag}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    })
    .unwrap()
}

/// The `If-None-Match` of a request, and the request without it.
fn split_condition(exchange: &Exchange) -> (Option<String>, Request) {
    let mut lines = exchange.head.lines().filter(|line| !line.is_empty());
    let mut request_line = lines.next().unwrap_or_default().split(' ').skip(1);
    let mut request = Request::new("GET", request_line.next().unwrap_or_default());
    let mut condition = None;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("if-none-match") {
            condition = Some(value.to_owned());
        } else {
            request = request.header(name, value);
        }
    }
    (condition, request)
}

#[test]
fn a_store_that_compares_first_is_unsafe() {
    let world = world();
    let store = faulty_store(&world, Fault::ComparesFirst);
    let (code, report) = check_as_json(store.address(), &["--other-profile", "guest"]);
    let found: Vec<_> = outcomes(&report).iter().map(|(_, outcome, _)| *outcome).collect();
    assert_eq!(
        found,
        ["ok", "ok", "unsafe", "unsafe", "unsafe", "unsafe", "ok"],
        "{report}"
    );
    assert_eq!((code, &report["safe"]), (Some(1), &false.into()));
}

#[test]
fn a_store_that_ignores_the_condition_is_safe() {
    let world = world();
    let store = faulty_store(&world, Fault::IgnoresCondition);
    let (code, report) = check_as_json(store.address(), &[]);
    assert_eq!(outcomes(&report)[0], ("right signature", "ok", Some(200)));
    assert_eq!(
        outcomes(&report)[5],
        ("credentials without the right", "skipped", None)
    );
    assert_eq!(
        (code, &report["safe"], &report["ignores_condition"]),
        (Some(0), &true.into(), &true.into())
    );
}

#[test]
fn an_object_that_anyone_may_read_proves_nothing() {
    let world = world();
    let store = faulty_store(&world, Fault::IsPublic);
    let (_, report) = check_as_json(store.address(), &["--other-profile", "guest"]);
    let found = outcomes(&report);
    assert_eq!((found[4].1, found[5].1), ("skipped", "skipped"), "{report}");
}

#[test]
fn the_report_has_a_line_for_each_check() {
    let world = world();
    let unsafe_store = faulty_store(&world, Fault::ComparesFirst);
    let shown = |address, extra_arguments: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let output = check(address, folder.path(), extra_arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!(
            "exit {}\n{}{}",
            output.status.code().unwrap(),
            text(&output.stdout),
            text(&output.stderr)
        )
    };
    let store = world.gateway.store().unwrap();
    let filters = [(r"127\.0\.0\.1:\d+", "[address]")];
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!(
            [
                shown(store, &[]),
                shown(store, &["--other-profile", "guest"]),
                shown(unsafe_store.address(), &["--other-profile", "guest"]),
                shown(store, &["--other-profile", "nobody"]),
            ]
            .join("\n")
        );
    });
}

#[test]
fn an_object_that_cannot_be_read_is_an_error() {
    let world = World::with_objects([("other".to_owned(), BODY.into())].into()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = check(world.gateway.store().unwrap(), folder.path(), &[]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.contains("cannot read s3://photos/object: expected 200, found 404 NoSuchKey"),
        "{stderr}"
    );
    let bucket = pushdown(&["store-check", "s3://photos"]).output().unwrap();
    assert_eq!(bucket.status.code(), Some(2));
}
