//! Silent and slow connections of any number leave slots to others: a client gets its first answer within two seconds.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use parking_lot::Mutex;
use pushdown_testkit::{Gateway, Raw, Request, Response, ScriptedOrigin, eventually};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

use super::{binary, gateway_for};

/// The time within which a client gets its first answer.
const FIRST_ANSWER: Duration = Duration::from_secs(2);
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Connects from any address of the loopback network.
pub(super) struct Clients(Runtime);

impl Clients {
    pub(super) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        Ok(Self(runtime))
    }

    pub(super) fn connect(&self, source: [u8; 4], address: SocketAddr) -> Result<Raw> {
        let stream = self.0.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((Ipv4Addr::from(source), 0).into())?;
            socket.connect(address).await
        });
        let stream = stream.context("cannot connect")?.into_std()?;
        stream.set_nonblocking(false)?;
        Raw::new(stream)
    }

    /// Connections that begin with these bytes, in turn from addresses 127.0.0.1 to 127.0.0.`clients`.
    pub(super) fn crowd(
        &self,
        count: u32,
        clients: u32,
        address: SocketAddr,
        bytes: &[u8],
    ) -> Result<Vec<Raw>> {
        let connect = |index: u32| {
            let [.., client] = (index % clients + 1).to_be_bytes();
            let mut raw = self.connect([127, 0, 0, client], address)?;
            raw.write(bytes)?;
            Ok(raw)
        };
        (0..count).map(connect).collect()
    }
}

pub(super) fn get() -> Request {
    Request::new("GET", "/bucket/key").header("Host", "gateway")
}

/// Sends a request on a connection.
fn ask(raw: &mut Raw) -> Result<Response> {
    raw.write(&get().head())?;
    raw.read("GET")
}

/// The answer to a client that connects now, which must arrive in time.
fn first_answer(clients: &Clients, source: [u8; 4], gateway: &Gateway) -> Result<(Raw, Response)> {
    let start = Instant::now();
    let mut raw = clients.connect(source, gateway.listen())?;
    let answer = ask(&mut raw)?;
    let time = start.elapsed();
    ensure!(time < FIRST_ANSWER, "the first answer took {time:?}");
    Ok((raw, answer))
}

fn well() -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(|exchange| exchange.answer("200 OK", "well"))
}

/// An origin that answers a request for each message.
fn held() -> Result<(ScriptedOrigin, mpsc::Sender<()>)> {
    let (resume, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let origin = ScriptedOrigin::start(move |exchange| {
        wait.lock().recv_timeout(TIMEOUT).map_err(std::io::Error::other)?;
        exchange.answer("200 OK", "well")
    })?;
    Ok((origin, resume))
}

pub(super) fn metric(gateway: &Gateway, name: &str, value: f64) -> Result<()> {
    eventually(name, TIMEOUT, || {
        Ok(((gateway.metric(name)? - value).abs() < 0.5).then_some(()))
    })
}

#[test]
fn silent_connections_leave_slots_to_others() -> Result<()> {
    let (origin, clients) = (well()?, Clients::new()?);
    let gateway = gateway_for(&origin, &[])?;
    // One client, with more than all slots: others get theirs, and so does the client itself.
    let mut silent = clients.crowd(1_100, 1, gateway.listen(), b"")?;
    for source in [[127, 0, 0, 1], [127, 0, 1, 1]] {
        ensure!(first_answer(&clients, source, &gateway)?.1.status == 200);
    }
    metric(&gateway, "pushdown_connections", 255.0)?;
    // Eight clients share the slots with a ninth, which comes later and has fewer connections than each of them.
    silent.extend(clients.crowd(2_400, 8, gateway.listen(), b"")?);
    let mut idle = Vec::new();
    for _ in 0..100 {
        let (raw, answer) = first_answer(&clients, [127, 0, 1, 1], &gateway)?;
        ensure!(answer.status == 200);
        idle.push(raw);
    }
    silent.extend(clients.crowd(1_100, 8, gateway.listen(), b"GET /bucket/key HTTP/1.1\r\n")?);
    for raw in &mut idle {
        ensure!(
            ask(raw)?.status == 200,
            "a connection of the ninth client was closed"
        );
    }
    metric(&gateway, "pushdown_connections", 1024.0)?;
    ensure!(gateway.metric("pushdown_connections_evicted_total")? > 3_000.0);
    ensure!(gateway.metric("pushdown_connections_refused_total")? < 0.5);
    drop(silent);
    drop(idle);
    metric(&gateway, "pushdown_connections", 0.0)
}

#[test]
fn a_head_that_arrives_byte_by_byte_is_as_old_as_its_connection() -> Result<()> {
    let (origin, clients) = (well()?, Clients::new()?);
    let flags = ["--max-connections=4", "--max-connections-per-client=4"];
    let gateway = gateway_for(&origin, &flags)?;
    let mut slow = clients.crowd(4, 1, gateway.listen(), b"G")?;
    metric(&gateway, "pushdown_connections", 4.0)?;
    // The oldest has sent something last.
    for byte in *b"ET /bucket/key" {
        slow[0].write(&[byte])?;
    }
    let (_raw, answer) = first_answer(&clients, [127, 0, 0, 2], &gateway)?;
    ensure!(answer.status == 200);
    ensure!(slow[0].is_closed()?);
    slow[1].write(b"ET /bucket/key HTTP/1.1\r\nHost: gateway\r\n\r\n")?;
    ensure!(slow[1].read("GET")?.status == 200);
    Ok(())
}

#[test]
fn the_connection_that_is_idle_for_longest_makes_room() -> Result<()> {
    let (origin, clients) = (well()?, Clients::new()?);
    let gateway = gateway_for(
        &origin,
        &["--max-connections=4", "--max-connections-per-client=3"],
    )?;
    let mut idle = Vec::new();
    for _ in 0..3 {
        idle.push(first_answer(&clients, [127, 0, 0, 1], &gateway)?.0);
    }
    ensure!(ask(&mut idle[0])?.status == 200);
    // The first client is at its limit, and replaces its own connection.
    let (_fourth, answer) = first_answer(&clients, [127, 0, 0, 1], &gateway)?;
    ensure!(answer.status == 200 && idle[1].is_closed()?);
    ensure!(ask(&mut idle[0])?.status == 200 && ask(&mut idle[2])?.status == 200);
    metric(&gateway, "pushdown_connections_evicted_total", 1.0)
}

#[test]
fn requests_in_flight_keep_their_connections() -> Result<()> {
    let ((origin, resume), clients) = (held()?, Clients::new()?);
    let flags = ["--max-connections=3", "--max-connections-per-client=2"];
    let gateway = gateway_for(&origin, &flags)?;
    let mut busy = clients.crowd(2, 1, gateway.listen(), &get().head())?;
    eventually("requests are in flight", TIMEOUT, || {
        Ok((origin.requests().len() == 2).then_some(()))
    })?;
    let (mut refused, answer) = first_answer(&clients, [127, 0, 0, 1], &gateway)?;
    ensure!(
        answer.status == 503 && answer.header("retry-after") == Some("1"),
        "{answer:?}"
    );
    ensure!(
        answer.element("Code").as_deref() == Some("SlowDown"),
        "{answer:?}"
    );
    ensure!(refused.is_closed()?);
    metric(&gateway, "pushdown_connections_refused_total", 1.0)?;

    // The last slot is taken by a second client; a third one waits until an answer has ended.
    busy.push(clients.connect([127, 0, 0, 2], gateway.listen())?);
    busy[2].write(&get().head())?;
    eventually("requests are in flight", TIMEOUT, || {
        Ok((origin.requests().len() == 3).then_some(()))
    })?;
    let mut third = clients.connect([127, 0, 0, 3], gateway.listen())?;
    third.write(&get().head())?;
    let (answered, answers) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || answered.send(third.read("GET").map(|answer| answer.status)));
        // Nothing but time shows that it waits.
        ensure!(answers.recv_timeout(Duration::from_millis(300)).is_err());
        (0..4).try_for_each(|_| resume.send(()))?;
        ensure!(answers.recv_timeout(TIMEOUT)?? == 200);
        Ok(())
    })?;
    let answers = busy
        .iter_mut()
        .map(|raw| raw.read("GET").map(|answer| answer.status));
    // The third client has taken the slot of a connection whose answer was sent before.
    ensure!(answers.collect::<Result<Vec<_>>>()? == [200; 3]);
    Ok(())
}

#[test]
fn silent_bodies_make_room() -> Result<()> {
    let (origin, clients) = (
        ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop))?,
        Clients::new()?,
    );
    let gateway = gateway_for(
        &origin,
        &["--max-connections=4", "--max-connections-per-client=2"],
    )?;
    let put = Request::new("PUT", "/bucket/key")
        .header("Host", "gateway")
        .header("Content-Length", "100");
    let begin = [put.head(), b"begin".to_vec()].concat();
    let silent = clients.crowd(4, 2, gateway.listen(), &begin)?;
    eventually("uploads are in flight", TIMEOUT, || {
        Ok((origin.requests().len() == 4).then_some(()))
    })?;
    // Refused without a connection to the store.
    let start = Instant::now();
    let mut raw = clients.connect([127, 0, 0, 3], gateway.listen())?;
    raw.write(b"GET http://elsewhere/ HTTP/1.1\r\nHost: gateway\r\n\r\n")?;
    ensure!(raw.read("GET")?.status == 400 && start.elapsed() < FIRST_ANSWER);
    drop(silent);
    metric(&gateway, "pushdown_connections_evicted_total", 1.0)
}

#[test]
fn silent_handshakes_make_room() -> Result<()> {
    let (folder, clients) = (tempfile::tempdir()?, Clients::new()?);
    let generated = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, generated.cert.pem())?;
    std::fs::write(&key, generated.signing_key.serialize_pem())?;
    let origin = well()?;
    let certificate_flag = format!("--tls-cert={}", certificate.display());
    let key_flag = format!("--tls-key={}", key.display());
    let inner = gateway_for(&origin, &[&certificate_flag, &key_flag, "--max-connections=8"])?;
    let outer = Gateway::launch(
        binary(),
        [
            format!("--upstream=https://{}", inner.listen()),
            format!("--upstream-ca={}", certificate.display()),
        ],
    )?;
    // The first bytes of a handshake.
    let silent = clients.crowd(40, 4, inner.listen(), b"\x16\x03\x01")?;
    let (_raw, answer) = first_answer(&clients, [127, 0, 0, 1], &outer)?;
    ensure!(answer.status == 200, "{answer:?}");
    drop(silent);
    Ok(())
}

#[test]
fn slow_heads_do_not_delay_probes() -> Result<()> {
    let (origin, clients) = (well()?, Clients::new()?);
    let gateway = gateway_for(&origin, &[])?;
    for count in [1, 8] {
        let slow = clients.crowd(200, count, gateway.admin(), b"GET /healthz HTTP/1.1\r\n")?;
        let start = Instant::now();
        ensure!(gateway.page("/healthz")?.status == 200);
        ensure!(start.elapsed() < FIRST_ANSWER);
        drop(slow);
    }
    Ok(())
}

#[test]
fn proxies_may_have_all_connections() -> Result<()> {
    let ((origin, resume), clients) = (held()?, Clients::new()?);
    let flags = [
        "--max-connections-per-client=2",
        "--proxies=127.0.0.1,127.0.2.0/24",
    ];
    let gateway = gateway_for(&origin, &flags)?;
    for source in [[127, 0, 0, 1], [127, 0, 2, 9]] {
        let mut busy = Vec::new();
        for _ in 0..5 {
            let mut raw = clients.connect(source, gateway.listen())?;
            raw.write(&get().head())?;
            busy.push(raw);
        }
        (0..5).try_for_each(|_| resume.send(()))?;
        for raw in &mut busy {
            ensure!(raw.read("GET")?.status == 200);
        }
    }
    let mut ordinary = Vec::new();
    for _ in 0..2 {
        let mut raw = clients.connect([127, 0, 0, 2], gateway.listen())?;
        raw.write(&get().head())?;
        ordinary.push(raw);
    }
    eventually("requests are in flight", TIMEOUT, || {
        Ok((origin.requests().len() == 12).then_some(()))
    })?;
    ensure!(first_answer(&clients, [127, 0, 0, 2], &gateway)?.1.status == 503);
    Ok(())
}

/// A process often has 1,024 file descriptors, fewer than this many connections need.
#[test]
fn a_lack_of_file_descriptors_reduces_the_slots() -> Result<()> {
    let (origin, clients, folder) = (well()?, Clients::new()?, tempfile::tempdir()?);
    let script = folder.path().join("gateway");
    let text = format!("#!/bin/sh\nulimit -n 200 && exec {} \"$@\"\n", binary().display());
    std::fs::write(&script, text)?;
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o700))?;
    let gateway = Gateway::launch(&script, [format!("--upstream=http://{}", origin.address())])?;
    let silent = clients.crowd(400, 4, gateway.listen(), b"")?;
    for _ in 0..10 {
        let (_raw, answer) = first_answer(&clients, [127, 0, 1, 1], &gateway)?;
        ensure!(answer.status == 200, "{answer:?}");
    }
    ensure!(gateway.log()?.contains("too few file descriptors"));
    drop(silent);
    Ok(())
}
