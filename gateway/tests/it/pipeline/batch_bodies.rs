//! The body of a batch request is limited in time and memory before it is parsed.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Raw, Request, eventually};

use super::{Lab, batch, photo};

const TIMEOUT: Duration = Duration::from_secs(30);

/// The head of a batch request with a body of `length` bytes.
fn head(lab: &Lab, length: u64) -> Vec<u8> {
    Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &lab.address().to_string())
        .header("Content-Length", &length.to_string())
        .head()
}

/// Connections that begin a batch request and send no body are closed, so that other clients can connect.
#[test]
fn silent_bodies_do_not_block_other_clients() -> Result<()> {
    let lab = Lab::new(&[
        "--max-connections=8",
        "--max-connections-per-client=9",
        "--batch-body-idle-timeout=300ms",
    ])?;
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

/// A client that sends one byte now and then is never idle for long; the deadline still ends its request.
#[test]
fn a_slow_body_is_cut_at_its_deadline() -> Result<()> {
    let lab = Lab::new(&["--batch-body-idle-timeout=20s", "--batch-body-timeout=500ms"])?;
    let mut raw = Raw::connect(lab.address())?;
    raw.write(&head(&lab, 1000))?;
    raw.write(b"{")?;
    let answer = raw.read("POST")?;
    ensure!(
        answer.element("Message").as_deref() == Some("incomplete body: expected the whole body within 500ms"),
        "{answer:?}"
    );
    Ok(())
}

/// Bodies count against the memory budget while they are received: a body that does not fit is refused with 503.
#[test]
fn bodies_stay_within_the_memory_budget() -> Result<()> {
    const MIB: u64 = 1 << 20;
    let lab = Lab::new(&["--memory-budget=32MiB", "--queue-wait=200ms"])?;
    lab.put("photo.jpg", photo(20, 20, "jpeg"))?;
    let before = lab.gateway.peak_memory()?;
    let mut large = Vec::new();
    for _ in 0..100 {
        let mut raw = Raw::connect(lab.address())?;
        raw.write(&head(&lab, 4 * MIB))?;
        // All bytes but the last.
        raw.write(&vec![b' '; (4 << 20) - 1])?;
        large.push(raw);
    }
    let grown = lab.gateway.peak_memory()? - before;
    ensure!(grown < 96 * MIB, "{} MiB", grown / MIB);
    let in_use = lab.gateway.metric("pushdown_memory_reserved_bytes")?;
    ensure!(in_use > 0.0 && in_use <= f64::from(32 << 20), "{in_use}");
    drop(large);
    eventually("all memory is released", TIMEOUT, || {
        Ok((lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0).then_some(()))
    })?;
    let request = batch::request(&lab, "decode".parse()?, &["photo.jpg".to_owned()])?;
    ensure!(batch::rows(batch::send(&lab, &request)?)?[0].value.is_ok());
    Ok(())
}

/// Bodies that stand still give way once others wait for their memory: a victim gets its answer within its wait for memory, long before
/// any of them is idle for too long. Small batches do not even wait for large ones.
#[test]
fn bodies_that_stand_still_do_not_delay_others() -> Result<()> {
    const KIB: usize = 1 << 10;
    let flags = [
        "--memory-budget=64MiB",
        "--batch-body-idle-timeout=60s",
        "--queue-wait=10s",
    ];
    let lab = Lab::new(&flags)?;
    lab.put("photo.jpg", photo(20, 20, "jpeg"))?;
    // Large bodies may have 16 MiB together, and small ones 4 MiB.
    for (length, count) in [(4 * KIB * KIB, 4), (200 * KIB, 20)] {
        let mut open = Vec::new();
        for _ in 0..count {
            let mut raw = Raw::connect(lab.address())?;
            raw.write(&head(&lab, length as u64))?;
            raw.write(&vec![b' '; length - 1])?;
            open.push(raw);
        }
        let request = batch::request(&lab, "decode".parse()?, &["photo.jpg".to_owned()])?;
        let rows = batch::rows(batch::send(&lab, &request)?)?;
        ensure!(rows[0].value.is_ok(), "{length}: {rows:?}");
        drop(open);
    }
    Ok(())
}
