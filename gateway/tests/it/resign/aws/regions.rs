//! Buckets of other regions than that of the gateway: it learns the region from the first answer, and asks there from then on.

use std::thread;

use anyhow::{Result, ensure};
use pushdown_testkit::MovedAnswer;

use super::{Lab, OTHER_REGION, refusals};
use crate::it::resign::BUCKET;

/// A host of a bucket in a region.
fn host(bucket: &str, region: &str) -> String {
    format!("{}.s3.{region}.localhost", bucket.trim_start_matches('/'))
}

#[test]
fn the_region_of_a_bucket_is_learnt_once() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let mut number = 0;
    for moved in [MovedAnswer::Redirect, MovedAnswer::Malformed] {
        lab.front.set_moved_answer(moved);
        for (method, is_object) in [
            ("GET", true),
            ("HEAD", true),
            ("DELETE", true),
            ("GET", false),
            ("HEAD", false),
        ] {
            let name = format!("{moved:?} {method} {is_object}");
            let bucket = format!("/elsewhere-{number}");
            number += 1;
            lab.create_elsewhere(&bucket)?;
            let before = refusals(&lab.front.record());
            for round in 0..3 {
                let key = if is_object {
                    format!("/{round}")
                } else {
                    String::new()
                };
                let answer = lab.through.call(method, &format!("{bucket}{key}"))?;
                ensure!(answer.status < 300, "{name}, {round}: {answer:?}");
            }
            let record = lab.front.record();
            assert_eq!(refusals(&record), before + 1, "{name}: {record:?}");
            assert_eq!(record.requests_to(&host(&bucket, OTHER_REGION)), 3, "{name}");
        }
    }
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

#[test]
fn a_bucket_that_moves_again_is_found() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let bucket = "/elsewhere";
    lab.create_elsewhere(bucket)?;
    for (moves, region) in [OTHER_REGION, "ap-south-1", "us-east-1"].into_iter().enumerate() {
        lab.front.move_bucket("elsewhere", region);
        for key in 0..3 {
            let answer = lab.through.call("GET", &format!("{bucket}/{key}"))?;
            assert_eq!((answer.status, answer.text().as_str()), (200, "body"), "{region}");
        }
        let record = lab.front.record();
        assert_eq!(refusals(&record), moves + 1, "{region}: {record:?}");
        ensure!(
            record.requests_to(&host(bucket, region)) >= 3,
            "{region}: {record:?}"
        );
    }
    Ok(())
}

#[test]
fn concurrent_first_requests_all_succeed() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    lab.create_elsewhere("/elsewhere")?;
    let answers = thread::scope(|scope| {
        let read = |key: usize| lab.through.call("GET", &format!("/elsewhere/{}", key % 3));
        let threads: Vec<_> = (0..12).map(|key| scope.spawn(move || read(key))).collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Result<Vec<_>>>()
    })?;
    ensure!(
        answers.len() == 12 && answers.iter().all(|answer| answer.status == 200),
        "{answers:?}"
    );
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

/// The host is that of the target: the region of a source does not matter.
#[test]
fn objects_are_copied_between_regions() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    lab.create_elsewhere("/elsewhere")?;
    for (source, target) in [
        ("/elsewhere/0", format!("{BUCKET}/copy")),
        ("/photos/copy", "/elsewhere/copy".to_owned()),
    ] {
        let request = lab
            .through
            .request("PUT", &target)
            .header("x-amz-copy-source", source);
        let answer = lab.through.send(request)?;
        ensure!(answer.status == 200, "{target}: {answer:?}");
        lab.check_object(&target, b"body")?;
    }
    assert_eq!(refusals(&lab.front.record()), 1);
    Ok(())
}
