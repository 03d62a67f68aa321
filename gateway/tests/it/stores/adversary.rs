//! Law 6 for stated stores: no byte of a value leaves the gateway unless that store has authorized this request.

use std::thread;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{EXPIRED_SIGNATURE, GOOD_SIGNATURE, Response};

use super::*;
use crate::it::pipeline::{ATTACKS, Attack};

const BAD_SIGNATURE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

/// Changes the store, and asks as the adversary. The ETag in its own condition must not matter.
fn ask(attack: Attack, lab: &StoresLab) -> Result<Response> {
    let path = lab.path(KEY);
    // Another validity than that of all others, so that no authorization of the same target is remembered.
    let signed_by = |access_key| {
        let mut request = lab.request(access_key, KEY, PIPELINE);
        request.target = request.target.replace("X-Amz-Expires=900", "X-Amz-Expires=600");
        request
    };
    let with_signature = |signature| {
        let mut request = signed_by("first");
        request.target = request.target.replace(GOOD_SIGNATURE, signature);
        request
    };
    let request = match attack {
        Attack::NoRight => {
            lab.store.forbid("adversary", &path);
            signed_by("adversary")
        }
        Attack::WrongSignature => with_signature(BAD_SIGNATURE),
        Attack::Expired => with_signature(EXPIRED_SIGNATURE),
        Attack::Anonymous => {
            let mut request = signed_by("first");
            request.target.clone_from(&path);
            request
        }
        Attack::Deleted => {
            lab.store.delete(&path);
            signed_by("first")
        }
        Attack::RightWithdrawn => {
            lab.store.forbid("first", &path);
            signed_by("first")
        }
    };
    request
        .header("If-None-Match", "\"1\"")
        .send(lab.gateway.listen())
}

fn new_lab(style: Style, flags: &[&str]) -> Result<(StoresLab, Vec<u8>)> {
    let lab = StoresLab::new(style, flags)?;
    let object = photo(600, 400, "jpeg");
    lab.put(KEY, "\"1\"", object.clone());
    Ok((lab, pixels(expected(&object, PIPELINE))))
}

#[test]
fn a_cached_value_is_only_for_whom_the_stated_store_authorizes() -> Result<()> {
    for (style, remembers) in [
        (Style::Path, false),
        (Style::Path, true),
        (Style::VirtualHost, false),
    ] {
        for attack in ATTACKS {
            let flags = [MEMORY, "--auth-cache-ttl=60s"];
            let (lab, value) = new_lab(style, &flags[..=usize::from(remembers)])?;
            for expected in ["computed", "memory"] {
                let answer = lab.get(KEY, PIPELINE)?;
                assert_eq!((origin(&answer)?, &answer.body), (expected, &value));
            }
            let answer = ask(attack, &lab)?;
            attack
                .check(&answer, &value)
                .with_context(|| format!("{style:?}"))?;
            if attack != Attack::Deleted {
                let answer = lab.request("second", KEY, PIPELINE).send(lab.gateway.listen())?;
                assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{attack:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_value_in_flight_is_only_for_whom_the_stated_store_authorizes() -> Result<()> {
    for attack in ATTACKS {
        let (lab, value) = new_lab(Style::VirtualHost, &[])?;
        lab.store.set_stalled(true);
        thread::scope(|scope| {
            let leader = scope.spawn(|| lab.get(KEY, PIPELINE));
            lab.store.wait_until(|sent| sent.objects == 1)?;
            let refused = ask(attack, &lab).and_then(|answer| attack.check(&answer, &value));
            lab.store.set_stalled(false);
            let answer = leader.join().ok().context("the leader panicked")??;
            ensure!(answer.body == value);
            refused
        })?;
    }
    Ok(())
}

/// The store decides on each sample of a batch.
#[test]
fn rows_of_a_batch_are_authorized_one_by_one() -> Result<()> {
    for style in STYLES {
        let (lab, _) = new_lab(style, &[MEMORY])?;
        lab.store.forbid("adversary", &lab.path(KEY));
        for (access_key, is_authorized) in [("first", true), ("adversary", false), ("first", true)] {
            for row in lab.rows(&lab.batch(access_key, &[KEY, KEY], PIPELINE)?)? {
                match row.value {
                    Ok(_) => ensure!(is_authorized, "{style:?}: a value for {access_key}"),
                    Err(error) => {
                        ensure!(
                            !is_authorized && error.code == "AccessDenied",
                            "{style:?}: {error}"
                        );
                    }
                }
            }
        }
    }
    Ok(())
}
