//! The body of a batch request is bounded in time and in memory before anything of it is parsed.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Raw, Request, eventually};

use super::{Lab, batch, photo};

const PATIENCE: Duration = Duration::from_secs(30);

/// The head of a batch request with a body of so many bytes.
fn head(lab: &Lab, length: u64) -> Vec<u8> {
    Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &lab.address().to_string())
        .header("Content-Length", &length.to_string())
        .head()
}

/// Connections that begin a batch request and send nothing of it make room for others.
#[test]
fn silent_bodies_shut_nobody_out() -> Result<()> {
    let lab = Lab::new(&["--max-connections=8", "--batch-body-idle-timeout=300ms"])?;
    let mut silent = Vec::new();
    for _ in 0..8 {
        let mut raw = Raw::connect(lab.address())?;
        raw.write(&head(&lab, 4 << 20))?;
        silent.push(raw);
    }
    lab.put("photo.jpg", photo(20, 20, "jpeg"))?;
    for mut raw in silent {
        let answer = raw.read("POST")?;
        ensure!(
            answer.element("Code").as_deref() == Some("RequestTimeout"),
            "{answer:?}"
        );
        ensure!(raw.is_closed()?);
    }
    Ok(())
}

/// A client that sends a byte now and then is never idle for long, and is cut off all the same.
#[test]
fn a_slow_body_has_a_deadline() -> Result<()> {
    let lab = Lab::new(&["--batch-body-idle-timeout=20s", "--batch-body-timeout=500ms"])?;
    let mut raw = Raw::connect(lab.address())?;
    raw.write(&head(&lab, 1000))?;
    raw.write(b"{")?;
    let answer = raw.read("POST")?;
    ensure!(
        answer.element("Message").as_deref()
            == Some("the batch request is incomplete: expected all of it within 500ms"),
        "{answer:?}"
    );
    Ok(())
}

/// Bodies count against the memory budget while they arrive: what does not fit is 503 at once.
#[test]
fn bodies_are_within_the_memory_budget() -> Result<()> {
    const MIB: u64 = 1 << 20;
    let lab = Lab::new(&["--memory-budget=32MiB", "--queue-wait=200ms"])?;
    lab.put("photo.jpg", photo(20, 20, "jpeg"))?;
    let before = lab.gateway.peak_memory()?;
    let mut large = Vec::new();
    for _ in 0..100 {
        let mut raw = Raw::connect(lab.address())?;
        raw.write(&head(&lab, 4 * MIB))?;
        // All but its last byte.
        raw.write(&vec![b' '; (4 << 20) - 1])?;
        large.push(raw);
    }
    let grown = lab.gateway.peak_memory()? - before;
    ensure!(grown < 96 * MIB, "{} MiB", grown / MIB);
    let held = lab.gateway.metric("pushdown_permits_in_use_bytes")?;
    ensure!(held > 0.0 && held <= f64::from(32 << 20), "{held}");
    drop(large);
    eventually("all memory is back", PATIENCE, || {
        Ok((lab.gateway.metric("pushdown_permits_in_use_bytes")?.abs() < 1.0).then_some(()))
    })?;
    let request = batch::request(&lab, "decode".parse()?, &["photo.jpg".to_owned()])?;
    ensure!(batch::rows(batch::send(&lab, &request)?)?[0].value.is_ok());
    Ok(())
}
