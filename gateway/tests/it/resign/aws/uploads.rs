//! Uploads to a bucket of another region that the gateway has not learnt yet, and large bodies.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Payload, Raw};

use super::{Lab, check_slow_down, refusals};
use crate::it::resign::{
    BUCKET,
    bodies::{PAYLOADS, bytes, upload},
};

const BODY_BYTES: usize = 70_001;

/// The store refuses before it asks for the body, so the gateway still has all of it.
#[test]
fn an_upload_that_waits_is_retried() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for (number, payload) in PAYLOADS.into_iter().enumerate() {
        let bucket = format!("/waits-{number}");
        lab.create_elsewhere(&bucket)?;
        let target = format!("{bucket}/new");
        let request = upload(&lab.through, &target, payload, BODY_BYTES)?.header("Expect", "100-continue");
        let mut raw = Raw::connect(lab.through.address)?;
        raw.write(&request.head())?;
        let head = raw.head()?;
        ensure!(head.status == 100, "{payload:?}: {head:?}");
        raw.write(&request.body)?;
        let answer = raw.read("PUT")?;
        ensure!(answer.status == 200, "{payload:?}: {}", answer.text());
        lab.check_object(&target, &bytes(BODY_BYTES))
            .with_context(|| format!("{payload:?}"))?;
        assert_eq!(refusals(&lab.front.record()), number + 1, "{payload:?}");
    }
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

/// Bytes that have left cannot be sent again. The client sends them again, to a gateway that has learnt the region.
#[test]
fn an_upload_that_does_not_wait_succeeds_at_the_second_attempt() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    for (number, payload) in PAYLOADS.into_iter().enumerate() {
        let bucket = format!("/hurries-{number}");
        lab.create_elsewhere(&bucket)?;
        let target = format!("{bucket}/new");
        let first = upload(&lab.through, &target, payload, BODY_BYTES)?.send(lab.through.address)?;
        check_slow_down(&first).with_context(|| format!("{payload:?}"))?;
        assert_eq!(lab.direct.call("GET", &target)?.status, 404, "{payload:?}");
        let second = upload(&lab.through, &target, payload, BODY_BYTES)?.send(lab.through.address)?;
        ensure!(second.status == 200, "{payload:?}: {}", second.text());
        lab.check_object(&target, &bytes(BODY_BYTES))
            .with_context(|| format!("{payload:?}"))?;
    }
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

#[test]
fn an_empty_upload_is_retried() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    lab.create_elsewhere("/elsewhere")?;
    let answer = lab.through.put("/elsewhere/empty", "")?;
    ensure!(answer.status == 200, "{}", answer.text());
    lab.check_object("/elsewhere/empty", b"")
}

#[test]
fn large_bodies_pass_both_ways() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let length = 32 << 20;
    for payload in [Payload::Signed, Payload::Unsigned, Payload::Trailer] {
        let target = format!("{BUCKET}/{payload:?}");
        let answer = upload(&lab.through, &target, payload, length)?.send(lab.through.address)?;
        ensure!(answer.status == 200, "{payload:?}: {}", answer.text());
        let answer = lab.through.call("GET", &target)?;
        ensure!(
            answer.status == 200 && answer.body == bytes(length),
            "{payload:?}: another body"
        );
    }
    Ok(())
}
