//! A newly created bucket: the store redirects requests for it to another address for a while.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::Raw;

use super::{Lab, check_slow_down};
use crate::it::resign::BUCKET;
use crate::it::resign::pipelines::{KEYS, RESIZE, batch_request, get, send_batch, store_photos};

#[test]
fn a_newly_created_bucket_is_slow_and_works_later() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    store_photos(&lab.direct)?;
    let target = format!("{BUCKET}/{}", KEYS[0]);
    let redirect_target = lab.front.redirect_target().to_string();
    lab.front.set_newly_created("photos", true);
    for (style, client) in lab.clients() {
        let requests = [
            client.request("GET", &target),
            client.request("HEAD", &target),
            client.request("HEAD", BUCKET),
            client.request("GET", &format!("{BUCKET}?list-type=2")),
            client.request("DELETE", &format!("{BUCKET}/none")),
            client.request("PUT", &format!("{BUCKET}/new")).body("new"),
            client
                .request("GET", &target)
                .header("x-pushdown-pipeline", RESIZE),
        ];
        for request in requests {
            let name = format!("{} {}, {style}", request.method, request.target);
            let answer = client.send(request)?;
            check_slow_down(&answer).with_context(|| name.clone())?;
            let shown = format!("{:?} {}", answer.headers, answer.text());
            ensure!(!shown.contains(&redirect_target), "{name}: {shown}");
        }
    }
    for row in send_batch(&lab.through, &batch_request(&lab.through, RESIZE)?)? {
        let error = row.err().context("a value of a newly created bucket")?;
        ensure!(error.code == "SlowDown", "{error}");
        ensure!(!error.to_string().contains(&redirect_target), "{error}");
    }
    lab.front.set_newly_created("photos", false);
    assert_eq!(lab.through.call("GET", &target)?.status, 200);
    assert_eq!(get(&lab.through, KEYS[0], RESIZE, "0")?.status, 200);
    assert_eq!(lab.direct.call("GET", &format!("{BUCKET}/new"))?.status, 404);
    assert_eq!(lab.front.redirected_connections(), 0);
    Ok(())
}

/// The client keeps its body: it gets the refusal instead of a 100.
#[test]
fn an_upload_that_waits_is_refused_without_its_body() -> Result<()> {
    let Some(lab) = Lab::start()? else {
        return Ok(());
    };
    lab.front.set_newly_created("photos", true);
    let upload = lab
        .through
        .request("PUT", &format!("{BUCKET}/new"))
        .body(vec![7; 10_000]);
    let request = lab.through.sign(upload)?.header("Expect", "100-continue");
    let mut raw = Raw::connect(lab.through.address)?;
    raw.write(&request.head())?;
    let answer = raw.read("PUT")?;
    check_slow_down(&answer)?;
    assert_eq!(answer.informational, [0; 0]);
    Ok(())
}
