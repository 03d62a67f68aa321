//! The version route: the same answer for every caller, which waits for nothing.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Keys, Payload, Request, Response, ScriptedOrigin, eventually, onnxruntime};
use serde_json::{Value, json};

use super::{binary, gateway_for};

pub(super) const PATH: &str = "/_pushdown/v1/version";

/// A request for the version, without a signature.
pub(super) fn request(method: &str, address: SocketAddr) -> Request {
    Request::new(method, PATH).header("Host", &address.to_string())
}

/// Checks that an answer is the version of a gateway that serves, with these features.
pub(super) fn check(answer: &Response, features: &[&str]) -> Result<()> {
    check_state(answer, features, "serving")
}

/// Checks that an answer is the version of a gateway in this state, with these features.
pub(super) fn check_state(answer: &Response, features: &[&str], state: &str) -> Result<()> {
    ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document: Value = serde_json::from_slice(&answer.body)?;
    let engine = "decode=4 resample=4 tensor=4 random=4 table=4";
    let replica = answer.header("x-pushdown-replica").context("no id")?;
    let expected = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "features": features,
        "engine": engine,
        "replica": replica,
        "state": state,
    });
    assert_eq!(document, expected);
    assert_eq!(answer.header("x-pushdown-state"), Some(state));
    assert_eq!(answer.header("x-pushdown-engine"), Some(engine));
    let cores: u32 = answer.header("x-pushdown-cores").context("no cores")?.parse()?;
    ensure!(cores > 0, "no threads for steps");
    // An eighth of the default memory budget.
    assert_eq!(answer.header("x-pushdown-part-bytes"), Some("134217728"));
    assert_eq!(
        answer.header("x-pushdown-features"),
        Some(features.join(", ").as_str())
    );
    Ok(())
}

/// Checks HEAD, and that other methods are refused.
pub(super) fn check_methods(get: &Response, address: SocketAddr) -> Result<()> {
    let head = request("HEAD", address).send(address)?;
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in [
        "content-type",
        "content-length",
        "x-pushdown-features",
        "x-pushdown-state",
        "x-pushdown-engine",
        "x-pushdown-cores",
        "x-pushdown-part-bytes",
        "x-pushdown-replica",
    ] {
        assert_eq!(head.header(name), get.header(name), "{name}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let answer = request(method, address).send(address)?;
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.element("Code").as_deref(), Some("MethodNotAllowed"));
    }
    Ok(())
}

pub(super) const FEATURES: [&str; 8] = [
    "cropped-jpeg",
    "deliver",
    "demand",
    "each-parts",
    "families",
    "members",
    "parts",
    "stores",
];

#[test]
fn every_caller_gets_the_same_version() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    let address = gateway.listen();
    let plain = request("GET", address).send(address)?;
    check(&plain, &FEATURES)?;
    check_methods(&plain, address)?;
    let keys = Keys::new("nobodysaccesskey", "nobodyssecretkey");
    let signed = keys
        .sign(request("GET", address), Payload::Signed)?
        .send(address)?;
    let foreign = request("GET", address).header("Authorization", "Bearer token");
    for answer in [signed, foreign.send(address)?] {
        assert_eq!((answer.status, &answer.body), (200, &plain.body));
    }
    assert_eq!(origin.connections(), 0, "the store was asked");
    let counted = gateway.metric("pushdown_requests_total{kind=\"version\",status=\"2xx\"}")?;
    assert!((counted - 4.0).abs() < 0.5, "{counted}");
    Ok(())
}

/// Below the path, and beside it, are keys.
#[test]
fn only_the_path_itself_is_the_version() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| exchange.answer("404 Not Found", ""))?;
    let gateway = gateway_for(&origin, &[])?;
    for target in [
        "/_pushdown/v1/version/",
        "/_pushdown/v1/versions",
        "/bucket/_pushdown/v1/version",
    ] {
        let request = Request::new("GET", target).header("Host", "gateway");
        assert_eq!(request.send(gateway.listen())?.status, 404, "{target}");
    }
    assert_eq!(origin.requests().len(), 3);
    Ok(())
}

/// A gateway that never becomes ready, killed when dropped.
pub(super) struct Loading(Child);

impl Loading {
    /// Starts a gateway whose only model cannot be read to its end, in front of a store that does not exist.
    fn start(folder: &Path, flags: &[&str]) -> Result<(Self, SocketAddr)> {
        let models = folder.join("models");
        fs::create_dir(&models)?;
        Self::start_in(&models, "endless.onnx", flags)
    }

    /// Starts a gateway with the models of a folder, and one of this file name that cannot be read to its end, in front of a store that
    /// does not exist.
    pub(super) fn start_in(models: &Path, endless: &str, flags: &[&str]) -> Result<(Self, SocketAddr)> {
        let status = Command::new("mkfifo").arg(models.join(endless)).status()?;
        ensure!(status.success(), "cannot make a pipe");
        let log = models.join("log");
        let child = Command::new(binary())
            .args(["serve", "--listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"])
            .args(["--log-format=json", "--queue-wait=100ms"])
            .arg(format!("--models={}", models.display()))
            .arg(format!("--onnxruntime={}", onnxruntime().display()))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let gateway = Self(child);
        let address = eventually("the gateway listens", Duration::from_mins(1), || {
            let log = fs::read_to_string(&log)?;
            let mut lines = log
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok());
            Ok(lines.find_map(|line| line["listen"].as_str()?.parse().ok()))
        });
        Ok((gateway, address.context("no address")?))
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Without a store, and while models load.
pub(super) fn check_while_models_load(flags: &[&str], features: &[&str]) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (_gateway, address) = Loading::start(folder.path(), flags)?;
    let answer = request("GET", address).send(address)?;
    check(&answer, features)
}

#[test]
fn the_version_waits_for_neither_models_nor_the_store() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let (_gateway, address) = Loading::start(folder.path(), &["--upstream=http://127.0.0.1:1"])?;
    let models = Request::new("GET", "/_pushdown/v1/models").header("Host", &address.to_string());
    let models = models.send(address)?;
    ensure!(
        models.text().contains("still loading its models"),
        "{}",
        models.text()
    );
    check(&request("GET", address).send(address)?, &FEATURES)
}
