//! The front as a process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use pushdown_testkit::{Gateway, Payload, find_gateway};
use serde_json::Value;

use super::{REGION, fetch_session, request, store_keys};

/// A process, killed when dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_process_prints_its_urls_and_serves() -> Result<()> {
    let keys = store_keys();
    let store = Gateway::embedded(&find_gateway()?, &keys, [""; 0])?;
    let address = store.store().context("no address of the store")?;
    let child = Command::new(env!("CARGO_BIN_EXE_aws-front"))
        .args([&address.to_string(), &keys.access, &keys.secret, REGION, "600"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut process = Process(child);
    let mut line = String::new();
    let output = process.0.stdout.take().context("no output")?;
    BufReader::new(output).read_line(&mut line)?;
    let urls: Value = serde_json::from_str(&line)?;
    let url = urls["url"].as_str().context("no url")?;
    let port = url
        .strip_prefix("http://s3.us-east-1.localhost:")
        .context("another host")?;
    let front = format!("127.0.0.1:{port}").parse()?;
    let credentials_url = urls["credentials_url"].as_str().context("no credentials_url")?;
    let session = fetch_session(credentials_url)?;
    let answer = session
        .sign(request("PUT", "/"), Payload::Unsigned)?
        .send(front)?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    Ok(())
}

#[test]
fn missing_arguments_are_an_error() -> Result<()> {
    let output = Command::new(env!("CARGO_BIN_EXE_aws-front"))
        .arg("127.0.0.1:1")
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && text.contains("found 1 arguments"),
        "{text}"
    );
    Ok(())
}
