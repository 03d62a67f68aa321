//! The audit log: a line of JSON for each request, with what was decided on it.

mod failures;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample};
use pushdown_testkit::{Exchange, Gateway, Keys, ScriptedOrigin, eventually};
use serde_json::{Value, json};

use super::{BUCKET, Client, Grant, KeysFile, VALID, accept, identity, key_block, launch, trainer};

/// Longest wait for a line.
const LIMIT: Duration = Duration::from_secs(10);

/// The second grant allows reads and writes of 2024.
const GRANTS: [Grant; 2] = [
    Grant::new("photos", "2023/", &["list"]),
    Grant::new("photos", "2024/", &["read", "write"]).with_pipelines(),
];

/// A store that answers reads with a request id, and cuts its answer for one object.
fn script(exchange: &mut Exchange) -> io::Result<()> {
    let head = exchange.head.clone();
    if head.contains("/2024/cut ") {
        exchange.close();
        return exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    }
    if !head.starts_with("GET ") {
        return accept(exchange);
    }
    exchange.send("HTTP/1.1 200 OK\r\nx-amz-request-id: STORE1\r\nContent-Length: 7\r\n\r\nan item")
}

struct Lab {
    gateway: Gateway,
    keys_file: KeysFile,
    _origin: ScriptedOrigin,
}

impl Lab {
    fn start() -> Result<Self> {
        let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &GRANTS)])?;
        let flag = format!("--audit-log={}", audit_log(&keys_file).display());
        Self::start_with(keys_file, &[&flag])
    }

    fn start_with(keys_file: KeysFile, flags: &[&str]) -> Result<Self> {
        let origin = ScriptedOrigin::start(script)?;
        let gateway = launch(origin.address(), &identity(), &keys_file, flags)?;
        Ok(Self {
            gateway,
            keys_file,
            _origin: origin,
        })
    }

    fn client(&self) -> Client {
        Client::new(&trainer(), self.gateway.listen())
    }

    /// The lines of the log, once there are `count`.
    fn lines(&self, count: usize) -> Result<Vec<Value>> {
        let path = audit_log(&self.keys_file);
        let text = eventually("the lines are written", LIMIT, || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            Ok((text.lines().count() >= count).then_some(text))
        })?;
        let lines = text.lines().map(|line| Ok(serde_json::from_str(line)?));
        lines.collect()
    }
}

pub(super) fn audit_log(keys_file: &KeysFile) -> PathBuf {
    keys_file.path().with_file_name("audit.jsonl")
}

/// Checks fields of the line about a key.
fn check(lines: &[Value], key: &str, expected: &Value) -> Result<()> {
    let line = lines.iter().find(|line| line["key"] == key);
    let line = line.with_context(|| format!("no line about {key}"))?;
    let fields = expected.as_object().context("no object")?;
    for (name, value) in fields {
        ensure!(
            line.get(name) == Some(value),
            "expected {name} = {value} in {line}"
        );
    }
    Ok(())
}

#[test]
fn each_request_has_a_line() -> Result<()> {
    let lab = Lab::start()?;
    let client = lab.client();
    let key = |name: &str| format!("{BUCKET}/{name}");
    assert_eq!(client.call("GET", &key("2024/read"))?.status, 200);
    assert_eq!(client.put(&key("2024/written"), vec![7; 10_000])?.status, 200);
    let denied = client.call("GET", &key("2023/read"))?;
    assert_eq!(denied.status, 403);
    let wrong = Keys::new(&trainer().access, "another-secret-of-tests");
    let stranger = Keys::new("TESTSTRANGER0001", "another-secret-of-tests");
    for (keys, name) in [(wrong, "2024/wrong"), (stranger, "2024/stranger")] {
        let client = Client::new(&keys, client.address);
        assert_eq!(client.call("GET", &key(name))?.status, 403);
    }
    // Its answer is cut.
    drop(client.call("GET", &key("2024/cut")));

    let lines = lab.lines(6)?;
    let access_key = trainer().access;
    for line in &lines {
        let peer = line["peer"].as_str().context("no peer")?;
        let time = line["time"].as_str().context("no time")?;
        ensure!(peer.starts_with("127.0.0.1:") && time.ends_with('Z'), "{line}");
        ensure!(
            line["bucket"] == "photos" && line["milliseconds"].is_u64(),
            "{line}"
        );
    }
    check(
        &lines,
        "2024/read",
        &json!({
            "id": null, "store_id": "STORE1", "tenant": access_key, "access_key": access_key, "operation": "GetObject",
            "action": "read", "verdict": "allowed", "grant": 2, "status": 200, "bytes_in": 0, "bytes_out": 7,
        }),
    )?;
    let written =
        json!({"operation": "PutObject", "action": "write", "verdict": "allowed", "bytes_in": 10_000});
    check(&lines, "2024/written", &written)?;
    check(
        &lines,
        "2023/read",
        &json!({
            "id": denied.header("x-amz-request-id"), "store_id": null, "tenant": access_key, "operation": "GetObject",
            "action": "read", "verdict": "denied", "reason": "no grant: read", "status": 403,
        }),
    )?;
    let wrong = json!({"tenant": null, "access_key": access_key, "operation": null, "reason": "SignatureDoesNotMatch"});
    check(&lines, "2024/wrong", &wrong)?;
    let stranger = json!({"tenant": null, "access_key": "TESTSTRANGER0001", "reason": "InvalidAccessKeyId"});
    check(&lines, "2024/stranger", &stranger)?;
    let cut = json!({"verdict": "allowed", "status": 200, "bytes_out": 4});
    check(&lines, "2024/cut", &cut)?;
    for verdict in ["allowed", "denied"] {
        let name = format!("pushdown_decisions_total{{verdict=\"{verdict}\"}}");
        let count = lab.gateway.metric(&name)?;
        ensure!((count - 3.0).abs() < 0.5, "{name} is {count}");
    }
    Ok(())
}

#[test]
fn denied_samples_of_a_batch_have_lines() -> Result<()> {
    let lab = Lab::start()?;
    let client = lab.client();
    // One time for all, so that the samples share the signing parameters.
    let keys = client.keys.with_time(SystemTime::now());
    let (mut shared, mut samples) = (String::new(), Vec::new());
    for key in ["2024/a", "2023/b", "2024/c"] {
        let signed = keys.presign(client.request("GET", &format!("{BUCKET}/{key}")), VALID)?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        let (parameters, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        parameters.clone_into(&mut shared);
        samples.push(BatchSample::new(path, signature));
    }
    let batch = BatchRequest::new("decode".parse()?, shared, samples);
    let body = serde_json::to_vec(&batch)?;
    let length = body.len();
    let request = client.request("POST", "/_pushdown/v1/batch").body(body);
    assert_eq!(client.send(request)?.status, 200);
    let lines = lab.lines(2)?;
    assert_eq!(lines.len(), 2, "{lines:?}");
    check(
        &lines,
        "2023/b",
        &json!({"verdict": "denied", "reason": "no grant: read", "status": 403, "tenant": trainer().access}),
    )?;
    let fields = json!({
        "verdict": "allowed", "status": 200, "access_key": trainer().access, "bucket": null, "bytes_in": length,
        "objects_allowed": 2, "objects_denied": 1,
    });
    let line = lines.iter().find(|line| line["operation"] == "pushdown:Batch");
    let line = line.context("no line of the batch")?;
    for (name, value) in fields.as_object().context("no object")? {
        ensure!(
            line.get(name) == Some(value),
            "expected {name} = {value} in {line}"
        );
    }
    Ok(())
}

#[test]
fn the_file_is_opened_again_on_sighup_and_complete_at_the_end() -> Result<()> {
    let mut lab = Lab::start()?;
    let client = lab.client();
    let read = |name: &str| client.call("GET", &format!("{BUCKET}/2024/{name}"));
    read("a")?;
    lab.lines(1)?;
    let path = audit_log(&lab.keys_file);
    assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    let rotated = path.with_file_name("audit.1");
    fs::rename(&path, &rotated)?;
    read("b")?;
    lab.gateway.hang_up()?;
    eventually("the file is created again", LIMIT, || {
        Ok(path.exists().then_some(()))
    })?;
    read("c")?;
    lab.gateway.terminate()?;
    assert_eq!(lab.gateway.wait(LIMIT)?.code(), Some(0));
    let text = fs::read_to_string(&rotated)? + &fs::read_to_string(&path)?;
    let keys = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line)?;
        Ok(line["key"].as_str().context("no key")?.to_owned())
    });
    let keys: Result<Vec<_>> = keys.collect();
    assert_eq!(keys?, ["2024/a", "2024/b", "2024/c"]);
    let last = fs::read_to_string(&path)?;
    ensure!(last.contains("2024/c") && !last.contains("2024/a"), "{last}");
    Ok(())
}
