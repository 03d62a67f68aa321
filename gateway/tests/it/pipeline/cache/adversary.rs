//! Law 6: no byte of a value leaves the gateway unless the store has authorized this request.

use std::thread;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{EXPIRED_SIGNATURE, GOOD_SIGNATURE, Response, signed_by};

use super::{CacheLab, MEMORY, PATH, PIPELINE, expected, origin, photo, pixels};

const BAD_SIGNATURE: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/// The query of a presigned target without its signature.
const EXPIRED_QUERY: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
    &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
/// More than any store's refusal has, and less than a value.
const MAX_REFUSAL_BYTES: usize = 1000;

/// What changes before the adversary asks, the signature that it uses, and the answer that it must get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::it) enum Attack {
    NoRight,
    WrongSignature,
    Expired,
    Anonymous,
    Deleted,
    RightWithdrawn,
}

pub(in crate::it) const ATTACKS: [Attack; 6] = [
    Attack::NoRight,
    Attack::WrongSignature,
    Attack::Expired,
    Attack::Anonymous,
    Attack::Deleted,
    Attack::RightWithdrawn,
];

impl Attack {
    /// Sends the request. The ETag in its own condition must not matter.
    fn ask(self, lab: &CacheLab) -> Result<Response> {
        let mut request = lab.request(PIPELINE).header("If-None-Match", "\"1\"");
        let request = match self {
            Self::NoRight => {
                lab.store.forbid("adversary", PATH);
                signed_by(request, "adversary", GOOD_SIGNATURE)
            }
            Self::WrongSignature => signed_by(request, "first", BAD_SIGNATURE),
            Self::Expired => {
                request.target = format!("{PATH}?{EXPIRED_QUERY}&X-Amz-Signature={EXPIRED_SIGNATURE}");
                request
            }
            Self::Anonymous => request,
            Self::Deleted => {
                lab.store.delete(PATH);
                signed_by(request, "first", GOOD_SIGNATURE)
            }
            Self::RightWithdrawn => {
                lab.store.forbid("first", PATH);
                signed_by(request, "first", GOOD_SIGNATURE)
            }
        };
        request.send(lab.gateway.listen())
    }

    /// The answer is the store's own.
    pub(in crate::it) fn check(self, answer: &Response, value: &[u8]) -> Result<()> {
        let is_refused = match self {
            Self::Deleted => answer.status == 404,
            // Garage calls the request invalid.
            Self::Expired => matches!(answer.status, 400 | 403),
            _ => answer.status == 403,
        };
        ensure!(is_refused, "{self:?}: {} {}", answer.status, answer.text());
        ensure!(answer.element("Code").is_some(), "{self:?}: {}", answer.text());
        let leaked = value
            .windows(16)
            .any(|part| answer.body.windows(16).any(|found| found == part));
        ensure!(
            !leaked && answer.body.len() < MAX_REFUSAL_BYTES,
            "{self:?}: {}",
            answer.text()
        );
        for header in [
            "x-pushdown-cache",
            "x-pushdown-cached-ratio",
            "x-pushdown-source-etag",
            "etag",
        ] {
            ensure!(answer.header(header).is_none(), "{self:?}: {header}");
        }
        Ok(())
    }
}

#[test]
fn a_cached_value_is_only_for_whom_the_store_authorizes() -> Result<()> {
    for attack in ATTACKS {
        let lab = CacheLab::new(&[MEMORY])?;
        let value = lab.warm(PIPELINE)?.body;
        attack.check(&attack.ask(&lab)?, &value)?;
        // The value is still there for those who may have it.
        if !matches!(attack, Attack::Deleted) {
            let answer = lab.get_by("second", PIPELINE)?;
            assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{attack:?}");
        }
    }
    Ok(())
}

/// The leader's object arrives slowly. The adversary is refused while it does, and learns nothing.
#[test]
fn a_value_in_flight_is_only_for_whom_the_store_authorizes() -> Result<()> {
    for attack in ATTACKS {
        let lab = CacheLab::new(&[])?;
        let value = pixels(expected(&lab.photo, PIPELINE));
        lab.store.set_stalled(true);
        thread::scope(|scope| {
            let leader = scope.spawn(|| lab.get(PIPELINE));
            lab.store.wait_until(|sent| sent.objects == 1)?;
            let refused = attack.ask(&lab).and_then(|answer| attack.check(&answer, &value));
            lab.store.set_stalled(false);
            let answer = leader.join().ok().context("the leader panicked")??;
            ensure!(answer.body == value);
            refused
        })?;
    }
    Ok(())
}

/// The object is replaced between leader and follower: each gets the value of its own version.
#[test]
fn a_value_of_an_earlier_version_is_no_answer() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    let (value, other) = (pixels(expected(&lab.photo, PIPELINE)), photo(300, 500, "jpeg"));
    lab.store.set_stalled(true);
    thread::scope(|scope| {
        let leader = scope.spawn(|| lab.get(PIPELINE));
        lab.store.wait_until(|sent| sent.objects == 1)?;
        lab.store.put(PATH, "\"2\"", other.clone());
        let follower = scope.spawn(|| lab.get(PIPELINE));
        // The store has answered the follower's condition with the new version.
        let asked = lab.store.wait_until(|sent| sent.objects == 2);
        lab.store.set_stalled(false);
        asked?;
        for (thread, etag, value) in [
            (leader, "\"1\"", value),
            (follower, "\"2\"", pixels(expected(&other, PIPELINE))),
        ] {
            let answer = thread.join().ok().context("a request panicked")??;
            ensure!(answer.header("x-pushdown-source-etag") == Some(etag));
            ensure!(answer.body == value);
        }
        Ok(())
    })
}

#[test]
fn tenants_can_have_values_of_their_own() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY, "--cache-scope=tenant"])?;
    lab.warm(PIPELINE)?;
    assert_eq!(origin(&lab.get_by("second", PIPELINE)?)?, "computed");
    assert_eq!(origin(&lab.get_by("first", PIPELINE)?)?, "memory");
    Ok(())
}
