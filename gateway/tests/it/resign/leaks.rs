//! No secret, signature or authorization leaves the gateway, but in requests to the store: not in logs, answers or status pages.

use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample};
use pushdown_testkit::{Exchange, Gateway, Keys, Payload, Request, Response, ScriptedOrigin, eventually};

use super::audit::audit_log;
use super::{
    BUCKET, Client, EVERYTHING, KeysFile, VALID, accept, bodies, caller, error_of, identity, key_block,
    launch, trainer,
};

/// Longest wait for a reload of the keys file.
const LIMIT: Duration = Duration::from_secs(10);
const MISTYPED_SECRET: &str = "secret-in-a-field-of-another-name";

/// A store that refuses some objects in the way of AWS: it names the key that signed.
fn script(exchange: &mut Exchange) -> io::Result<()> {
    let head = exchange.head.clone();
    let authorization = head
        .lines()
        .find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
    let refusal = |code: &str| {
        let signed = authorization.unwrap_or_default();
        let access = identity().access;
        format!(
            "<Error><Code>{code}</Code><AWSAccessKeyId>{access}</AWSAccessKeyId><StringToSign>{signed}</StringToSign></Error>"
        )
    };
    let path = head.split(' ').nth(1).unwrap_or_default();
    match path.rsplit('/').next().unwrap_or_default() {
        "refused" => exchange.answer("403 Forbidden", &refusal("SignatureDoesNotMatch")),
        "unknown" => exchange.answer("403 Forbidden", &refusal("InvalidAccessKeyId")),
        "expired" => exchange.answer("400 Bad Request", &refusal("ExpiredToken")),
        "moved" => exchange.send(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://192.0.2.1/elsewhere\r\nContent-Length: 0\r\n\r\n",
        ),
        "cut" => {
            exchange.close();
            exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        }
        "silent" => {
            exchange.close();
            Ok(())
        }
        _ => accept(exchange),
    }
}

/// A gateway, and all that was sent to it and answered by it.
struct Run {
    origin: ScriptedOrigin,
    gateway: Gateway,
    keys_file: KeysFile,
    requests: Vec<String>,
    answers: Vec<Response>,
}

impl Run {
    fn start() -> Result<Self> {
        let origin = ScriptedOrigin::start(script)?;
        let blocks = [
            key_block(&caller(), "self", &[]),
            key_block(&trainer(), "gateway", &[EVERYTHING]),
        ];
        let keys_file = KeysFile::new(&blocks)?;
        let audit = format!("--audit-log={}", audit_log(&keys_file).display());
        let flags = ["--log-level=debug", audit.as_str()];
        let gateway = launch(origin.address(), &identity(), &keys_file, &flags)?;
        Ok(Self {
            origin,
            gateway,
            keys_file,
            requests: Vec::new(),
            answers: Vec::new(),
        })
    }

    /// Sends a signed request. An answer that is cut is part of the run.
    fn send(&mut self, request: &Request) {
        let mut text = String::from_utf8_lossy(&request.head()).into_owned();
        text.push_str(&String::from_utf8_lossy(&request.body));
        self.requests.push(text);
        self.answers.extend(request.send(self.gateway.listen()).ok());
    }

    fn operations(&mut self, client: &Client) -> Result<()> {
        let wrong = Keys::new(&client.keys.access, "another-secret-of-tests");
        let late = client.keys.with_time(SystemTime::now() - Duration::from_hours(1));
        for key in ["a", "refused", "unknown", "expired", "moved", "cut", "silent"] {
            let request = client.request("GET", &format!("{BUCKET}/2024/{key}"));
            self.send(&client.sign(request.clone())?);
            self.send(&client.keys.presign(request.clone(), VALID)?);
            let pipeline = request
                .clone()
                .header("x-pushdown-pipeline", "decode | resize(8, 8)");
            self.send(&client.sign(pipeline)?);
            self.send(&wrong.sign(request.clone(), Payload::Signed)?);
            self.send(&wrong.presign(request.clone(), VALID)?);
            self.send(&late.presign(request.clone(), VALID)?);
            let unsigned = client.sign(request)?.header("x-amz-acl", "private");
            self.send(&unsigned);
        }
        for payload in bodies::PAYLOADS {
            let upload = client
                .request("PUT", &format!("{BUCKET}/2024/{payload:?}"))
                .body(bodies::bytes(10_000));
            let mut signed = client.keys.sign(upload, payload)?;
            self.send(&signed);
            if let Some(byte) = signed.body.get_mut(500) {
                *byte ^= 1;
            }
            self.send(&signed);
        }
        let request = client.request("GET", &format!("{BUCKET}/2024/a"));
        let signed = client.keys.presign(request, VALID)?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        let (shared, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        let wrong_signature = "0".repeat(64);
        for signature in [signature, wrong_signature.as_str()] {
            let samples = vec![BatchSample::new(path, signature)];
            let batch = BatchRequest::new("decode".parse()?, shared, samples);
            let batch = client
                .request("POST", "/_pushdown/v1/batch")
                .body(serde_json::to_vec(&batch)?);
            self.send(&batch);
        }
        self.requests.push(signed.target);
        Ok(())
    }

    /// Replaces the keys file by one with a fault beside a secret.
    fn break_keys_file(&self) -> Result<()> {
        let block = key_block(&trainer(), "gateway", &[EVERYTHING]);
        let fault = format!("[[key]]\nsecrett = {MISTYPED_SECRET:?}\n\n");
        self.keys_file.write(&(fault + &block))?;
        eventually("the fault is logged", LIMIT, || {
            Ok(self.gateway.log()?.contains("secrett").then_some(()))
        })
    }
}

/// The 64 digits after each `signature=` or `signature:`.
pub(super) fn signatures(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.split("ignature").skip(1).filter_map(|rest| rest.get(1..65));
    ends.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[test]
fn secrets_and_signatures_of_a_whole_run_are_not_shown() -> Result<()> {
    let mut run = Run::start()?;
    for keys in [caller(), trainer()] {
        let client = Client::new(&keys, run.gateway.listen());
        run.operations(&client)?;
    }
    run.break_keys_file()?;
    let sent_by_gateway = run.origin.requests();
    let secrets = [
        caller().secret,
        trainer().secret,
        identity().secret,
        MISTYPED_SECRET.to_owned(),
    ];
    let hidden: Vec<&str> = sent_by_gateway
        .iter()
        .flat_map(|head| signatures(head))
        .chain(secrets.iter().map(String::as_str))
        .collect();
    let callers: Vec<&str> = run.requests.iter().flat_map(|text| signatures(text)).collect();
    ensure!(
        hidden.len() > 20 && callers.len() > 60,
        "{} {}",
        hidden.len(),
        callers.len()
    );

    let log = run.gateway.log()?;
    ensure!(
        log.contains("SignatureDoesNotMatch"),
        "refusals are not logged: {log}"
    );
    let words = ["X-Amz-Signature", "Signature=", "aws4_request"];
    for text in hidden.iter().chain(&callers).chain(&words) {
        ensure!(!log.contains(text), "the log shows {text}");
    }
    let audit = fs::read_to_string(audit_log(&run.keys_file))?;
    ensure!(audit.lines().count() > 60, "requests have no lines: {audit}");
    for text in hidden.iter().chain(&callers).chain(&words) {
        ensure!(!audit.contains(text), "the audit log shows {text}");
    }
    for path in ["/metrics", "/status.json", "/"] {
        let page = run.gateway.page(path)?.text();
        for text in hidden.iter().chain(&callers) {
            ensure!(!page.contains(text), "{path} shows {text}");
        }
    }
    // The caller's own signature may be repeated to it, but nothing of the gateway's.
    for answer in &run.answers {
        let shown = format!("{:?} {}", answer.headers, answer.text());
        for text in &hidden {
            ensure!(!shown.contains(text), "an answer shows {text}: {shown}");
        }
    }
    Ok(())
}

/// An answer about the gateway's signature has its key and its canonical request, which concern no caller.
#[test]
fn what_the_store_says_about_the_gateways_signature_is_not_forwarded() -> Result<()> {
    let run = Run::start()?;
    let client = Client::new(&trainer(), run.gateway.listen());
    for (key, status, code_of_identity) in [
        ("refused", 403, Some("InvalidGatewayIdentity")),
        ("unknown", 403, Some("InvalidGatewayIdentity")),
        ("expired", 503, None),
        ("moved", 502, None),
    ] {
        for with_pipeline in [false, true] {
            let mut request = client.request("GET", &format!("{BUCKET}/2024/{key}"));
            if with_pipeline {
                request = request.header("x-pushdown-pipeline", "decode");
            }
            let answer = client.send(request)?;
            let (found, code) = error_of(&answer);
            // A store that may accept a later request is unavailable, by either code.
            let is_expected = found == status || (status == 502 && found == 503);
            ensure!(
                is_expected && code_of_identity.map_or(!code.is_empty(), |expected| code == expected),
                "{key}, {with_pipeline}: {answer:?}"
            );
            let shown = format!("{:?} {}", answer.headers, answer.text());
            for text in [identity().access.as_str(), "StringToSign", "192.0.2.1"] {
                ensure!(!shown.contains(text), "{key}, {with_pipeline}: {shown}");
            }
        }
    }
    Ok(())
}
