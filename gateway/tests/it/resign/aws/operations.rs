//! Operations of S3, with the answers that the store itself gives.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::Backend;

use super::{BUCKET_HOST, HOME_HOST, LIFETIME, Lab, OTHER_REGION, refusals};
use crate::it::parity::compare;
use crate::it::resign::{BUCKET, operations};

#[test]
fn seaweedfs_answers_as_it_does_directly() -> Result<()> {
    let Some(lab) = Lab::start_with(Backend::SeaweedFs, LIFETIME, &[])? else {
        return Ok(());
    };
    operations::create_objects(&lab.direct)?;
    let mut differences = operations::differences(&lab.direct, &lab.through)?;
    let record = lab.front.record();
    ensure!(record.refusals.is_empty(), "{record:?}");
    let hosts: Vec<_> = record.hosts.keys().map(String::as_str).collect();
    assert_eq!(hosts, [BUCKET_HOST, HOME_HOST]);

    // The same, once the bucket is in another region.
    lab.front
        .move_bucket(BUCKET.trim_start_matches('/'), OTHER_REGION);
    for (name, operation) in operations::ALL {
        let name = format!("{name}, {OTHER_REGION}");
        let expected = operation(&lab.direct).with_context(|| format!("{name}: direct"))?;
        let found = operation(&lab.through).with_context(|| name.clone())?;
        differences.extend(compare::write_difference(&name, &expected, &found));
    }
    assert_eq!(refusals(&lab.front.record()), 1);
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// No certificate of AWS covers the host of such a bucket.
#[test]
fn a_bucket_with_a_dot_is_addressed_by_its_path() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    let bucket = "/my.photos";
    lab.direct.store(bucket, "")?;
    let check = || -> Result<()> {
        for client in [lab.through.clone(), lab.through.presigned()] {
            let target = format!("{bucket}/a%20key");
            client.store(&target, "body")?;
            assert_eq!(client.call("GET", &target)?.text(), "body");
            assert_eq!(client.call("HEAD", bucket)?.status, 200);
            let list = client.call("GET", &format!("{bucket}?list-type=2"))?.text();
            ensure!(list.contains("<Key>a key</Key>"), "{list}");
            assert_eq!(client.call("DELETE", &target)?.status, 204);
        }
        Ok(())
    };
    check()?;
    let record = lab.front.record();
    ensure!(
        record.refusals.is_empty() && record.hosts.keys().eq([HOME_HOST]),
        "{record:?}"
    );

    lab.front.move_bucket("my.photos", OTHER_REGION);
    assert_eq!(lab.through.call("HEAD", bucket)?.status, 200);
    check()?;
    let record = lab.front.record();
    ensure!(refusals(&record) == 1, "{record:?}");
    ensure!(
        record.hosts.keys().eq(["s3.eu-central-1.localhost", HOME_HOST]),
        "{record:?}"
    );
    Ok(())
}

/// A list of buckets is no request for one bucket, and the regions of buckets do not change where it goes.
#[test]
fn buckets_are_listed_in_the_home_region() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    lab.create_elsewhere("/elsewhere")?;
    assert_eq!(lab.through.call("GET", "/elsewhere/0")?.status, 200);
    for client in [lab.through.clone(), lab.through.presigned()] {
        let answer = client.call("GET", "/")?;
        let text = answer.text();
        ensure!(answer.status == 200, "{text}");
        for name in ["photos", "elsewhere"] {
            ensure!(text.contains(&format!("<Name>{name}</Name>")), "{text}");
        }
    }
    assert_eq!(lab.front.record().requests_to(HOME_HOST), 2);
    Ok(())
}
