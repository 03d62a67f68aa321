//! Requests that change nothing: the same request is sent to the store and to the gateway.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use pushdown_testkit::{Keys, Payload, Request};

use super::{BUCKET, Lab, ODD_KEYS};

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

type Cases = Vec<(&'static str, Request)>;

pub(super) fn requests(lab: &Lab) -> Result<Cases> {
    let mut cases = Vec::new();
    plain(lab, &mut cases)?;
    ranges(lab, &mut cases)?;
    conditions(lab, &mut cases)?;
    lists(lab, &mut cases)?;
    sub_resources(lab, &mut cases)?;
    refusals(lab, &mut cases)?;
    signing_variants(lab, &mut cases)?;
    Ok(cases)
}

fn plain(lab: &Lab, cases: &mut Cases) -> Result<()> {
    for (name, method, key) in [
        ("get", "GET", "/plain"),
        ("head", "HEAD", "/plain"),
        ("get of an empty object", "GET", "/empty"),
        ("head of an empty object", "HEAD", "/empty"),
        ("get of a large object", "GET", "/large"),
        ("get of a missing key", "GET", "/missing"),
        ("head of a missing key", "HEAD", "/missing"),
        ("head of the bucket", "HEAD", ""),
        ("get with a slash at the end", "GET", "/plain/"),
        ("get with an empty query", "GET", "/plain?"),
    ] {
        cases.push((name, lab.signed(method, &format!("{BUCKET}{key}"))?));
    }
    for key in ODD_KEYS {
        cases.push((
            "get of an odd key",
            lab.signed("GET", &format!("{BUCKET}/{key}"))?,
        ));
    }
    for (name, key) in [
        ("get of a key with two slashes", "//two//slashes".to_owned()),
        (
            "get of a key with an encoded slash",
            "/deep%2Fer%2Fstill".to_owned(),
        ),
        ("get of a key with a bare plus", "/with+plus".to_owned()),
        (
            "get of a key with bare reserved characters",
            "/semi;colon,comma=equals".to_owned(),
        ),
        ("get of a key with dot segments", "/a/../plain".to_owned()),
        ("get of a very long key", format!("/{}", "k".repeat(1000))),
        ("get of a key that is too long", format!("/{}", "k".repeat(1100))),
    ] {
        cases.push((name, lab.signed("GET", &format!("{BUCKET}{key}"))?));
    }
    cases.push(("list of buckets", lab.signed("GET", "/")?));
    Ok(())
}

fn ranges(lab: &Lab, cases: &mut Cases) -> Result<()> {
    for (name, method, key, range) in [
        ("a range", "GET", "plain", "bytes=2-5"),
        ("an open range", "GET", "plain", "bytes=10-"),
        ("a suffix", "GET", "plain", "bytes=-4"),
        ("a suffix longer than the object", "GET", "plain", "bytes=-400"),
        ("a range past the end", "GET", "plain", "bytes=8-400"),
        (
            "a range that begins past the end",
            "GET",
            "plain",
            "bytes=400-500",
        ),
        ("a range of bad syntax", "GET", "plain", "bytes=a-b"),
        ("a range of another unit", "GET", "plain", "lines=1-2"),
        ("head with a range", "HEAD", "plain", "bytes=2-5"),
        (
            "head with a range that begins past the end",
            "HEAD",
            "plain",
            "bytes=400-",
        ),
        ("a range of an empty object", "GET", "empty", "bytes=0-3"),
    ] {
        let request = lab
            .request(method, &format!("{BUCKET}/{key}"))
            .header("Range", range);
        cases.push((name, lab.keys().sign(request, Payload::Signed)?));
    }
    let unsigned = lab
        .signed("GET", &format!("{BUCKET}/plain"))?
        .header("Range", "bytes=1-2");
    cases.push(("an unsigned range", unsigned));
    cases.push((
        "a part",
        lab.signed("GET", &format!("{BUCKET}/plain?partNumber=1"))?,
    ));
    Ok(())
}

fn conditions(lab: &Lab, cases: &mut Cases) -> Result<()> {
    let head = lab
        .signed("HEAD", &format!("{BUCKET}/plain"))?
        .send(lab.store.address)?;
    let tag = head.header("etag").unwrap_or("\"none\"").to_owned();
    for (name, method, header, value) in [
        ("if-match", "GET", "If-Match", tag.as_str()),
        ("if-match of another", "GET", "If-Match", "\"other\""),
        ("if-none-match", "GET", "If-None-Match", tag.as_str()),
        ("if-none-match of another", "GET", "If-None-Match", "\"other\""),
        ("if-none-match with head", "HEAD", "If-None-Match", tag.as_str()),
        (
            "if-modified-since",
            "GET",
            "If-Modified-Since",
            "Fri, 01 Jan 2100 00:00:00 GMT",
        ),
        (
            "if-unmodified-since",
            "GET",
            "If-Unmodified-Since",
            "Thu, 01 Jan 1970 00:00:10 GMT",
        ),
        ("if-range", "GET", "If-Range", tag.as_str()),
    ] {
        let request = lab
            .request(method, &format!("{BUCKET}/plain"))
            .header(header, value);
        cases.push((name, lab.keys().sign(request, Payload::Signed)?));
    }
    let duplicated = lab.signed("GET", &format!("{BUCKET}/plain"))?;
    let duplicated = duplicated
        .header("X-Twice", "1")
        .header("x-twice", "2")
        .header("Accept-Encoding", "gzip");
    cases.push(("duplicated headers", duplicated));
    Ok(())
}

fn lists(lab: &Lab, cases: &mut Cases) -> Result<()> {
    for (name, query) in [
        ("list, version 1", ""),
        ("list, version 2", "?list-type=2"),
        ("list with a prefix", "?list-type=2&prefix=with"),
        ("list with a delimiter", "?delimiter=%2F&list-type=2"),
        ("list of a page", "?list-type=2&max-keys=2"),
        ("list of nothing", "?list-type=2&max-keys=0"),
        ("list after a key", "?list-type=2&start-after=large"),
        ("list with encoded keys", "?encoding-type=url&list-type=2"),
        ("list with a wrong count", "?list-type=2&max-keys=minus"),
        ("list of versions", "?versions"),
        ("list of uploads", "?uploads"),
    ] {
        cases.push((name, lab.signed("GET", &format!("{BUCKET}{query}"))?));
    }
    Ok(())
}

fn sub_resources(lab: &Lab, cases: &mut Cases) -> Result<()> {
    for query in [
        "acl",
        "tagging",
        "location",
        "policy",
        "cors",
        "lifecycle",
        "versioning",
        "encryption",
        "website",
        "object-lock",
        "notification",
        "logging",
        "nonsense",
    ] {
        cases.push((
            "sub-resource of the bucket",
            lab.signed("GET", &format!("{BUCKET}?{query}"))?,
        ));
    }
    for query in [
        "acl",
        "tagging",
        "attributes",
        "torrent",
        "retention",
        "versionId=none",
        "uploadId=none",
    ] {
        cases.push((
            "sub-resource of an object",
            lab.signed("GET", &format!("{BUCKET}/plain?{query}"))?,
        ));
    }
    let preflight = lab
        .request("OPTIONS", &format!("{BUCKET}/plain"))
        .header("Origin", "https://example.com")
        .header("Access-Control-Request-Method", "GET");
    cases.push(("preflight", preflight));
    let cross = lab
        .request("GET", &format!("{BUCKET}/plain"))
        .header("Origin", "https://example.com");
    cases.push((
        "get from another origin",
        lab.keys().sign(cross, Payload::Signed)?,
    ));
    Ok(())
}

fn refusals(lab: &Lab, cases: &mut Cases) -> Result<()> {
    let object = format!("{BUCKET}/plain");
    let get = || lab.request("GET", &object);
    cases.push(("an anonymous get", get()));
    cases.push(("an anonymous list", lab.request("GET", BUCKET)));
    let wrong = Keys {
        secret: "wrong".to_owned(),
        ..lab.keys().clone()
    };
    cases.push(("a wrong signature", wrong.sign(get(), Payload::Signed)?));
    cases.push((
        "an unknown key",
        Keys::new("nobody", "knows").sign(get(), Payload::Signed)?,
    ));
    let stale = lab.keys().with_time(SystemTime::now() - DAY);
    cases.push(("a signature of yesterday", stale.sign(get(), Payload::Signed)?));
    cases.push(("an expired presigned get", stale.presign(get(), HOUR)?));
    cases.push(("a missing bucket", lab.signed("GET", "/parity-missing/key")?));
    cases.push((
        "a list of a missing bucket",
        lab.signed("GET", "/parity-missing?list-type=2")?,
    ));
    cases.push(("an impossible bucket", lab.signed("GET", "/No_Such/key")?));
    cases.push(("an unknown method", lab.signed("BREW", &object)?));
    cases.push(("a patch", lab.signed("PATCH", &object)?));
    cases.push((
        "garbled authorization",
        get().header("Authorization", "AWS4-HMAC-SHA256 x"),
    ));
    let mut tampered = lab.signed("GET", &object)?;
    tampered.target = format!("{BUCKET}/large");
    cases.push(("a signature for another key", tampered));
    Ok(())
}

fn signing_variants(lab: &Lab, cases: &mut Cases) -> Result<()> {
    let object = format!("{BUCKET}/plain");
    cases.push((
        "a presigned get",
        lab.keys().presign(lab.request("GET", &object), HOUR)?,
    ));
    cases.push((
        "a presigned head",
        lab.keys().presign(lab.request("HEAD", &object), HOUR)?,
    ));
    let typed = lab.request("GET", &format!("{object}?response-content-type=text%2Fplain"));
    cases.push((
        "a presigned get with its own type",
        lab.keys().presign(typed, HOUR)?,
    ));
    let ranged = lab.request("GET", &object).header("Range", "bytes=3-4");
    cases.push((
        "a presigned get with a signed range",
        lab.keys().presign(ranged, HOUR)?,
    ));
    cases.push((
        "an unsigned payload",
        lab.keys().sign(lab.request("GET", &object), Payload::Unsigned)?,
    ));
    let own_header = lab
        .request("GET", &object)
        .header("X-Pushdown-Split", "full")
        .header("Accept", "*/*");
    cases.push((
        "a signed X-Pushdown header without a pipeline",
        lab.keys().sign(own_header, Payload::Signed)?,
    ));
    let hop = lab
        .signed("GET", &object)?
        .header("Connection", "keep-alive")
        .header("Keep-Alive", "timeout=5");
    cases.push(("hop-by-hop headers", hop));
    Ok(())
}
