//! Names and errors of a store that try to control the terminal.

use std::{io, process::Output};

use pushdown::shard::TarWriter;
use pushdown_testkit::{Exchange, ScriptedOrigin, ranged};
use serde_json::Value;

use super::cli::pushdown;

/// Sets the title of a terminal, clears it, goes up, ends lines, and reorders text.
const HOSTILE: [&str; 6] = [
    "\u{1b}]0;title\u{7}.jpg",
    "\u{1b}[2J\u{1b}[1A.jpg",
    "a\nerror: forged\r.jpg",
    "\u{9b}31m\u{7f}\u{85}.jpg",
    "\u{202e}gpj.exe\u{2066}.jpg",
    "x\u{2028}y\u{2029}.jpg",
];
const ORDINARY: [&str; 3] = ["dog é.jpg", "犬 👩‍🚀.jpg", "a\\nb.jpg"];

/// An error document, whose code and message do the same.
const ERROR: &str = "<Error><Code>Evil&#x1B;[2J&#x9B;1A</Code><Message>first&#10;error: forged&#13;&#x1B;]0;title&#7;&#x202E;\
                     &#x2028;</Message></Error>";

fn names() -> Vec<&'static str> {
    let mut names = [&HOSTILE[..], &ORDINARY].concat();
    names.sort_unstable();
    names
}

/// Text as character references, since XML has no control characters.
fn as_xml(text: &str) -> String {
    let references = text
        .chars()
        .map(|character| format!("&#x{:X};", u32::from(character)));
    references.collect::<Vec<_>>().concat()
}

fn answer_list(exchange: &mut Exchange) -> io::Result<()> {
    let objects: Vec<_> = names()
        .iter()
        .map(|name| format!("<Contents><Key>p/{}</Key><Size>3</Size></Contents>", as_xml(name)))
        .collect();
    let objects = objects.concat();
    let list = format!("<ListBucketResult><IsTruncated>false</IsTruncated>{objects}</ListBucketResult>");
    exchange.answer("200 OK", &list)
}

fn is_list(exchange: &Exchange) -> bool {
    exchange
        .head
        .lines()
        .next()
        .unwrap_or_default()
        .contains("list-type=2")
}

fn run(origin: &ScriptedOrigin, arguments: &[&str]) -> Output {
    let endpoint = format!("http://{}", origin.address());
    pushdown(arguments)
        .env("PUSHDOWN_ENDPOINT", endpoint)
        .output()
        .unwrap()
}

/// The lines of an output, in which no character controls a terminal.
fn lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8(output.to_vec()).unwrap();
    let controls = |character: char| {
        character.is_control() && character != '\n'
            || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(controls), "{text:?}");
    text.lines().map(str::to_owned).collect()
}

fn exact_names(output: &Output, field: &str) -> Vec<String> {
    lines(&output.stdout);
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names = listed.as_array().unwrap().iter();
    names
        .map(|object| object[field].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn keys_are_escaped_and_exact_in_json() {
    let store = ScriptedOrigin::start(answer_list).unwrap();
    let output = run(&store, &["ls", "s3://b/p/"]);
    let listed = lines(&output.stdout);
    assert_eq!(listed.len(), names().len(), "{listed:?}");
    for name in ORDINARY {
        assert!(listed.contains(&format!("3  p/{name}")), "{name}: {listed:?}");
    }
    assert!(
        listed.contains(&r"3  p/a\nerror: forged\r.jpg".to_owned()),
        "{listed:?}"
    );
    let output = run(&store, &["ls", "s3://b/p/", "--json"]);
    let expected: Vec<_> = names().iter().map(|name| format!("p/{name}")).collect();
    assert_eq!(exact_names(&output, "key"), expected);
}

#[test]
fn names_of_members_are_escaped_and_exact_in_json() {
    let mut shard = TarWriter::new(Vec::new());
    for name in names() {
        shard.append(name, b"abc").unwrap();
    }
    let shard = shard.finish().unwrap();
    let store = ScriptedOrigin::start(move |exchange| ranged(exchange, &shard, "one")).unwrap();
    let output = run(&store, &["ls", "--members", "s3://b/s.tar"]);
    let listed = lines(&output.stdout);
    assert_eq!(listed.len(), 1 + names().len(), "{listed:?}");
    for name in ORDINARY {
        assert!(
            listed.iter().any(|line| line.ends_with(&format!("  {name}"))),
            "{name}"
        );
    }
    let output = run(&store, &["ls", "--members", "s3://b/s.tar", "--json"]);
    assert_eq!(exact_names(&output, "name"), names());
}

/// Each command reports the refusal on one line.
#[test]
fn error_documents_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index.parquet");
    let store = ScriptedOrigin::start(|exchange| exchange.answer("403 Forbidden", ERROR)).unwrap();
    for arguments in [
        &["ls", "s3://b/p/"][..],
        &["ls", "--members", "s3://b/s.tar"],
        &["get", "s3://b/x.jpg", "-p", "decode"],
        &["get", "s3://b/x.jpg", "-p", "decode", "--plain"],
        &["get", "s3://b/x.csv", "-p", "select"],
        &["schema", "s3://b/x.parquet"],
        &["read", "s3://b/p/", "-p", "decode", "--plain"],
        &["explain", "s3://b/p/", "-p", "decode"],
        &["index", "s3://b/s.tar", "-o", index.to_str().unwrap()],
        &["pack", "s3://b/p/", "-o", "s3://b/x/%d.tar"],
        &["store-check", "s3://b/x"],
    ] {
        let output = run(&store, arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = lines(&output.stderr);
        assert_eq!(stderr.len(), 1, "{arguments:?}: {stderr:?}");
        assert!(
            stderr[0].starts_with("error: ") && stderr[0].contains(r"Evil\u{1b}[2J\u{9b}1A"),
            "{arguments:?}: {stderr:?}"
        );
    }
}

/// A line for each sample, and one for each sample that could not be measured.
#[test]
fn errors_of_samples_are_lines() {
    let store = ScriptedOrigin::start(|exchange| {
        if is_list(exchange) {
            answer_list(exchange)
        } else {
            exchange.answer("403 Forbidden", ERROR)
        }
    })
    .unwrap();
    for arguments in [
        ["read", "s3://b/p/", "-p", "decode", "--plain"],
        ["explain", "s3://b/p/", "-p", "decode", "--json"],
    ] {
        let output = run(&store, &arguments);
        let stderr = lines(&output.stderr);
        let refused = stderr.iter().filter(|line| line.contains("Evil"));
        assert_eq!(refused.count(), names().len(), "{arguments:?}: {stderr:?}");
        for line in &stderr {
            assert!(
                line.starts_with("p/") || line.starts_with("error: no sample"),
                "{line}"
            );
        }
    }
}

/// A retry is logged with the refusal.
#[test]
fn the_log_has_a_line_for_an_event() {
    let store = ScriptedOrigin::start(|exchange| match exchange.earlier_requests {
        0 => exchange.answer("503 Slow Down", ERROR),
        _ => answer_list(exchange),
    })
    .unwrap();
    let output = run(&store, &["ls", "s3://b/p/"]);
    let stderr = lines(&output.stderr);
    assert!(output.status.success(), "{stderr:?}");
    let logged = stderr.iter().filter(|line| line.contains(" WARN ")).count();
    assert!(logged == 1 && stderr[0].contains(r"Evil\u{1b}[2J"), "{stderr:?}");
    assert!(
        stderr
            .iter()
            .all(|line| line.contains(" WARN ") || line.contains(" INFO ")),
        "{stderr:?}"
    );
}

/// A name that a store has listed may be an argument.
#[test]
fn arguments_are_escaped_in_errors() {
    for name in HOSTILE {
        for arguments in [["get", name, "-p", "decode"], ["get", "s3://b/x", "-p", name]] {
            let output = pushdown(&arguments).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{arguments:?}");
            lines(&output.stderr);
        }
    }
}
