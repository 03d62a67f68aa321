//! Credentials of sessions: they are renewed before they end, and once the store refuses them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Raw, Response};

use super::{BUCKET_HOST, Lab, check_slow_down};
use crate::it::resign::BUCKET;
use crate::it::resign::pipelines::{KEYS, RESIZE, batch_request, get, send_batch, store_photos};

/// Of sessions that end within the test, at a whole second.
const SHORT_LIFETIME: Duration = Duration::from_secs(4);

fn read(lab: &Lab) -> Result<Response> {
    lab.through.call("GET", &format!("{BUCKET}/{}", KEYS[0]))
}

/// Checks that each sample of a batch has a value.
fn check_batch(lab: &Lab) -> Result<()> {
    for row in send_batch(&lab.through, &batch_request(&lab.through, RESIZE)?)? {
        row.context("a sample without a value")?;
    }
    Ok(())
}

#[test]
fn requests_over_several_lifetimes_all_succeed() -> Result<()> {
    let Some(lab) = Lab::start_with(Backend::Embedded, SHORT_LIFETIME, &[])? else {
        return Ok(());
    };
    store_photos(&lab.direct)?;
    let start = Instant::now();
    let mut round = 0;
    while start.elapsed() < SHORT_LIFETIME * 3 {
        let key = format!("{BUCKET}/round/{}", round % 5);
        let answers = [
            read(&lab)?,
            lab.through.call("HEAD", BUCKET)?,
            lab.through.put(&key, "body")?,
            get(&lab.through, KEYS[1], RESIZE, "0")?,
        ];
        for answer in answers {
            ensure!(answer.status == 200, "round {round}: {answer:?}");
        }
        check_batch(&lab).with_context(|| format!("round {round}"))?;
        round += 1;
        // The pace of a client, not a wait for an event.
        thread::sleep(Duration::from_millis(20));
    }
    let record = lab.front.record();
    ensure!(record.refusals.is_empty(), "{record:?}");
    // Three lifetimes pass, and each session is replaced when half of its life is over.
    let issued = lab.front.issued().len();
    ensure!((4..=16).contains(&issued), "{issued} sessions");
    Ok(())
}

/// A token that the gateway has to believe valid.
#[test]
fn a_refused_token_is_replaced_once() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    store_photos(&lab.direct)?;
    let target = format!("{BUCKET}/{}", KEYS[0]);
    let operations: [(&str, &dyn Fn() -> Result<()>); 5] = [
        ("GET", &|| check_ok(&read(&lab)?)),
        ("HEAD", &|| check_ok(&lab.through.call("HEAD", &target)?)),
        ("list", &|| check_ok(&lab.through.call("GET", BUCKET)?)),
        ("pipeline", &|| {
            check_ok(&get(&lab.through, KEYS[1], RESIZE, "0")?)
        }),
        ("batch", &|| check_batch(&lab)),
    ];
    check_ok(&read(&lab)?)?;
    for (name, operation) in operations {
        let issued = lab.front.issued().len();
        lab.front.revoke_sessions();
        for _ in 0..3 {
            operation().with_context(|| name.to_owned())?;
        }
        assert_eq!(lab.front.issued().len(), issued + 1, "{name}");
    }
    Ok(())
}

fn check_ok(answer: &Response) -> Result<()> {
    ensure!(answer.status == 200, "{answer:?}");
    Ok(())
}

#[test]
fn uploads_with_a_refused_token() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let target = format!("{BUCKET}/new");
    let body = vec![7; 50_000];
    let put = || lab.through.request("PUT", &target).body(body.clone());
    check_ok(&lab.through.send(put())?)?;

    lab.front.revoke_sessions();
    let request = lab.through.sign(put())?.header("Expect", "100-continue");
    let mut raw = Raw::connect(lab.through.address)?;
    raw.write(&request.head())?;
    assert_eq!(raw.head()?.status, 100);
    raw.write(&request.body)?;
    check_ok(&raw.read("PUT")?)?;

    // What has left cannot be sent again.
    lab.front.revoke_sessions();
    check_slow_down(&lab.through.send(put())?)?;
    check_ok(&lab.through.send(put())?)?;
    lab.check_object(&target, &body)
}

#[test]
fn concurrent_requests_share_one_renewal() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    store_photos(&lab.direct)?;
    check_ok(&read(&lab)?)?;
    let issued = lab.front.issued().len();
    lab.front.revoke_sessions();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..12).map(|_| scope.spawn(|| read(&lab))).collect();
        threads.into_iter().try_for_each(|thread| {
            let answer = thread.join().ok().context("a thread failed")??;
            check_ok(&answer)
        })
    })?;
    assert_eq!(lab.front.issued().len(), issued + 1);
    ensure!(lab.front.record().requests_to(BUCKET_HOST) > 12);
    Ok(())
}
