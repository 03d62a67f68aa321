//! Outages of an endpoint: logged once at the first retry, and once when the endpoint answers again.

use std::{
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    time::Duration,
};

use pushdown_testkit::{Gateway, RelayAction, ScriptedOrigin, World, eventually, faulty_relay, find_gateway};

use super::cli::pushdown;

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";

/// An address without a listener.
fn unused_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn pushdown_at(endpoint: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = pushdown(arguments);
    command.env("PUSHDOWN_ENDPOINT", format!("http://{endpoint}"));
    command
}

/// Returns the first line of stderr and kills the command.
fn first_line(mut command: Command) -> String {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    log.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// The lines of stderr about outages, without colours and times.
fn outage_lines(output: &Output) -> Vec<String> {
    let log = String::from_utf8_lossy(&output.stderr);
    let lines = log.lines().filter_map(|line| {
        let start = line.find("retrying").or_else(|| line.find("answers again"))?;
        Some(line[start..].to_owned())
    });
    lines.collect()
}

fn read_commands() -> [Vec<&'static str>; 5] {
    let (object, prefix) = ("s3://photos/a.jpg", "s3://photos/");
    [
        vec!["get", object, "-p", PIPELINE, "-o", "-"],
        vec!["get", object, "-p", PIPELINE, "-o", "-", "--plain"],
        vec!["get", "s3://photos/a.csv", "-p", "select(limit=1)", "-o", "-"],
        vec!["read", prefix, "-p", PIPELINE],
        vec!["read", prefix, "-p", PIPELINE, "--plain"],
    ]
}

#[test]
fn a_gateway_that_is_down_is_logged_at_the_first_retry() {
    for arguments in read_commands() {
        let unused_address = unused_address();
        let line = first_line(pushdown_at(unused_address, &arguments));
        for text in [
            "WARN",
            "onnection refused",
            "; retrying up to 9 times, with pauses of up to 45.5 s in all",
        ] {
            assert!(line.contains(text), "{arguments:?}: no `{text}` in: {line}");
        }
    }
}

#[test]
fn a_store_that_is_down_is_logged_at_the_first_retry() {
    let upstream = format!("--upstream=http://{}", unused_address());
    let gateway = Gateway::launch(&find_gateway().unwrap(), [upstream]).unwrap();
    for arguments in read_commands() {
        let line = first_line(pushdown_at(gateway.listen(), &arguments));
        for text in [
            "WARN",
            "s3://photos/",
            "OriginUnavailable",
            "; retrying up to 9 times",
        ] {
            assert!(line.contains(text), "{arguments:?}: no `{text}` in: {line}");
        }
    }
}

#[test]
fn the_end_of_an_outage_is_logged() {
    let mut world = World::with_photos(6).unwrap();
    for extra_arguments in [&[][..], &["--plain"], &["--auto"]] {
        let listen = world.gateway.listen();
        let restarting = std::thread::spawn(move || world.restart(Duration::from_secs(2)).unwrap());
        eventually("the gateway is down", Duration::from_secs(5), || {
            Ok(TcpStream::connect(listen).is_err().then_some(()))
        })
        .unwrap();
        let arguments = ["read", "s3://photos/", "-p", PIPELINE];
        let output = pushdown_at(listen, &[&arguments, extra_arguments].concat())
            .output()
            .unwrap();
        let log = outage_lines(&output);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(log.len(), 2, "{extra_arguments:?}: {log:?}");
        assert!(log[0].starts_with("retrying up to 9 times"), "{log:?}");
        assert!(log[1].starts_with("answers again, after "), "{log:?}");
        world = restarting.join().unwrap();
    }
}

/// Many concurrent requests fail several times each: this is one outage.
#[test]
fn an_outage_between_batches_is_logged_once() {
    let world = World::with_photos(24).unwrap();
    let relay = faulty_relay(world.gateway.listen(), |earlier| match earlier {
        1..6 => RelayAction::SlowDown,
        _ => RelayAction::Forward,
    })
    .unwrap();
    let arguments = ["read", "s3://photos/", "-p", PIPELINE, "--batch-size", "2"];
    let output = pushdown_at(relay.address(), &arguments).output().unwrap();
    assert!(output.status.success());
    let log = outage_lines(&output);
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[1].starts_with("answers again"), "{log:?}");
}

/// A permanent refusal is not an outage.
#[test]
fn a_refusal_is_neither_retried_nor_logged_as_an_outage() {
    let refusing = ScriptedOrigin::start(|exchange| {
        exchange.answer("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>")
    })
    .unwrap();
    for arguments in read_commands() {
        let output = pushdown_at(refusing.address(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(outage_lines(&output), Vec::<String>::new(), "{arguments:?}");
    }
}
