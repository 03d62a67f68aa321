//! Answers that end early: no file is left, and an old one stays as it was.

use std::{
    fs, io,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use pushdown_testkit::{Exchange, ScriptedOrigin};

use super::cli::pushdown;

const OLD: &str = "yesterday's bytes";

/// Ways to end a body of 1000 bytes early.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// `Content-Length` is larger than what is sent.
    Length,
    /// The last chunk is missing.
    NoLastChunk,
    /// The connection ends within a chunk.
    PartOfChunk,
    /// What follows the first chunk is none.
    NoChunk,
}

const FAULTS: [Fault; 4] = [
    Fault::Length,
    Fault::NoLastChunk,
    Fault::PartOfChunk,
    Fault::NoChunk,
];

/// Sends a value of stage 1, or an object of a store, that ends early, and closes the connection.
fn send_broken(exchange: &mut Exchange, fault: Fault) -> io::Result<()> {
    let text = "n\n".to_owned() + &"1\n".repeat(499);
    let (framing, body) = match fault {
        Fault::Length => ("Content-Length: 2000", text),
        Fault::NoLastChunk => ("Transfer-Encoding: chunked", format!("3e8\r\n{text}\r\n")),
        Fault::PartOfChunk => ("Transfer-Encoding: chunked", format!("7d0\r\n{text}")),
        Fault::NoChunk => ("Transfer-Encoding: chunked", format!("3e8\r\n{text}\r\nzz\r\n")),
    };
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nContent-Type: text/csv\r\nx-pushdown-stage: 1\r\n{framing}\r\n\r\n{body}"
    ))?;
    exchange.close();
    Ok(())
}

fn command(origin: &ScriptedOrigin, arguments: &[&str]) -> Command {
    let mut command = pushdown(arguments);
    command.env("PUSHDOWN_ENDPOINT", format!("http://{}", origin.address()));
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn names_in(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    names
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Runs the command into a file that does not exist, and into one that does. Returns what it writes to stderr.
fn fails_and_leaves_nothing(origin: &ScriptedOrigin, arguments: &[&str], name: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    let mut errors = Vec::new();
    for old in [None, Some(OLD)] {
        if let Some(old) = old {
            fs::write(&file, old).unwrap();
        }
        let output = command(origin, arguments).arg("-o").arg(&file).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(fs::read_to_string(&file).ok().as_deref(), old, "{arguments:?}");
        assert_eq!(names_in(folder.path()).len(), old.iter().len(), "{arguments:?}");
        errors.push(stderr(&output));
    }
    errors
}

/// Rows are not requested again once they have begun.
#[test]
fn rows_that_end_early_leave_no_file() {
    for fault in FAULTS {
        let gateway = ScriptedOrigin::start(move |exchange| send_broken(exchange, fault)).unwrap();
        let arguments = ["get", "s3://b/t.csv", "-p", "select", "--split", "full"];
        for error in fails_and_leaves_nothing(&gateway, &arguments, "x.csv") {
            assert!(
                error.ends_with("error: the answer broke off\n"),
                "{fault:?}: {error}"
            );
        }
        let output = command(&gateway, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{fault:?}");
        assert!(
            stderr(&output).ends_with("error: the answer broke off\n"),
            "{fault:?}"
        );
    }
}

/// Nobody knows where such an answer ends: a store or a proxy that closes the connection early would cut the object.
#[test]
fn an_answer_without_a_length_is_refused() {
    let origin = ScriptedOrigin::start(|exchange| {
        exchange.close();
        exchange.send("HTTP/1.1 200 OK\r\nETag: \"one\"\r\nx-pushdown-stage: 1\r\n\r\nn\n1\n")
    })
    .unwrap();
    for (name, arguments) in [
        (
            "x.csv",
            &["get", "s3://b/t.csv", "-p", "select", "--split", "full"][..],
        ),
        ("x.npy", &["get", "s3://b/x.jpg", "-p", "decode | resize(8, 8)"]),
        (
            "x.npy",
            &["get", "s3://b/x.jpg", "-p", "decode", "--plain", "--split", "0"],
        ),
    ] {
        for error in fails_and_leaves_nothing(&origin, arguments, name) {
            assert!(
                error.contains("the answer may be incomplete: expected Content-Length"),
                "{arguments:?}: {error}"
            );
        }
    }
}

/// A value is requested again, until the gateway refuses it.
#[test]
fn a_value_that_ends_early_leaves_no_file() {
    for plain in [&[][..], &["--plain", "--split", "0"]] {
        for fault in FAULTS {
            let origin = ScriptedOrigin::start(move |exchange| match exchange.earlier_requests % 3 {
                2 => exchange.answer("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>"),
                _ => send_broken(exchange, fault),
            })
            .unwrap();
            let arguments = [&["get", "s3://b/x.jpg", "-p", "decode | resize(8, 8)"], plain].concat();
            for error in fails_and_leaves_nothing(&origin, &arguments, "x.npy") {
                assert!(
                    error.contains("error: s3://b/x.jpg: 404 NoSuchKey"),
                    "{fault:?}: {error}"
                );
            }
            assert_eq!(origin.requests().len(), 6, "{fault:?}");
        }
    }
}

#[test]
fn a_shard_of_objects_that_end_early_is_not_written() {
    let list =
        "<ListBucketResult><Contents><Key>p/a.jpg</Key><Size>1000</Size></Contents></ListBucketResult>";
    let store = ScriptedOrigin::start(move |exchange| match exchange.earlier_requests {
        0 => exchange.answer("200 OK", list),
        1 => send_broken(exchange, Fault::Length),
        _ => exchange.answer("403 Forbidden", "<Error><Code>AccessDenied</Code></Error>"),
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let shards = folder.path().join("%d.tar");
    let output = command(&store, &["pack", "s3://b/p/", "-o"])
        .arg(shards)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("403 AccessDenied"),
        "{}",
        stderr(&output)
    );
    assert!(names_in(folder.path()).is_empty());
}

/// The same command with the default actions for signals: a shell that starts the tests in the background has them ignore SIGINT,
/// which the program respects.
fn with_default_signals(command: &Command) -> Command {
    let mut with_default = Command::new("env");
    with_default.arg("--default-signal").arg(command.get_program());
    with_default.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => with_default.env(name, value),
            None => with_default.env_remove(name),
        };
    }
    with_default
}

#[test]
fn a_signal_leaves_no_part_of_a_file() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // The gateway sends half of the rows, and then waits.
        let gateway = ScriptedOrigin::start(|exchange| {
            exchange.send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nx-pushdown-stage: 1\r\nContent-Length: 1000\r\n\r\nn\n1\n",
            )?;
            exchange.wait_for_close().map(drop)
        })
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.csv");
        fs::write(&file, OLD).unwrap();
        let mut get = command(
            &gateway,
            &["get", "s3://b/t.csv", "-p", "select", "--split", "full", "-o"],
        );
        let mut child = with_default_signals(get.arg(&file))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while names_in(folder.path()).len() < 2 || gateway.requests().is_empty() {
            assert_eq!(child.try_wait().unwrap(), None, "it waits for the other half");
            thread::sleep(Duration::from_millis(10));
        }
        let sent = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(child.id().to_string())
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(names_in(folder.path()), ["x.csv"], "{signal}");
        assert_eq!(fs::read_to_string(&file).unwrap(), OLD, "{signal}");
    }
}
