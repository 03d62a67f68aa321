//! The PUT of a part, at a store that records it.

use std::{
    io,
    sync::{Arc, mpsc},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use pushdown::wire::PartAction;
use pushdown_testkit::{Exchange, Gateway, Raw, ScriptedOrigin, eventually};

use super::*;
use crate::it::gateway_for;

const LIMIT: Duration = Duration::from_secs(30);
const ETAG: &str = "\"1\"";
/// The sample that a store with a gate holds back.
const LAST: u32 = 3;

/// Heads and bodies of the PUTs.
type Puts = Arc<Mutex<Vec<(String, Vec<u8>)>>>;
type Script = dyn Fn(&mut Exchange, usize) -> io::Result<()> + Send + Sync;

/// A store of photos.
struct Scripted {
    origin: ScriptedOrigin,
    puts: Puts,
}

impl Scripted {
    /// Answers reads after `read`, and the number-th PUT by `write`.
    fn start(
        read: impl Fn(&str) + Send + Sync + 'static,
        write: impl Fn(&mut Exchange, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        let puts = Puts::default();
        let (all, write) = (Arc::clone(&puts), Box::new(write) as Box<Script>);
        let origin = ScriptedOrigin::start(move |exchange| {
            if exchange.head.starts_with("PUT ") {
                let length = header(&exchange.head, "content-length").and_then(|text| text.parse().ok());
                let body = exchange.read(length.unwrap_or_default())?;
                let number = {
                    let mut puts = all.lock();
                    puts.push((exchange.head.clone(), body));
                    puts.len()
                };
                return write(exchange, number);
            }
            read(&exchange.head);
            let photo = photo(80, 60, "jpeg");
            let length = photo.len();
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nETag: {ETAG}\r\n\r\n"
            ))?;
            exchange.send(photo)
        })?;
        Ok(Self { origin, puts })
    }

    /// A store that sends the last sample once the sender says so, and not before.
    fn gated() -> Result<(Self, mpsc::Sender<()>)> {
        let (open, gate) = mpsc::channel();
        let gate = Mutex::new(gate);
        let read = move |head: &str| {
            if head.starts_with(&format!("GET {}?", path(LAST))) {
                // The test is over if nobody opens it.
                gate.lock().recv_timeout(LIMIT).ok();
            }
        };
        Ok((
            Self::start(read, |exchange, _| exchange.answer("200 OK", ""))?,
            open,
        ))
    }

    fn puts(&self) -> Vec<(String, Vec<u8>)> {
        self.puts.lock().clone()
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value.trim()))
}

fn path(number: u32) -> String {
    format!("{BUCKET}/{PREFIX}{number}.jpg")
}

/// A request for a part of four photos.
fn part(gateway: &Gateway) -> Result<(Caller, BatchRequest)> {
    let caller = Caller {
        keys: Keys::new("key", "secret"),
        gateway: gateway.listen(),
    };
    let objects = (0..=LAST).map(|number| Object {
        path: path(number),
        etag: ETAG.to_owned(),
        content: photo(80, 60, "jpeg"),
    });
    let objects: Vec<_> = objects.collect();
    let request = caller.part(RESIZE.parse()?, PartFormat::Wds, &objects)?;
    Ok((caller, request))
}

/// Reads events until there is one of progress with this many samples.
fn read_progress(answer: &mut pushdown_testkit::Incoming<'_>, samples: u32) -> Result<()> {
    loop {
        let chunk = answer.chunk()?.context("the answer ended")?;
        for line in String::from_utf8(chunk)?.lines() {
            match serde_json::from_str(line)? {
                PartEvent::Progress { samples: found } if found == samples => return Ok(()),
                PartEvent::Progress { .. } => {}
                other => bail!("expected progress, found {other:?}"),
            }
        }
    }
}

/// Waits until the gateway has reserved no memory.
fn wait_for_release(gateway: &Gateway) -> Result<()> {
    eventually("its memory is released", LIMIT, || {
        let reserved = gateway.metric("pushdown_memory_reserved_bytes")?;
        Ok((reserved < 1.0).then_some(()))
    })
}

#[test]
fn the_store_gets_length_and_md5_of_the_part_with_the_signature_of_the_caller() -> Result<()> {
    let store = Scripted::start(|_| {}, |exchange, _| exchange.answer("200 OK", ""))?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let answer = written(&caller.ask(&request)?)?;
    let [(head, body)] = &store.puts()[..] else {
        bail!("expected one PUT");
    };
    let target = request.part.as_ref().and_then(|part| part.target.as_ref());
    let target = target.context("no target")?.request_target();
    ensure!(head.starts_with(&format!("PUT {target} HTTP/1.1\r\n")), "{head}");
    assert_eq!(header(head, "host"), Some(caller.gateway.to_string().as_str()));
    assert_eq!(
        header(head, "content-length"),
        Some(answer.bytes.to_string().as_str())
    );
    let digest = STANDARD.encode(hex::decode(&answer.md5)?);
    assert_eq!(header(head, "content-md5"), Some(digest.as_str()));
    for name in ["transfer-encoding", "authorization", "expect"] {
        assert_eq!(header(head, name), None, "{name}");
    }
    assert_eq!(md5(body), answer.md5);
    // The version of each sample is a condition of its read.
    let reads = store.origin.requests();
    let reads: Vec<_> = reads.iter().filter(|head| head.starts_with("GET ")).collect();
    assert_eq!(reads.len(), 4);
    ensure!(
        reads.iter().all(|head| header(head, "if-match") == Some(ETAG)),
        "{reads:?}"
    );
    Ok(())
}

#[test]
fn a_store_that_has_no_time_gets_the_part_again() -> Result<()> {
    let store = Scripted::start(
        |_| {},
        |exchange, number| {
            let status = if number < 3 { "503 Slow Down" } else { "200 OK" };
            exchange.answer(status, "")
        },
    )?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let answer = written(&caller.ask(&request)?)?;
    let puts = store.puts();
    assert_eq!(puts.len(), 3);
    ensure!(puts.iter().all(|(_, body)| md5(body) == answer.md5));
    // Its samples are read once.
    assert_eq!(store.origin.requests().len(), 3 + 4);
    Ok(())
}

#[test]
fn a_refused_put_is_not_repeated() -> Result<()> {
    let document =
        "<Error><Code>AccessDenied</Code><Message>Nobody writes &amp; nothing is here</Message></Error>";
    let store = Scripted::start(|_| {}, |exchange, _| exchange.answer("403 Forbidden", document))?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let answer = refused(&caller.ask(&request)?)?;
    assert_eq!(
        answer,
        RefusedPart {
            action: PartAction::Write,
            code: "AccessDenied".to_owned(),
            message: "the store answered 403: Nobody writes & nothing is here".to_owned(),
            errors: Vec::new(),
        }
    );
    assert_eq!(store.puts().len(), 1);
    Ok(())
}

#[test]
fn the_caller_hears_of_a_part_while_it_is_made() -> Result<()> {
    let (store, open) = Scripted::gated()?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let post = caller.post(&request)?;
    let mut raw = Raw::connect(caller.gateway)?;
    raw.write(&[post.head(), post.body].concat())?;
    let mut answer = raw.begin("POST")?;
    assert_eq!(answer.head.status, 200);
    // At once, and then each second.
    read_progress(&mut answer, 0)?;
    for _ in 0..2 {
        read_progress(&mut answer, LAST)?;
    }
    assert_eq!(store.puts().len(), 0);
    open.send(())?;
    written(&answer.finish()?)?;
    assert_eq!(store.puts().len(), 1);
    Ok(())
}

#[test]
fn a_caller_that_leaves_ends_its_part() -> Result<()> {
    let (store, open) = Scripted::gated()?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let post = caller.post(&request)?;
    let mut raw = Raw::connect(caller.gateway)?;
    raw.write(&[post.head(), post.body].concat())?;
    read_progress(&mut raw.begin("POST")?, LAST)?;
    ensure!(gateway.metric("pushdown_memory_reserved_bytes")? > 0.0);
    drop(raw);
    wait_for_release(&gateway)?;
    open.send(())?;
    // Its place is free for others.
    for _ in 0..2 {
        open.send(())?;
        written(&caller.ask(&trial(&request))?)?;
    }
    assert_eq!(store.puts().len(), 0);
    Ok(())
}

/// The store may or may not have the part then. Whoever asks again gets the same one.
#[test]
fn a_caller_may_leave_during_the_put() -> Result<()> {
    let (open, gate) = mpsc::channel();
    let gate = Mutex::new(gate);
    let store = Scripted::start(
        |_| (),
        move |exchange, number| {
            if number == 1 {
                gate.lock().recv_timeout(LIMIT).ok();
            }
            exchange.answer("200 OK", "")
        },
    )?;
    let gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let post = caller.post(&request)?;
    let mut raw = Raw::connect(caller.gateway)?;
    raw.write(&[post.head(), post.body].concat())?;
    eventually("the store has the PUT", LIMIT, || {
        Ok((store.puts().len() == 1).then_some(()))
    })?;
    ensure!(gateway.metric("pushdown_memory_reserved_bytes")? > 0.0);
    drop(raw);
    wait_for_release(&gateway)?;
    open.send(())?;
    written(&caller.ask(&request)?)?;
    let bodies: Vec<_> = store.puts().into_iter().map(|(_, body)| body).collect();
    ensure!(
        bodies.len() == 2 && bodies[0] == bodies[1],
        "{} PUTs",
        bodies.len()
    );
    Ok(())
}

#[test]
fn a_drain_completes_a_part_in_flight() -> Result<()> {
    let (store, open) = Scripted::gated()?;
    let mut gateway = gateway_for(&store.origin, &[])?;
    let (caller, request) = part(&gateway)?;
    let post = caller.post(&request)?;
    let mut raw = Raw::connect(caller.gateway)?;
    raw.write(&[post.head(), post.body].concat())?;
    let mut answer = raw.begin("POST")?;
    read_progress(&mut answer, LAST)?;
    gateway.terminate()?;
    eventually("the gateway drains", LIMIT, || {
        Ok((gateway.page("/readyz")?.text() == "draining\n").then_some(()))
    })?;
    assert_eq!(caller.ask(&request)?.status, 503);
    open.send(())?;
    written(&answer.finish()?)?;
    assert_eq!(store.puts().len(), 1);
    assert_eq!(gateway.wait(LIMIT)?.code(), Some(0), "{}", gateway.log()?);
    Ok(())
}
