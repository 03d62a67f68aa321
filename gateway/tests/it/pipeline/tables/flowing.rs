//! Rows flow as they are read, and no faster than they are taken.

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

const ALL: &str = "select()";
const LONG: Duration = Duration::from_secs(30);

/// Row groups of 1.6 MB, twenty of them.
const DEEP: Parquet = Parquet {
    rows: 400_000,
    noise: 8,
    row_group: 20_000,
};

#[test]
fn the_first_rows_leave_before_the_last_are_read() -> Result<()> {
    let object = WIDE.write()?;
    let released = Arc::new(AtomicBool::new(false));
    let release = Arc::clone(&released);
    // The end, three of ten row groups: the reads of the third wait.
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
    client.write(&get(&gateway, super::FEW).head())?;
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
fn who_takes_nothing_stops_the_scan_and_who_leaves_ends_it() -> Result<()> {
    let object = DEEP.write()?;
    let groups = DEEP.rows / DEEP.row_group;
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one"))?;
    let gateway = gateway_for(&origin, &["--send-stall-timeout=60s"])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway, ALL).head())?;
    assert_eq!(client.begin("GET")?.head.status, 200);
    // What the sockets' buffers and the channel take, and then no more.
    let mut reads = 0;
    eventually("the scan stands still", LONG, || {
        thread::sleep(Duration::from_millis(300));
        let now = origin.requests().len();
        let still = now == reads;
        reads = now;
        Ok(still.then_some(()))
    })?;
    assert!(
        reads < groups,
        "{reads} reads of {groups} row groups, and nobody took a row"
    );
    assert!(gateway.metric("pushdown_permits_in_use_bytes")? > 0.0);
    drop(client);
    eventually("the memory is back", LONG, || {
        Ok((gateway.metric("pushdown_permits_in_use_bytes")? < 1.0).then_some(()))
    })?;
    assert_eq!(origin.requests().len(), reads, "the scan went on for nobody");
    Ok(())
}

#[test]
fn who_takes_nothing_for_too_long_is_cut_off() -> Result<()> {
    let object = DEEP.write()?;
    let origin = ScriptedOrigin::start(move |exchange| ranged(exchange, &object, "one"))?;
    let gateway = gateway_for(&origin, &["--send-stall-timeout=1s"])?;
    let mut client = Raw::connect(gateway.listen())?;
    client.write(&get(&gateway, ALL).head())?;
    assert_eq!(client.begin("GET")?.head.status, 200);
    eventually("the memory is back", LONG, || {
        Ok((gateway.metric("pushdown_permits_in_use_bytes")? < 1.0).then_some(()))
    })?;
    assert!(client.begin("GET").is_err() || client.is_closed()?);
    Ok(())
}

#[test]
fn a_full_budget_is_503_and_rows_on_their_way_come_whole() -> Result<()> {
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
        client.write(&get(&gateway, ALL).head())?;
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

/// A text that inflates to two hundred times its size keeps the only thread busy for as long as it may.
#[test]
fn a_scan_that_never_waits_leaves_others_their_turns_and_ends_at_the_deadline() -> Result<()> {
    let lab = Lab::new(&["--threads=1", "--request-deadline=3s"])?;
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
        let answer = long.join().map_err(|_| anyhow!("the client gave up"))??;
        ensure!(answer.status == 504, "{}: {}", answer.status, answer.text());
        ensure!(served > 10, "{served} others were served meanwhile");
        Ok(())
    })
}
