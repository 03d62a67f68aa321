//! Law 6 on real stores: no byte of a value leaves the gateway unless the store has authorized this request.
//!
//! A relay between gateway and store holds back the end of objects, so that a value is in flight as long as a test wants.

mod accounts;
mod lab;

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Keys, RealStore, eventually};

use super::{
    MEMORY, PATH, PIPELINE,
    adversary::{ATTACKS, Attack},
    binary, expected, origin, photo, pixels,
};
use accounts::{Accounts, Roles};
use lab::{SignedFor, StoreLab};

const BUCKET: &str = "/photos";
/// Validity of a signature.
const VALID: Duration = Duration::from_mins(10);
/// Validity of a signature that ends during the test.
const SHORT_VALID: Duration = Duration::from_secs(5);
/// Longest wait for a change of the store, the end of a session included.
const LIMIT: Duration = Duration::from_secs(90);

#[test]
#[ignore = "a second store: make test-full"]
fn the_embedded_store_authorizes_each_value() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    check(&RealStore::embedded(binary())?)
}

#[test]
fn seaweedfs_authorizes_each_value() -> Result<()> {
    if !Backend::SeaweedFs.is_enabled()? {
        return Ok(());
    }
    check(&RealStore::seaweedfs()?)
}

#[test]
#[ignore = "JuiceFS is not installed by default: make test-full"]
fn juicefs_authorizes_each_value() -> Result<()> {
    check(&RealStore::juicefs()?)
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn ceph_authorizes_each_value() -> Result<()> {
    check(&RealStore::ceph()?)
}

/// Callers have session tokens, as on AWS, which only the store can verify.
#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn ceph_authorizes_each_value_for_sessions() -> Result<()> {
    let store = RealStore::ceph()?;
    store.put(BUCKET, "")?;
    let roles = Roles::create(&store)?;
    let new_lab = |flags: &[&str]| StoreLab::new(&store, SignedFor::Store, Accounts::Sessions(&roles), flags);
    check_attacks(&store, new_lab)?;
    check_foreign_token(&new_lab(&[MEMORY])?).context("a foreign token")?;
    check_session_end(&new_lab(&[MEMORY])?).context("after the end of the session")
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn garage_authorizes_each_value() -> Result<()> {
    check(&RealStore::garage()?)
}

fn check(store: &RealStore) -> Result<()> {
    store.put(BUCKET, "")?;
    [SignedFor::Gateway, SignedFor::Store]
        .into_iter()
        .try_for_each(|signed_for| {
            check_signed_for(store, signed_for).with_context(|| format!("{signed_for:?}"))
        })
}

fn check_signed_for(store: &RealStore, signed_for: SignedFor) -> Result<()> {
    check_attacks(store, |flags: &[&str]| {
        StoreLab::new(store, signed_for, Accounts::Keys, flags)
    })
}

fn check_attacks<'a>(store: &'a RealStore, new_lab: impl Fn(&[&str]) -> Result<StoreLab<'a>>) -> Result<()> {
    check_cached(store, || new_lab(&[MEMORY])).context("cached")?;
    check_cached(store, || new_lab(&[MEMORY, "--auth-cache-ttl=60s"]))
        .context("cached, with authorizations remembered")?;
    check_in_flight(store, || new_lab(&[])).context("in flight")?;
    check_replaced(store, &new_lab(&[])?, &new_lab(&[MEMORY])?).context("replaced")?;
    check_ttl(store, &new_lab(&[MEMORY, "--auth-cache-ttl=1s"])?).context("after the ttl")?;
    check_signature_end(&new_lab(&[MEMORY, "--auth-cache-ttl=60s"])?)
        .context("after the end of the signature")
}

/// The attacks that a store can express. The embedded store has one account, whose right cannot be withdrawn; an unknown access
/// key has no right there.
fn attacks(store: &RealStore) -> impl Iterator<Item = Attack> {
    let has_accounts = store.has_accounts();
    let attacks = ATTACKS.into_iter();
    attacks.filter(move |attack| has_accounts || *attack != Attack::RightWithdrawn)
}

fn check_cached<'a>(store: &'a RealStore, new_lab: impl Fn() -> Result<StoreLab<'a>>) -> Result<()> {
    for attack in attacks(store) {
        let lab = new_lab()?;
        lab.warm()?;
        lab.attack(attack).with_context(|| format!("{attack:?}"))?;
        // The value is still there for those who may have it.
        if attack != Attack::Deleted {
            let answer = lab.get(&lab.owner)?;
            ensure!(
                origin(&answer)? == "memory" && answer.body == lab.value,
                "{attack:?}"
            );
        }
    }
    Ok(())
}

fn check_in_flight<'a>(store: &'a RealStore, new_lab: impl Fn() -> Result<StoreLab<'a>>) -> Result<()> {
    let mut shared = 0;
    for attack in attacks(store) {
        let lab = new_lab()?;
        lab.relay.set_stalled(true);
        thread::scope(|scope| {
            let leader = scope.spawn(|| lab.get(&lab.reader));
            lab.relay.wait_until(|sent| sent.objects == 1)?;
            let refused = lab.attack(attack).with_context(|| format!("{attack:?}"));
            let is_in_flight = !leader.is_finished();
            // A request that the store authorizes joins the flight.
            let follower = (attack != Attack::Deleted).then(|| scope.spawn(|| lab.get(&lab.owner)));
            let joined = if follower.is_some() {
                lab.relay.wait_until(|sent| sent.not_modified == 1)
            } else {
                Ok(())
            };
            lab.relay.set_stalled(false);
            refused?;
            joined?;
            ensure!(is_in_flight, "{attack:?}: the value was no longer in flight");
            let first = leader.join().ok().context("the leader panicked")??;
            ensure!(first.body == lab.value, "{attack:?}");
            if let Some(follower) = follower {
                let second = follower.join().ok().context("the follower panicked")??;
                ensure!(second.body == lab.value, "{attack:?}");
                // Either may have got memory first, and one that comes after the other has gone computes the value itself.
                let origins = [origin(&first)?, origin(&second)?];
                ensure!(origins.contains(&"computed"), "{attack:?}: {origins:?}");
                shared += usize::from(origins.contains(&"shared"));
            }
            anyhow::Ok(())
        })?;
    }
    ensure!(shared > 0, "no value was shared");
    Ok(())
}

/// The object is replaced between leader and follower, and after the value is cached: each gets the value of its own version.
fn check_replaced(store: &RealStore, lab: &StoreLab<'_>, with_cache: &StoreLab<'_>) -> Result<()> {
    let other = photo(300, 500, "jpeg");
    let other_value = pixels(expected(&other, PIPELINE));
    lab.relay.set_stalled(true);
    thread::scope(|scope| {
        let leader = scope.spawn(|| lab.get(&lab.reader));
        lab.relay.wait_until(|sent| sent.objects == 1)?;
        store.put(PATH, other.clone())?;
        let follower = scope.spawn(|| lab.get(&lab.reader));
        // The store has answered the follower's condition with the new version.
        let asked = lab.relay.wait_until(|sent| sent.objects == 2);
        lab.relay.set_stalled(false);
        asked?;
        for (thread, value) in [(leader, &lab.value), (follower, &other_value)] {
            let answer = thread.join().ok().context("a request panicked")??;
            ensure!(answer.body == *value, "in flight");
        }
        anyhow::Ok(())
    })?;
    store.put(PATH, photo(600, 400, "jpeg"))?;
    with_cache.warm()?;
    store.put(PATH, other)?;
    let answer = with_cache.get(&with_cache.reader)?;
    ensure!(answer.body == other_value, "cached");
    Ok(())
}

/// `--auth-cache-ttl`: the store decides again after the ttl.
fn check_ttl(store: &RealStore, lab: &StoreLab<'_>) -> Result<()> {
    let ttl = Duration::from_secs(1);
    lab.warm()?;
    let address = lab.gateway.listen();
    let request = lab.presigned(&lab.owner, VALID)?;
    ensure!(origin(&request.send(address)?)? == "memory");
    let end = Instant::now() + ttl;
    store.delete(PATH)?;
    eventually("the store refuses", LIMIT, || {
        let sent_at = Instant::now();
        let answer = request.send(address)?;
        if answer.status == 200 && sent_at < end {
            return Ok(None);
        }
        Attack::Deleted.check(&answer, &lab.value).map(Some)
    })
}

/// `--auth-cache-ttl`: nothing is remembered beyond the end of the signature.
fn check_signature_end(lab: &StoreLab<'_>) -> Result<()> {
    lab.warm()?;
    let address = lab.gateway.listen();
    let request = lab.presigned(&lab.owner, SHORT_VALID)?;
    let end = Instant::now() + SHORT_VALID;
    ensure!(origin(&request.send(address)?)? == "memory");
    let asked = lab.relay.sent().not_modified;
    ensure!(origin(&request.send(address)?)? == "memory");
    ensure!(
        lab.relay.sent().not_modified == asked,
        "the authorization is not remembered"
    );
    eventually("the store refuses", LIMIT, || {
        let sent_at = Instant::now();
        let answer = request.send(address)?;
        if answer.status == 200 && sent_at < end {
            return Ok(None);
        }
        Attack::Expired.check(&answer, &lab.value).map(Some)
    })
}

/// The token is that of a session of another role with the same right.
fn check_foreign_token(lab: &StoreLab<'_>) -> Result<()> {
    lab.warm()?;
    let stranger = Keys {
        token: lab.owner.token.clone(),
        ..lab.reader.clone()
    };
    let answer = lab.presigned(&stranger, VALID)?.send(lab.gateway.listen())?;
    Attack::WrongSignature.check(&answer, &lab.value)
}

/// The signature is valid for longer than its session.
fn check_session_end(lab: &StoreLab<'_>) -> Result<()> {
    lab.warm()?;
    let (address, request) = (lab.gateway.listen(), lab.presigned(&lab.reader, VALID)?);
    ensure!(origin(&request.send(address)?)? == "memory");
    lab.wait_for_reader_status(403)?;
    Attack::RightWithdrawn.check(&request.send(address)?, &lab.value)
}
