//! Queries that take long to plan: refused if their time has no bound, and no burden for others if it has.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    thread,
    time::Duration,
};

use anyhow::{Result, ensure};
use pushdown_testkit::{Payload, Raw, eventually};

use super::{Lab, SMALL, batch};

/// Clients that send heavy queries.
const CLIENTS: usize = 4;

/// A query that takes dozens of times as long to plan as a plain one.
fn heavy_query() -> String {
    format!("sql('{}')", vec!["select 1 as n"; 120].join(" union all "))
}

/// A query that names the one before it twice, thirty times.
fn bomb() -> String {
    let twice = |index| {
        let before = index - 1;
        format!("t{index} as (select * from t{before} union all select * from t{before})")
    };
    let queries: Vec<_> = (1..30).map(twice).collect();
    format!(
        "sql('with t0 as (select * from object), {} select * from t29')",
        queries.join(", ")
    )
}

#[test]
fn a_query_of_exponential_size_is_refused() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("t.parquet", SMALL.write()?)?;
    let refused = |answer: pushdown_testkit::Response| {
        assert_eq!(
            (answer.status, answer.element("Code").as_deref()),
            (400, Some("InvalidPipeline")),
            "{}",
            answer.text()
        );
        let message = answer.element("Message").unwrap_or_default();
        assert!(
            message.contains("more than 32 tables in FROM, with each name of WITH replaced by its query"),
            "{message}"
        );
    };
    for split in ["full", "1", "smallest"] {
        refused(lab.get("t.parquet", &bomb(), &[("x-pushdown-split", split)])?);
    }
    let head = lab.send("HEAD", "t.parquet", &bomb(), &[])?;
    assert_eq!(head.status, 400, "{head:?}");
    let mut request = batch::request(&lab, "select".parse()?, &["t.parquet".to_owned()])?;
    for table in [None, Some(pushdown::MergeRule::default())] {
        request.table = table;
        let mut json = serde_json::to_value(&request)?;
        json["pipeline"] = bomb().into();
        refused(batch::post(&lab, serde_json::to_vec(&json)?).send(lab.address())?);
    }
    Ok(())
}

/// Planning yields the only thread: each client gets its turn.
#[test]
fn a_query_is_answered_beside_clients_with_heavy_ones() -> Result<()> {
    let lab = Lab::new(&["--threads", "1"])?;
    lab.put("t.parquet", SMALL.write()?)?;
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let pause = || -> Result<()> {
        let start = answered.load(SeqCst);
        eventually("answers to heavy queries", Duration::from_mins(2), || {
            Ok((answered.load(SeqCst) >= start + CLIENTS).then_some(()))
        })
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| -> Result<()> {
                    while !is_over.load(SeqCst) {
                        let answer = lab.get("t.parquet", &heavy_query(), &[])?;
                        ensure!(answer.status == 200, "{answer:?}");
                        answered.fetch_add(1, SeqCst);
                    }
                    Ok(())
                })
            })
            .collect();
        let victim = pause().and_then(|()| {
            let before = answered.load(SeqCst);
            let answer = lab.get("t.parquet", "select(columns=[n], limit=3)", &[])?;
            ensure!(answer.status == 200, "{answer:?}");
            Ok(answered.load(SeqCst) - before)
        });
        is_over.store(true, SeqCst);
        for client in clients {
            client
                .join()
                .map_err(|_| anyhow::anyhow!("a client panicked"))??;
        }
        let others = victim?;
        ensure!(
            others <= 4 * CLIENTS,
            "{others} heavy queries were answered before a small one"
        );
        Ok(())
    })
}

/// All but one wait for the only thread.
#[test]
fn planning_ends_with_its_clients() -> Result<()> {
    let lab = Lab::new(&["--threads", "1"])?;
    lab.put("t.parquet", SMALL.write()?)?;
    let cpu_seconds = || lab.gateway.metric("process_cpu_seconds_total");
    let before = cpu_seconds()?;
    let whole = lab.get("t.parquet", &heavy_query(), &[])?;
    ensure!(whole.status == 200, "{whole:?}");
    let cost = cpu_seconds()? - before;

    let before = cpu_seconds()?;
    let mut abandoned = Vec::new();
    for _ in 0..8 {
        let mut connection = Raw::connect(lab.address())?;
        let request = lab
            .request("GET", "t.parquet")
            .header("x-pushdown-pipeline", &heavy_query());
        connection.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
        abandoned.push(connection);
    }
    eventually("planning to start", Duration::from_mins(1), || {
        Ok((cpu_seconds()? - before > cost / 8.0).then_some(()))
    })?;
    drop(abandoned);
    // It waits for the thread.
    let next = lab.get("t.parquet", "select(columns=[n], limit=3)", &[])?;
    ensure!(next.status == 200, "{next:?}");
    let spent = cpu_seconds()? - before;
    ensure!(spent < 4.0 * cost, "{spent} s, {cost} s for one of eight queries");
    Ok(())
}
