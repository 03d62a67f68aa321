//! Rows are streamed while the object is read, with backpressure from the client.

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use flate2::{Compression, write::GzEncoder};
use pushdown_testkit::{Parquet, Raw, ScriptedOrigin, eventually, first_byte, ranged};

use super::{Lab, SMALL, WIDE, get};
use crate::it::gateway_for;

const ALL_ROWS: &str = "select()";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Twenty row groups of 1.6 MB each.
const DEEP: Parquet = Parquet {
    rows: 400_000,
    noise: 8,
    row_group: 20_000,
};

#[test]
fn the_first_rows_are_sent_before_the_last_are_read() -> Result<()> {
    let object = WIDE.write()?;
    let released = Arc::new(AtomicBool::new(false));
    let release = Arc::clone(&released);
    // The scan reads the footer and three of ten row groups. Reads from the third row group on wait for `release`.
    let third = object.len() * 2 / 10;
    let origin = ScriptedOrigin::start(move |exchange| {
        let waits = first_byte(exchange).is_some_and(|first| first >= third);
        while waits && !released.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(5));
        }
        ranged(exchange, &object, "one")
    })?;
    let gateway = gateway_for(&origin, &[])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway, super::FILTER).head())?;
    let mut answer = client.begin("GET")?;
    assert_eq!(answer.head.status, 200);
    // The schema, then rows.
    for _ in 0..2 {
        answer.chunk()?.context("the answer has ended")?;
    }
    assert!(!release.swap(true, Ordering::AcqRel));
    let rest = answer.finish()?;
    assert!(rest.body.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]));
    Ok(())
}

#[test]
fn backpressure_pauses_the_scan_and_a_disconnect_ends_it() -> Result<()> {
    let object = DEEP.write()?;
    let groups = DEEP.rows / DEEP.row_group;
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one"))?;
    let gateway = gateway_for(&origin, &["--send-stall-timeout=60s"])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway, ALL_ROWS).head())?;
    assert_eq!(client.begin("GET")?.head.status, 200);
    // The scan fills the socket buffers and the channel, then it stops.
    let mut reads = 0;
    eventually("the scan stops", TIMEOUT, || {
        thread::sleep(Duration::from_millis(300));
        let count = origin.requests().len();
        let stopped = count == reads;
        reads = count;
        Ok(stopped.then_some(()))
    })?;
    assert!(
        reads < groups,
        "{reads} reads of {groups} row groups although the client read no row"
    );
    assert!(gateway.metric("pushdown_memory_reserved_bytes")? > 0.0);
    drop(client);
    eventually("the memory is released", TIMEOUT, || {
        Ok((gateway.metric("pushdown_memory_reserved_bytes")? < 1.0).then_some(()))
    })?;
    assert_eq!(
        origin.requests().len(),
        reads,
        "the scan continued after the disconnect"
    );
    Ok(())
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() -> Result<()> {
    let object = DEEP.write()?;
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one"))?;
    let gateway = gateway_for(&origin, &["--send-stall-timeout=1s"])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway, ALL_ROWS).head())?;
    assert_eq!(client.begin("GET")?.head.status, 200);
    eventually("the memory is released", TIMEOUT, || {
        Ok((gateway.metric("pushdown_memory_reserved_bytes")? < 1.0).then_some(()))
    })?;
    assert!(client.begin("GET").is_err() || client.is_closed()?);
    Ok(())
}

#[test]
fn a_full_memory_budget_is_503_for_new_scans() -> Result<()> {
    let object = DEEP.write()?;
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one"))?;
    let gateway = gateway_for(
        &origin,
        &[
            "--memory-budget=32MiB",
            "--queue-wait=200ms",
            "--send-stall-timeout=60s",
        ],
    )?;
    let mut clients = Vec::new();
    let refused = loop {
        let mut client = Raw::connect(gateway.listen())?;
        client.write(&get(&gateway, ALL_ROWS).head())?;
        let head = client.head()?;
        if head.status != 200 {
            break head;
        }
        clients.push(client);
        assert!(clients.len() < 32, "never overloaded");
    };
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert!(!clients.is_empty());
    Ok(())
}

/// A compressed text that inflates to 200 times its size keeps the only thread busy until the deadline.
#[test]
fn a_cpu_bound_scan_yields_to_others_and_ends_at_its_deadline() -> Result<()> {
    let lab = Lab::new(&["--threads=1", "--request-deadline=5s"])?;
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all("1234567\n".repeat(2 << 20).as_bytes())?;
    let member = member.finish()?;
    let text = member.repeat(256);
    lab.put("long.csv.gz", text)?;
    lab.put("t.parquet", SMALL.write()?)?;
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let long = scope.spawn(|| {
            let answer = lab.get(
                "long.csv.gz",
                "sql('select count(*) from object', header=false)",
                &[],
            );
            ended.store(true, Ordering::Release);
            answer
        });
        let mut served = 0;
        while !ended.load(Ordering::Acquire) {
            let answer = lab.get("t.parquet", "select(columns=[n], limit=1)", &[])?;
            ensure!(answer.status == 200, "{}", answer.text());
            served += 1;
        }
        let answer = long.join().map_err(|_| anyhow!("the client panicked"))??;
        ensure!(answer.status == 504, "{}: {}", answer.status, answer.text());
        // Without yielding the first of them ends with the scan.
        ensure!(served > 2, "only {served} other requests were served");
        Ok(())
    })
}
