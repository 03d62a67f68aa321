//! An endpoint that does not answer: said at the first retry, once, and again when it does.

use std::{
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Output, Stdio},
    time::Duration,
};

use pushdown_testkit::{Gateway, ScriptedOrigin, eventually, find_gateway};

use super::{
    cli::pushdown,
    relay::{Deed, relay},
    world::World,
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";

/// An address that nobody listens on.
fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn at(endpoint: SocketAddr, arguments: &[&str]) -> Command {
    let mut command = pushdown(arguments);
    command.env("PUSHDOWN_ENDPOINT", format!("http://{endpoint}"));
    command
}

/// The first line that a command says on stderr. It does not run on.
fn first_line(mut command: Command) -> String {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    said.read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

/// What stderr says of outages, without colours and times.
fn outages(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines = said.lines().filter_map(|line| {
        let start = line.find("retrying").or_else(|| line.find("answers again"))?;
        Some(line[start..].to_owned())
    });
    lines.collect()
}

fn reads() -> [Vec<&'static str>; 5] {
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
fn a_gateway_that_is_down_is_said_at_the_first_retry() {
    for arguments in reads() {
        let nobody = nobody();
        let line = first_line(at(nobody, &arguments));
        for part in [
            "WARN",
            "onnection refused",
            "; retrying up to 9 times, with pauses of up to 45.5 s in all",
        ] {
            assert!(line.contains(part), "{arguments:?}: no `{part}` in: {line}");
        }
    }
}

#[test]
fn a_store_that_is_down_is_said_at_the_first_retry() {
    let upstream = format!("--upstream=http://{}", nobody());
    let gateway = Gateway::launch(&find_gateway().unwrap(), [upstream]).unwrap();
    for arguments in reads() {
        let line = first_line(at(gateway.listen(), &arguments));
        for part in [
            "WARN",
            "s3://photos/",
            "OriginUnavailable",
            "; retrying up to 9 times",
        ] {
            assert!(line.contains(part), "{arguments:?}: no `{part}` in: {line}");
        }
    }
}

#[test]
fn a_gateway_that_comes_back_is_said_too() {
    let mut world = World::with_photos(6);
    for more in [&[][..], &["--plain"], &["--auto"]] {
        let listen = world.gateway.listen();
        let restarting = std::thread::spawn(move || world.restart(Duration::from_secs(2)));
        eventually("the gateway is gone", Duration::from_secs(5), || {
            Ok(TcpStream::connect(listen).is_err().then_some(()))
        })
        .unwrap();
        let arguments = ["read", "s3://photos/", "-p", PIPELINE];
        let output = at(listen, &[&arguments, more].concat()).output().unwrap();
        let said = outages(&output);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(said.len(), 2, "{more:?}: {said:?}");
        assert!(said[0].starts_with("retrying up to 9 times"), "{said:?}");
        assert!(said[1].starts_with("answers again, after "), "{said:?}");
        world = restarting.join().unwrap();
    }
}

/// Many requests fail at once, each of them several times: that is one outage.
#[test]
fn an_outage_between_batches_is_said_once() {
    let world = World::with_photos(24);
    let relay = relay(world.gateway.listen(), |earlier| match earlier {
        1..6 => Deed::SlowDown,
        _ => Deed::Pass,
    });
    let arguments = ["read", "s3://photos/", "-p", PIPELINE, "--batch-size", "2"];
    let output = at(relay.address(), &arguments).output().unwrap();
    assert!(output.status.success());
    let said = outages(&output);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with("answers again"), "{said:?}");
}

/// What is refused for good is no outage.
#[test]
fn a_refusal_is_not_retried_and_nothing_is_said_of_an_outage() {
    let refusing = ScriptedOrigin::start(|exchange| {
        exchange.answer("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>")
    })
    .unwrap();
    for arguments in reads() {
        let output = at(refusing.address(), &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(outages(&output), Vec::<String>::new(), "{arguments:?}");
    }
}
