//! Late refusals: the store answers a copy, or the completion of an upload, with 200, sends white space while it works, and then
//! an error. What it says of the gateway's identity and signature is not for the caller.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Exchange, Gateway, Raw, Request, ScriptedOrigin, eventually};
use serde_json::Value;

use super::audit::audit_log;
use super::{BUCKET, Client, EVERYTHING, KeysFile, caller, identity, key_block, launch, skip_body, trainer};

/// Longest wait for the client, and for the audit log.
const LIMIT: Duration = Duration::from_secs(10);
const ARN: &str = "arn:aws:sts::111122223333:assumed-role/gateway/session";
/// What the store sends before it has carried out a request.
const PROLOG: [&str; 3] = ["<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", " ", "\n"];
/// The key of an object that is written.
const WRITTEN: &str = "written";

/// What the store sends at last: the key of the object is the code of its refusal.
fn document(head: &str) -> String {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    match path.rsplit('/').next().unwrap_or_default() {
        WRITTEN => "<CopyObjectResult><ETag>\"1\"</ETag></CopyObjectResult>".to_owned(),
        code => refusal(code),
    }
}

/// A refusal as AWS words it.
fn refusal(code: &str) -> String {
    format!(
        "<Error><Code>{code}</Code><Message>User: {ARN} is not authorized to perform: s3:PutObject</Message>\
         <AWSAccessKeyId>{}</AWSAccessKeyId><RequestId>STORE1</RequestId></Error>",
        identity().access
    )
}

fn send_chunk(exchange: &mut Exchange, text: &str) -> io::Result<()> {
    exchange.send(format!("{:x}\r\n{text}\r\n", text.len()))
}

/// Begins to answer, and ends once the client has what was sent until then.
fn answer(exchange: &mut Exchange, has_arrived: &Mutex<Receiver<()>>) -> io::Result<()> {
    skip_body(exchange)?;
    let document = document(&exchange.head);
    exchange
        .send("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for text in PROLOG {
        send_chunk(exchange, text)?;
    }
    has_arrived.lock().recv_timeout(LIMIT).map_err(io::Error::other)?;
    send_chunk(exchange, &document)?;
    exchange.send("0\r\n\r\n")
}

/// A store that answers in this way, and a gateway in front of it.
struct Lab {
    prolog_arrived: Sender<()>,
    gateway: Gateway,
    keys_file: KeysFile,
    _origin: ScriptedOrigin,
}

impl Lab {
    fn start() -> Result<Self> {
        let (prolog_arrived, has_arrived) = mpsc::channel();
        let has_arrived = Mutex::new(has_arrived);
        let origin = ScriptedOrigin::start(move |exchange| answer(exchange, &has_arrived))?;
        let keys_file = keys_file()?;
        let flag = format!("--audit-log={}", audit_log(&keys_file).display());
        Ok(Self {
            prolog_arrived,
            gateway: launch(origin.address(), &identity(), &keys_file, &[&flag])?,
            keys_file,
            _origin: origin,
        })
    }

    /// The body of the answer to a request. The store ends it only after its beginning has arrived.
    fn send(&self, client: &Client, request: Request) -> Result<String> {
        let request = client.sign(request)?;
        let mut raw = Raw::connect(client.address)?;
        raw.write(&[request.head(), request.body.clone()].concat())?;
        let mut answer = raw.begin(&request.method)?;
        ensure!(answer.head.status == 200, "{:?}", answer.head);
        let (prolog, mut body) = (PROLOG.concat(), Vec::new());
        while body.len() < prolog.len() {
            body.extend(answer.chunk()?.context("the answer has ended")?);
        }
        ensure!(body == prolog.as_bytes(), "{:?}", String::from_utf8_lossy(&body));
        self.prolog_arrived.send(())?;
        while let Some(chunk) = answer.chunk()? {
            body.extend(chunk);
        }
        Ok(String::from_utf8(body)?)
    }
}

fn keys_file() -> Result<KeysFile> {
    KeysFile::new(&[
        key_block(&caller(), "self", &[]),
        key_block(&trainer(), "gateway", &[EVERYTHING]),
    ])
}

/// `CopyObject`, `UploadPartCopy` and `CompleteMultipartUpload`.
fn requests(client: &Client, key: &str) -> [Request; 3] {
    let target = format!("{BUCKET}/{key}");
    let copy = |target: &str| {
        let request = client.request("PUT", target);
        request.header("x-amz-copy-source", "/photos/source")
    };
    let parts = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>1</ETag></Part></CompleteMultipartUpload>";
    [
        copy(&target),
        copy(&format!("{target}?partNumber=1&uploadId=u")),
        client
            .request("POST", &format!("{target}?uploadId=u"))
            .body(parts),
    ]
}

#[test]
fn a_late_refusal_does_not_name_the_gateways_identity() -> Result<()> {
    let lab = Lab::start()?;
    let signature = "the store refused the gateway's signature: the gateway's operator has to check identity, region and clock";
    let mut sent = 0;
    for (keys, code, message) in [
        (trainer(), "AccessDenied", Some("Access Denied")),
        (trainer(), "SignatureDoesNotMatch", Some(signature)),
        (trainer(), "InternalError", None),
        // The store knows the key of the caller, whom it may name.
        (caller(), "AccessDenied", None),
        (caller(), "SignatureDoesNotMatch", Some(signature)),
    ] {
        let client = Client::new(&keys, lab.gateway.listen());
        for request in requests(&client, code) {
            let expected = match message {
                Some(message) => format!(
                    "<Error><Code>{code}</Code><Message>{message}</Message><RequestId>STORE1</RequestId></Error>"
                ),
                None => refusal(code),
            };
            let body = lab.send(&client, request)?;
            ensure!(body.trim_end() == PROLOG.concat() + &expected, "{code}: {body}");
            sent += 1;
        }
    }
    let lines = eventually("the lines are written", LIMIT, || {
        let text = fs::read_to_string(audit_log(&lab.keys_file)).unwrap_or_default();
        Ok((text.lines().count() == sent).then_some(text))
    })?;
    ensure!(!lines.contains(ARN), "{lines}");
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line)?;
        // The gateway has allowed it.
        ensure!(line["verdict"] == "allowed" && line["status"] == 200, "{line}");
    }
    Ok(())
}

#[test]
fn results_of_slow_writes_pass_unchanged() -> Result<()> {
    let lab = Lab::start()?;
    let client = Client::new(&trainer(), lab.gateway.listen());
    for request in requests(&client, WRITTEN) {
        let expected = PROLOG.concat() + &document(&format!("PUT {BUCKET}/{WRITTEN} HTTP/1.1"));
        assert_eq!(lab.send(&client, request)?, expected);
    }
    Ok(())
}

/// The store names the length of its answer before the gateway has read it.
#[test]
fn answers_keep_their_length() -> Result<()> {
    let origin = ScriptedOrigin::start(|exchange| {
        skip_body(exchange)?;
        let document = document(&exchange.head);
        exchange.answer("200 OK", &document)
    })?;
    let keys_file = keys_file()?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    for (key, is_unchanged) in [(WRITTEN, true), ("AccessDenied", false)] {
        let sent = document(&format!("PUT {BUCKET}/{key} HTTP/1.1"));
        for request in requests(&client, key) {
            let answer = client.send(request)?;
            let length = sent.len().to_string();
            assert_eq!(answer.header("content-length"), Some(length.as_str()), "{key}");
            assert_eq!(answer.text() == sent, is_unchanged, "{key}");
            ensure!(!answer.text().contains(ARN), "{}", answer.text());
        }
    }
    Ok(())
}

/// A refusal in a compressed answer could not be masked.
#[test]
fn the_store_does_not_compress_answers_to_writes() -> Result<()> {
    let origin = ScriptedOrigin::start(super::accept)?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(origin.address(), &identity(), &keys_file, &[])?;
    let client = Client::new(&trainer(), gateway.listen());
    for (method, target, can_compress) in [
        ("GET", "/photos/a?x-pushdown-seed=1", true),
        ("PUT", "/photos/a?x-pushdown-seed=1", false),
        ("POST", "/photos/a?uploads&x-pushdown-seed=1", false),
    ] {
        let request = client.request(method, target);
        let request = request
            .header("Accept-Encoding", "gzip")
            .header("x-pushdown-epoch", "2");
        assert_eq!(client.send(request)?.status, 200, "{method} {target}");
        let head = origin.requests().pop().context("the store was not asked")?;
        let head = head.to_ascii_lowercase();
        ensure!(head.contains("accept-encoding: gzip") == can_compress, "{head}");
        ensure!(!head.contains("x-pushdown-"), "for the gateway alone: {head}");
    }
    Ok(())
}
