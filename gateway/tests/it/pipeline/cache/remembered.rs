//! `--auth-cache-ttl`: the authorization of a byte-identical presigned request is remembered for some seconds.

use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use pushdown_testkit::{GOOD_SIGNATURE, Request, Response, eventually};

use super::{CacheLab, MEMORY, PATH, PIPELINE, origin};

/// A GET with a signature in the query, of this age and validity in seconds.
fn presigned(lab: &CacheLab, age: u64, valid: u64, signature: &str) -> Result<Response> {
    let time = SystemTime::now() - Duration::from_secs(age);
    let target = target_of(time, valid, signature);
    get(lab, &target)
}

fn target_of(time: SystemTime, valid: u64, signature: &str) -> String {
    let stamp = chrono::DateTime::<chrono::Utc>::from(time).format("%Y%m%dT%H%M%SZ");
    format!(
        "{PATH}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date={stamp}&X-Amz-Expires={valid}&X-Amz-SignedHeaders=host&X-Amz-Signature={signature}"
    )
}

fn get(lab: &CacheLab, target: &str) -> Result<Response> {
    Request::new("GET", target)
        .header("Host", "store")
        .header("x-pushdown-pipeline", PIPELINE)
        .send(lab.gateway.listen())
}

/// A presigned target that is cached, and the requests to the store so far.
fn cached_target(lab: &CacheLab, valid: u64) -> Result<(String, usize)> {
    let target = target_of(SystemTime::now(), valid, GOOD_SIGNATURE);
    lab.warm(PIPELINE)?;
    let answer = get(lab, &target)?;
    ensure!(origin(&answer)? == "memory");
    Ok((target, lab.store.requests().len()))
}

#[test]
fn the_store_is_asked_once_for_a_signed_target() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY, "--auth-cache-ttl=60s"])?;
    let (target, asked) = cached_target(&lab, 900)?;
    let computed = lab.get(PIPELINE)?;
    for _ in 0..3 {
        let answer = get(&lab, &target)?;
        assert_eq!((answer.status, origin(&answer)?), (200, "memory"));
        assert_eq!(answer.header("etag").is_some(), computed.header("etag").is_some());
    }
    assert_eq!(
        lab.store.requests().len(),
        asked + 1,
        "only the GET with a signature in a header"
    );
    // Any other bytes are the store's to judge.
    lab.store.forbid("first", PATH);
    let bad = "b".repeat(64);
    assert_eq!(presigned(&lab, 0, 900, &bad)?.status, 403);
    assert_eq!(presigned(&lab, 5, 900, GOOD_SIGNATURE)?.status, 403);
    assert_eq!(lab.get_by("first", PIPELINE)?.status, 403);
    Ok(())
}

#[test]
fn after_the_ttl_the_store_decides_again() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY, "--auth-cache-ttl=1s"])?;
    let (target, _) = cached_target(&lab, 900)?;
    lab.store.forbid("first", PATH);
    eventually("the store refuses", Duration::from_secs(10), || {
        Ok((get(&lab, &target)?.status == 403).then_some(()))
    })
}

#[test]
fn after_the_end_of_the_signature_the_store_decides_again() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY, "--auth-cache-ttl=60s"])?;
    let (target, _) = cached_target(&lab, 2)?;
    lab.store.forbid("first", PATH);
    eventually("the store refuses", Duration::from_secs(10), || {
        Ok((get(&lab, &target)?.status == 403).then_some(()))
    })
}

#[test]
fn by_default_nothing_is_remembered() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    let (target, asked) = cached_target(&lab, 900)?;
    get(&lab, &target)?;
    assert_eq!(lab.store.requests().len(), asked + 1);
    lab.store.forbid("first", PATH);
    assert_eq!(get(&lab, &target)?.status, 403);
    Ok(())
}
