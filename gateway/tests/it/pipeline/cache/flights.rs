//! Single flight: what several requests ask for at a time is fetched and computed once.

use std::{io::Write as _, net::TcpStream, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{GOOD_SIGNATURE, Response, Sent, signed_by};

use super::{CacheLab, MEMORY, PIPELINE, constant_headers, expected, origin, pixels};

/// Sends `count` GETs, while the store holds back the end of the object until all have asked. The first one is ahead, since others
/// wait for its version for a second only.
fn ask_at_once(lab: &CacheLab, count: usize) -> Result<Vec<Response>> {
    lab.store.set_stalled(true);
    thread::scope(|scope| {
        let ask = move |index: usize| {
            let key = format!("tenant{}", index % 3);
            scope.spawn(move || lab.get_by(&key, PIPELINE))
        };
        let mut asked = vec![ask(0)];
        let is_asked = lab.store.wait_until(|sent| sent.objects == 1);
        asked.extend((1..count).map(ask));
        let waited = lab
            .store
            .wait_until(|sent| sent.objects + sent.not_modified == count);
        lab.store.set_stalled(false);
        is_asked.and(waited)?;
        asked
            .into_iter()
            .map(|thread| thread.join().ok().context("a request panicked")?)
            .collect()
    })
}

#[test]
fn two_hundred_clients_cost_one_computation() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    let answers = ask_at_once(&lab, 200)?;
    let value = pixels(expected(&lab.photo, PIPELINE));
    let first = constant_headers(&answers[0]);
    for answer in &answers {
        assert_eq!((answer.status, &answer.body), (200, &value));
        assert_eq!(constant_headers(answer), first);
    }
    assert_eq!(
        lab.store.sent(),
        Sent {
            objects: 1,
            not_modified: 199,
            refused: 0,
            bytes: lab.photo.len()
        }
    );
    assert_eq!((lab.values("computed")?, lab.values("shared")?), (1.0, 199.0));
    let computed = answers
        .iter()
        .filter(|answer| origin(answer).ok() == Some("computed"));
    assert_eq!(computed.count(), 1);
    Ok(())
}

#[test]
fn batches_share_flights_with_gets() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    lab.store.set_stalled(true);
    thread::scope(|scope| {
        let get = scope.spawn(|| lab.get(PIPELINE));
        lab.store.wait_until(|sent| sent.objects == 1)?;
        let rows = scope.spawn(|| lab.rows("second", PIPELINE, 8));
        let waited = lab.store.wait_until(|sent| sent.not_modified == 8);
        lab.store.set_stalled(false);
        waited?;
        let value = get.join().ok().context("the GET panicked")??.body;
        for row in rows.join().ok().context("the batch panicked")?? {
            ensure!(pixels(row.value?) == value);
        }
        ensure!(lab.store.sent().objects == 1);
        Ok(())
    })
}

/// The client that began the computation disconnects.
#[test]
fn followers_get_the_value_without_their_leader() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    lab.store.set_stalled(true);
    let mut leader = TcpStream::connect(lab.gateway.listen())?;
    leader.write_all(&signed_by(lab.request(PIPELINE), "first", GOOD_SIGNATURE).head())?;
    lab.store.wait_until(|sent| sent.objects == 1)?;
    thread::scope(|scope| {
        let follower = scope.spawn(|| lab.get_by("second", PIPELINE));
        let waited = lab.store.wait_until(|sent| sent.not_modified == 1);
        drop(leader);
        // The gateway sees the end of the connection.
        thread::sleep(Duration::from_millis(50));
        lab.store.set_stalled(false);
        waited?;
        let answer = follower.join().ok().context("the follower panicked")??;
        ensure!(answer.body == pixels(expected(&lab.photo, PIPELINE)));
        ensure!(lab.store.sent().objects == 1, "{:?}", lab.store.sent());
        Ok(())
    })
}

/// The error of a computation is everybody's; the next request tries again.
#[test]
fn an_undecodable_object_fails_for_all_members() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    let mut broken = lab.photo.clone();
    broken.truncate(2000);
    lab.store.put(super::PATH, "\"2\"", broken);
    for answer in ask_at_once(&lab, 5)? {
        assert_eq!(answer.status, 422, "{}", answer.text());
    }
    // A waiter that comes after all others have gone with the error reads the object itself.
    let objects = lab.store.sent().objects;
    ensure!((1..5).contains(&objects), "{objects} objects");
    assert_eq!(lab.get_by("first", PIPELINE)?.status, 422);
    assert_eq!(lab.store.sent().objects, objects + 1);
    Ok(())
}

/// Steps after a cached value are shared, too.
#[test]
fn requests_that_continue_from_a_cached_value_share_its_steps() -> Result<()> {
    const REQUESTS: usize = 16;
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    // Long enough that all requests come before the end of the first computation.
    let longer = format!("{PIPELINE} | resize(3000, 3000) | resize(3001, 3001) | resize(32, 32)");
    let answers: Vec<Response> = thread::scope(|scope| {
        let asked: Vec<_> = (0..REQUESTS)
            .map(|index| {
                let (lab, longer, key) = (&lab, &longer, format!("tenant{}", index % 3));
                scope.spawn(move || lab.get_by(&key, longer))
            })
            .collect();
        let answers = asked
            .into_iter()
            .map(|thread| thread.join().ok().context("a request panicked")?);
        answers.collect::<Result<_>>()
    })?;
    let value = pixels(expected(&lab.photo, &longer));
    let mut computed = 0;
    for answer in &answers {
        assert_eq!((answer.status, &answer.body), (200, &value));
        computed += usize::from(origin(answer)? == "prefix=3");
    }
    ensure!((1..REQUESTS / 2).contains(&computed), "{computed} computations");
    Ok(())
}

/// With or without a cache.
#[test]
fn tenants_who_share_nothing_compute_for_themselves() -> Result<()> {
    let lab = CacheLab::new(&["--cache-scope=tenant"])?;
    lab.store.set_stalled(true);
    thread::scope(|scope| {
        let asked: Vec<_> = (0..3)
            .map(|tenant| {
                let (lab, key) = (&lab, format!("tenant{tenant}"));
                scope.spawn(move || lab.get_by(&key, PIPELINE))
            })
            .collect();
        let waited = lab.store.wait_until(|sent| sent.objects == 3);
        lab.store.set_stalled(false);
        waited?;
        for thread in asked {
            let answer = thread.join().ok().context("a request panicked")??;
            ensure!(origin(&answer)? == "computed");
        }
        anyhow::Ok(())
    })
}
