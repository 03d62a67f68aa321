//! Parts of data sets in re-sign mode: the grants of the key decide on each sample, and on the object that is written.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use pushdown::{
    part::PartFormat,
    wire::{PartAction, PartRequest, PartTarget},
};
use pushdown_testkit::{Keys, ScriptedOrigin, eventually};
use serde_json::Value;

use super::{
    BUCKET, Client, EVERYTHING, KEYS, KeysFile, Lab, RESIZE, VALID, accept, batch_request, error_of,
    identity, key_block, launch, paths, post, trainer, unsigned,
};
use crate::it::{
    pipeline::parts::{md5, refused, written},
    resign::{Grant, audit::audit_log},
};

const PART: &str = "/photos/sets/part-00000.tar";
/// May read samples for pipelines, and write parts.
const GRANTS: [Grant; 2] = [
    Grant::new("photos", "train/", &["read"]).with_pipelines(),
    Grant::new("photos", "sets/", &["write"]),
];

fn part(target: Option<PartTarget>) -> PartRequest {
    PartRequest {
        format: PartFormat::Wds,
        prefix: String::new(),
        label: None,
        labels: Vec::new(),
        engine: None,
        target,
    }
}

/// A target that the gateway signs for.
fn unsigned_target() -> PartTarget {
    PartTarget {
        store: None,
        path: PART.to_owned(),
        query: None,
    }
}

fn presigned_target(client: &Client) -> Result<PartTarget> {
    let signed = client.keys.presign(client.request("PUT", PART), VALID)?;
    let (path, query) = signed.target.split_once('?').context("no query")?;
    Ok(PartTarget {
        store: None,
        path: path.to_owned(),
        query: Some(query.to_owned()),
    })
}

#[test]
fn a_key_with_both_rights_gets_the_part_of_forward_mode() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let etags: Vec<String> = KEYS
        .iter()
        .map(|key| {
            let answer = lab.forward.call("HEAD", &format!("{BUCKET}/{key}"))?;
            Ok(answer.header("etag").context("no ETag")?.to_owned())
        })
        .collect::<Result<_>>()?;
    let stated = |mut request: pushdown::wire::BatchRequest, target| {
        for (sample, etag) in request.samples.iter_mut().zip(&etags) {
            sample.etag = Some(etag.clone());
        }
        request.part = Some(part(target));
        request
    };
    let forward = stated(
        batch_request(&lab.forward, RESIZE)?,
        Some(presigned_target(&lab.forward)?),
    );
    let send = |client: &Client, request| post(client, request)?.send(client.address);
    let expected = written(&send(&lab.forward, &forward)?)?;
    let stored = || lab.forward.call("GET", PART);
    let remove = || lab.forward.call("DELETE", PART);
    assert_eq!(md5(&stored()?.body), expected.md5);
    remove()?;

    let paths = paths();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let signed = stated(unsigned(RESIZE, &paths)?, Some(unsigned_target()));
    let found = written(&lab.resign.send(post(&lab.resign, &signed)?)?)?;
    assert_eq!((found.md5.as_str(), found.samples), (expected.md5.as_str(), 3));
    assert_eq!(md5(&stored()?.body), expected.md5);
    remove()?;

    let presigned = stated(
        batch_request(&lab.resign, RESIZE)?,
        Some(presigned_target(&lab.resign)?),
    );
    assert_eq!(written(&send(&lab.resign, &presigned)?)?.md5, expected.md5);
    assert_eq!(md5(&stored()?.body), expected.md5);
    remove()?;
    // A PUT that another key has signed gives no right.
    let forger = Client::new(
        &Keys::new(&trainer().access, "another-secret-of-tests"),
        lab.resign.address,
    );
    let forged = stated(
        batch_request(&lab.resign, RESIZE)?,
        Some(presigned_target(&forger)?),
    );
    let answer = send(&lab.resign, &forged)?;
    assert_eq!(error_of(&answer), (403, "SignatureDoesNotMatch".to_owned()));
    // Of samples alone, for a key that may not run pipelines.
    let reader = lab.reader();
    let trial = stated(unsigned(RESIZE, &paths)?, None);
    let answer = refused(&reader.send(post(&reader, &trial)?)?)?;
    assert_eq!(
        (answer.action, answer.code.as_str()),
        (PartAction::Read, "AccessDenied")
    );
    assert_eq!(stored()?.status, 404);
    Ok(())
}

/// A store that records everything, and keys with other rights.
struct Grants {
    origin: ScriptedOrigin,
    gateway: pushdown_testkit::Gateway,
    keys_file: KeysFile,
}

impl Grants {
    fn new(grants: &[Grant]) -> Result<Self> {
        let origin = ScriptedOrigin::start(|exchange| {
            if exchange.head.starts_with("GET ") {
                let body = "no photo";
                return exchange.send(format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"1\"\r\n\r\n{body}",
                    body.len()
                ));
            }
            accept(exchange)
        })?;
        let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", grants)])?;
        let flag = format!("--audit-log={}", audit_log(&keys_file).display());
        Ok(Self {
            gateway: launch(origin.address(), &identity(), &keys_file, &[&flag])?,
            origin,
            keys_file,
        })
    }

    /// Sends a signed batch for a part of two samples.
    fn ask(&self) -> Result<pushdown_testkit::Response> {
        let client = Client::new(&trainer(), self.gateway.listen());
        let mut request = unsigned("decode", &["/photos/train/a.jpg", "/photos/train/b.jpg"])?;
        for sample in &mut request.samples {
            sample.etag = Some("\"1\"".to_owned());
        }
        request.part = Some(part(Some(unsigned_target())));
        client.send(post(&client, &request)?)
    }

    /// The lines of the audit log, once there are `count`.
    fn lines(&self, count: usize) -> Result<Vec<Value>> {
        let path = audit_log(&self.keys_file);
        let limit = std::time::Duration::from_secs(10);
        let text = eventually("the lines are written", limit, || {
            let text = fs::read_to_string(&path).unwrap_or_default();
            Ok((text.lines().count() >= count).then_some(text))
        })?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

#[test]
fn the_gateway_signs_the_put_of_a_key_that_may_write() -> Result<()> {
    let lab = Grants::new(&GRANTS)?;
    let part = written(&lab.ask()?)?;
    assert_eq!((part.samples, part.errors.len()), (0, 2));
    let heads = lab.origin.requests();
    assert_eq!(heads.len(), 3, "{heads:?}");
    let put = heads
        .iter()
        .find(|head| head.starts_with("PUT "))
        .context("no PUT")?;
    ensure!(put.starts_with(&format!("PUT {PART} HTTP/1.1\r\n")), "{put}");
    let credential = format!("Credential={}/", identity().access);
    ensure!(
        put.contains(&credential) && !put.contains(&trainer().access),
        "{put}"
    );
    let put = put.to_ascii_lowercase();
    for name in [
        "content-md5: ",
        "content-length: 1024\r\n",
        "x-amz-content-sha256: ",
    ] {
        ensure!(put.contains(name), "{name} is not in {put}");
    }
    let lines = lab.lines(2)?;
    assert_eq!(lines.len(), 2, "{lines:?}");
    let expected = serde_json::json!({
        "access_key": trainer().access, "operation": "PutObject", "action": "write", "bucket": "photos", "key": "sets/part-00000.tar",
        "verdict": "allowed", "grant": 2,
    });
    for (name, value) in expected.as_object().context("no object")? {
        ensure!(
            &lines[0][name] == value,
            "expected {name} = {value} in {}",
            lines[0]
        );
    }
    assert_eq!(
        (&lines[1]["operation"], &lines[1]["objects_allowed"]),
        (&"pushdown:Batch".into(), &3.into())
    );
    Ok(())
}

#[test]
fn a_key_that_may_not_write_gets_nothing_read() -> Result<()> {
    let other_place = Grant::new("photos", "other/", &["write"]);
    for grants in [&GRANTS[..1], &[GRANTS[0], other_place]] {
        let lab = Grants::new(grants)?;
        assert_eq!(error_of(&lab.ask()?), (403, "AccessDenied".to_owned()));
        assert_eq!(lab.origin.connections(), 0);
        let lines = lab.lines(2)?;
        assert_eq!(
            (&lines[0]["key"], &lines[0]["verdict"], &lines[0]["reason"]),
            (
                &"sets/part-00000.tar".into(),
                &"denied".into(),
                &"no grant: write".into()
            )
        );
    }
    Ok(())
}

#[test]
fn a_key_that_may_not_read_gets_nothing_written() -> Result<()> {
    let reads = Grant::new("photos", "train/", &["read"]);
    for grants in [&GRANTS[1..], &[reads, GRANTS[1]]] {
        let lab = Grants::new(grants)?;
        let part = refused(&lab.ask()?)?;
        assert_eq!(
            (part.action, part.code.as_str()),
            (PartAction::Read, "AccessDenied")
        );
        assert_eq!(lab.origin.connections(), 0);
    }
    // The right on all objects is one grant.
    let lab = Grants::new(&[EVERYTHING])?;
    written(&lab.ask()?)?;
    let Some(put) = lab.origin.requests().pop() else {
        bail!("no request to the store");
    };
    ensure!(put.starts_with("PUT "), "{put}");
    Ok(())
}
