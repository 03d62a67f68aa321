//! When the store is asked: after the age, and for every key and request that grants alone do not decide on.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use pushdown_testkit::eventually;

use super::{HOUR, Lab, ask, error_of, origin, request, warm};
use crate::it::resign::{EVERYTHING, Grant, caller, key_block, trainer};

/// Longest wait until the keys file is read again, or an age has passed.
const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn after_the_age_the_store_confirms_again() -> Result<()> {
    let Some(lab) = Lab::start(&["--resign-cache-max-age=1s"])? else {
        return Ok(());
    };
    warm(&lab.client)?;
    for _ in 0..2 {
        let confirmed = lab.relay.sent().not_modified;
        eventually("the store is asked", LIMIT, || {
            ensure!(origin(&ask(&lab.client, "GET")?)? == "memory");
            Ok((lab.relay.sent().not_modified > confirmed).then_some(()))
        })?;
    }
    Ok(())
}

#[test]
fn a_replaced_object_is_answered_for_the_age_and_not_longer() -> Result<()> {
    const AGE: Duration = Duration::from_secs(2);

    let Some(lab) = Lab::start(&["--resign-cache-max-age=2s"])? else {
        return Ok(());
    };
    let value = warm(&lab.client)?;
    lab.store_photo(1)?;
    let replaced = Instant::now();
    let later = eventually("the new object is read", LIMIT, || {
        let started = Instant::now();
        let answer = ask(&lab.client, "GET")?;
        if answer.header("etag") != value.header("etag") {
            return Ok(Some(answer));
        }
        ensure!(
            started < replaced + AGE,
            "the old object {:?} later",
            started.duration_since(replaced)
        );
        Ok(None)
    })?;
    ensure!(later.status == 200 && later.body != value.body, "{later:?}");
    for _ in 0..5 {
        assert_eq!(ask(&lab.client, "GET")?.header("etag"), later.header("etag"));
    }
    // A deleted one, too.
    warm(&lab.client)?;
    assert_eq!(lab.direct.call("DELETE", &super::target())?.status, 204);
    let deleted = Instant::now();
    eventually("the object is gone", LIMIT, || {
        let started = Instant::now();
        let answer = ask(&lab.client, "GET")?;
        ensure!(answer.status == 404 || started < deleted + AGE, "{answer:?}");
        Ok((answer.status == 404).then_some(()))
    })?;
    assert_eq!(error_of(&ask(&lab.client, "GET")?), (404, "NoSuchKey".to_owned()));
    Ok(())
}

#[test]
fn a_withdrawn_grant_ends_it() -> Result<()> {
    let Some(lab) = Lab::start(&[HOUR])? else {
        return Ok(());
    };
    warm(&lab.client)?;
    let asked = lab.asked();
    let narrower = Grant::new("*", "", &["list", "read"]);
    lab.keys_file
        .write(&key_block(&trainer(), "gateway", &[narrower]))?;
    eventually("the grant is withdrawn", LIMIT, || {
        let answer = ask(&lab.client, "GET")?;
        let is_denied = error_of(&answer) == (403, "AccessDenied".to_owned());
        ensure!(is_denied || origin(&answer)? == "memory", "{answer:?}");
        Ok(is_denied.then_some(()))
    })?;
    for _ in 0..3 {
        assert_eq!(ask(&lab.client, "GET")?.status, 403);
    }
    assert_eq!(lab.asked(), asked);
    Ok(())
}

/// With `self` the store decides, whatever it has confirmed to the gateway.
#[test]
fn the_store_is_asked_for_each_hit_of_a_key_that_it_knows() -> Result<()> {
    let blocks = [
        key_block(&trainer(), "gateway", &[EVERYTHING]),
        key_block(&caller(), "self", &[EVERYTHING]),
    ];
    let Some(lab) = Lab::start_with(&[HOUR], &blocks)? else {
        return Ok(());
    };
    warm(&lab.client)?;
    let own = lab.client_of(&caller());
    for (client, expected) in [(&own, 1), (&lab.client, 0), (&own, 1), (&own, 1)] {
        let (answer, cost) = lab.cost(|| ask(client, "GET"))?;
        assert_eq!(
            (origin(&answer)?, cost),
            ("memory", expected),
            "{}",
            client.keys.access
        );
    }
    lab.store_photo(1)?;
    ensure!(origin(&ask(&own, "GET")?)? != "memory");
    Ok(())
}

#[test]
fn by_default_the_store_is_asked_for_each_hit() -> Result<()> {
    for flags in [&[][..], &["--resign-cache-max-age=0s"]] {
        let Some(lab) = Lab::start(flags)? else {
            return Ok(());
        };
        warm(&lab.client)?;
        for _ in 0..2 {
            let (answer, cost) = lab.cost(|| ask(&lab.client, "GET"))?;
            assert_eq!((origin(&answer)?, cost), ("memory", 1), "{flags:?}");
        }
    }
    Ok(())
}

/// The store alone can say who owns a bucket, and who pays.
#[test]
fn the_store_is_asked_about_what_only_it_knows() -> Result<()> {
    let Some(lab) = Lab::start(&[HOUR])? else {
        return Ok(());
    };
    warm(&lab.client)?;
    for (name, value, expected) in [
        ("x-amz-expected-bucket-owner", "123456789012", 1),
        ("x-amz-request-payer", "requester", 1),
        ("x-amz-checksum-mode", "ENABLED", 0),
    ] {
        let request = request(&lab.client, "GET").header(name, value);
        let (answer, cost) = lab.cost(|| lab.client.send(request))?;
        assert_eq!((answer.status, cost), (200, expected), "{name}");
    }
    Ok(())
}
