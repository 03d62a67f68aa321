//! Cached values of members, and values in flight: each member has its own, for whom the store authorizes (law 6).

use std::{thread, time::SystemTime};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::CacheStatus;
use pushdown_testkit::{GOOD_SIGNATURE, Request, Response, Sent};

use super::{ETAG, Member, PATH, SHORT, Shard, ShardLab, check_values, codes, error_of, pixels};

const MEMORY: &str = "--cache-memory=64MiB";

/// Where the value of an answer came from.
fn origin(answer: &Response) -> Result<&str> {
    answer.header("x-pushdown-cache").context("no x-pushdown-cache")
}

/// Asks for the value of a member twice: the first answer brings it into the cache.
fn warm(lab: &ShardLab, member: &Member) -> Result<()> {
    lab.get(member)?;
    ensure!(
        origin(&lab.get(member)?)? == "memory",
        "the value of {} is not cached",
        member.name
    );
    Ok(())
}

/// Whether members are read by GETs or as rows of a batch.
#[test]
fn the_second_job_over_members_has_hits_alone() -> Result<()> {
    let lab = ShardLab::new(Shard::of_large_photos(12)?, &[MEMORY])?;
    for job in 0..3 {
        let rows = lab.rows(&lab.request(SHORT, &lab.shard.members)?)?;
        check_values(&rows, &lab.shard.members, SHORT)?;
        let status = if job == 0 {
            CacheStatus::Computed
        } else {
            CacheStatus::Memory
        };
        ensure!(rows.iter().all(|row| row.cache == status), "job {job}: {rows:?}");
    }
    let lab = ShardLab::new(Shard::of_large_photos(12)?, &[MEMORY])?;
    for expected in ["computed", "memory", "memory"] {
        for member in &lab.shard.members {
            assert_eq!(origin(&lab.get(member)?)?, expected, "{}", member.name);
        }
    }
    Ok(())
}

#[test]
fn each_member_has_a_cached_value_of_its_own() -> Result<()> {
    let lab = ShardLab::new(Shard::of_large_photos(4)?, &[MEMORY])?;
    for member in &lab.shard.members {
        warm(&lab, member)?;
    }
    for member in &lab.shard.members {
        let before = lab.store.sent();
        ensure!(origin(&lab.get(member)?)? == "memory");
        let after = lab.store.sent();
        assert_eq!(after.not_modified, before.not_modified + 1);
        assert_eq!((after.objects, after.bytes), (before.objects, before.bytes));
    }
    // Batches and GETs share the values.
    let rows = lab.rows(&lab.request(SHORT, &lab.shard.members)?)?;
    check_values(&rows, &lab.shard.members, SHORT)?;
    ensure!(
        rows.iter().all(|row| row.cache == CacheStatus::Memory),
        "{rows:?}"
    );
    // The same bytes under another name, or from another place, are other members.
    let renamed = Member {
        name: "other.jpg".to_owned(),
        ..lab.shard.members[0].clone()
    };
    let answer = lab.get_by("first", &renamed, Some(ETAG))?;
    assert_eq!(error_of(&answer).1, "InvalidShard");
    Ok(())
}

#[test]
fn a_cached_member_is_only_for_whom_the_store_authorizes() -> Result<()> {
    let lab = ShardLab::new(Shard::of_large_photos(4)?, &[MEMORY])?;
    let member = &lab.shard.members[0];
    warm(&lab, member)?;
    lab.store.forbid("adversary", PATH);
    for etag in [Some(ETAG), None, Some("\"other\"")] {
        let answer = lab.get_by("adversary", member, etag)?;
        assert_eq!(
            error_of(&answer),
            (403, "AccessDenied".to_owned()),
            "{etag:?}: {}",
            answer.text()
        );
        for name in ["x-pushdown-cache", "x-pushdown-source-etag", "etag"] {
            ensure!(answer.header(name).is_none(), "{etag:?}: {name}");
        }
    }
    let rows = lab.rows(&lab.request_by("adversary", SHORT, &lab.shard.members)?)?;
    assert_eq!(codes(&rows), ["AccessDenied"; 4]);
    // The value is still there for others.
    ensure!(origin(&lab.get_by("second", member, Some(ETAG))?)? == "memory");
    lab.store.delete(PATH);
    let answer = lab.get_by("second", member, Some(ETAG))?;
    assert_eq!(error_of(&answer), (404, "NoSuchKey".to_owned()));
    Ok(())
}

#[test]
fn a_member_that_many_ask_for_is_read_and_computed_once() -> Result<()> {
    const REQUESTS: usize = 20;
    // An answer that arrives after the value was computed finds it in the cache.
    let lab = ShardLab::new(Shard::of_large_photos(2)?, &[MEMORY])?;
    let member = &lab.shard.members[1];
    lab.store.set_stalled(true);
    let answers: Vec<Response> = thread::scope(|scope| {
        let asked: Vec<_> = (0..REQUESTS).map(|_| scope.spawn(|| lab.get(member))).collect();
        let waited = lab
            .store
            .wait_until(|sent| sent.objects + sent.not_modified == REQUESTS);
        lab.store.set_stalled(false);
        waited?;
        let answers = asked
            .into_iter()
            .map(|thread| thread.join().ok().context("a request panicked")?);
        answers.collect::<Result<_>>()
    })?;
    let computed = answers
        .iter()
        .filter(|answer| origin(answer).ok() == Some("computed"));
    assert_eq!(computed.count(), 1);
    let entry = member.range.entry();
    assert_eq!(
        lab.store.sent(),
        Sent {
            objects: 1,
            not_modified: REQUESTS - 1,
            refused: 0,
            bytes: usize::try_from(entry.end - entry.start)?,
        }
    );
    lab.check_memory()
}

/// The authorization of a signed target covers all members of its shard.
#[test]
fn a_remembered_authorization_covers_all_members() -> Result<()> {
    let lab = ShardLab::new(Shard::of_large_photos(4)?, &[MEMORY, "--auth-cache-ttl=60s"])?;
    for member in &lab.shard.members {
        warm(&lab, member)?;
    }
    let stamp = chrono::DateTime::<chrono::Utc>::from(SystemTime::now()).format("%Y%m%dT%H%M%SZ");
    let target = format!(
        "{PATH}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date={stamp}&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature={GOOD_SIGNATURE}"
    );
    let get = |member: &Member| {
        let request = Request::new("GET", &target)
            .header("Host", "store")
            .header("x-pushdown-pipeline", SHORT)
            .header("Accept", "application/octet-stream");
        let answer = member.name_in(request, Some(ETAG)).send(lab.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(answer.body == pixels(member.value(SHORT)));
        ensure!(origin(&answer)? == "memory");
        Ok(())
    };
    let ((), cost) = lab.cost(|| lab.shard.members.iter().try_for_each(get))?;
    assert_eq!(cost, 1, "the store is asked once");
    // Another target is the store's to judge.
    lab.store.forbid("first", PATH);
    let refused = lab.get_by("first", &lab.shard.members[0], Some(ETAG))?;
    assert_eq!(refused.status, 403);
    Ok(())
}
