//! How many cores readers could use: stated by batches, shown by a metric and on the status page.

use anyhow::{Result, ensure};
use pushdown::wire::{BatchRequest, Demand};
use pushdown_testkit::Keys;
use serde_json::{Value, json};

use super::{Lab, SHORT, batch, photo};

/// A batch of one photo, signed by `signer`, with the demand of a reader.
fn request(lab: &Lab, signer: &Keys, reader: &str, cores: f64) -> Result<BatchRequest> {
    let keys = ["cat.jpg".to_owned()];
    let request = batch::request_signed_by(signer, lab, SHORT.parse()?, &keys)?;
    let reader = reader.to_owned();
    let demand = Some(Demand { reader, cores });
    Ok(BatchRequest { demand, ..request })
}

/// Sends a batch, whose sample is read.
fn send(lab: &Lab, reader: &str, cores: f64) -> Result<()> {
    let answer = batch::send(lab, &request(lab, &lab.keys, reader, cores)?)?;
    let rows = batch::rows(answer)?;
    ensure!(rows.len() == 1 && rows[0].value.is_ok(), "{rows:?}");
    Ok(())
}

fn lab(flags: &[&str]) -> Result<Lab> {
    let lab = Lab::new(flags)?;
    lab.put("cat.jpg", photo(100, 80, "jpeg"))?;
    Ok(lab)
}

fn demand_cores(lab: &Lab) -> Result<f64> {
    lab.gateway.metric("pushdown_demand_cores")
}

fn status(lab: &Lab) -> Result<Value> {
    Ok(serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?)
}

#[test]
fn the_latest_demands_of_readers_are_added() -> Result<()> {
    let lab = lab(&["--replica-id=pushdown-0"])?;
    assert!(
        lab.gateway
            .page("/metrics")?
            .text()
            .contains("pushdown_demand_cores 0.0\n")
    );
    for (reader, cores, sum) in [("one", 3.0, 3.0), ("two", 1.5, 4.5), ("one", 0.25, 1.75)] {
        send(&lab, reader, cores)?;
        let found = demand_cores(&lab)?;
        ensure!((found - sum).abs() < 1e-9, "{reader}: {found}, expected {sum}");
    }
    let status = status(&lab)?;
    assert_eq!(
        status["demand"],
        json!([{"tenant": "pushdowntestkey", "readers": 2, "cores": 1.75}])
    );
    assert_eq!(status["replica"], "pushdown-0");
    let info = lab
        .gateway
        .metric("pushdown_replica_info{replica=\"pushdown-0\"}")?;
    ensure!((info - 1.0).abs() < 1e-9, "{info}");
    Ok(())
}

/// A limit of law 5.
#[test]
fn a_tenant_adds_a_bounded_number_of_cores() -> Result<()> {
    for (flags, expected) in [(&[][..], 64.0), (&["--max-demand-cores-per-tenant=5"], 5.0)] {
        let lab = lab(flags)?;
        send(&lab, "one", 1e6)?;
        send(&lab, "two", 7.0)?;
        let found = demand_cores(&lab)?;
        ensure!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }
    Ok(())
}

#[test]
fn the_demand_of_a_caller_that_nobody_verified_does_not_count() -> Result<()> {
    let lab = lab(&[])?;
    for signer in [
        Keys::new(&lab.keys.access, "another-secret-of-tests"),
        Keys::new("nobodysaccesskey", "another-secret-of-tests"),
    ] {
        let answer = batch::send(&lab, &request(&lab, &signer, "one", 3.0)?)?;
        let rows = batch::rows(answer)?;
        ensure!(rows.len() == 1 && rows[0].value.is_err(), "{rows:?}");
    }
    let mut invalid = request(&lab, &lab.keys, "one", 3.0)?;
    invalid.demand = Some(Demand {
        reader: "o n e".to_owned(),
        cores: 3.0,
    });
    let answer = batch::send(&lab, &invalid)?;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let found = demand_cores(&lab)?;
    ensure!(found.abs() < 1e-9, "{found}");
    assert_eq!(status(&lab)?["demand"], json!([]));
    Ok(())
}
