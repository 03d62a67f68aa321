//! Operations of S3 that run once at the store and then through the gateway, from the same initial state.

mod odd_keys;

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use pushdown_testkit::{Request, Response};

use super::{BUCKET, Client};
use crate::it::parity::compare;
use odd_keys::Spelling;

/// Sends a sequence of requests, and returns the answers.
pub(super) type Operation = fn(&Client) -> Result<Vec<Response>>;

pub(super) const ALL: [(&str, Operation); 9] = [
    ("reads", reads),
    ("ranges", ranges),
    ("conditions", conditions),
    ("lists", lists),
    ("upload", upload),
    ("multipart upload", multipart),
    ("copy", copy),
    ("deletes", deletes),
    ("tags", tags),
];

/// Creates the objects that operations read.
pub(super) fn create_objects(client: &Client) -> Result<()> {
    for (key, body) in [
        ("plain", "0123456789abcdef"),
        ("empty", ""),
        ("list/a%20b", "1"),
        ("list/a%2Bb", "2"),
        ("list/deep/er", "3"),
        ("list/deep/still", "4"),
        ("list/z", "5"),
    ] {
        client.store(&path(key), body)?;
    }
    Ok(())
}

/// The differences between the answers of a store and those of a gateway in front of it, to clients of all styles.
pub(super) fn differences(direct: &Client, through: &Client) -> Result<Vec<String>> {
    let mut differences = Vec::new();
    for (name, operation) in ALL {
        let expected = operation(direct).with_context(|| format!("{name}: direct"))?;
        for (style, client) in through.styles() {
            let name = format!("{name}, {style}");
            let found = operation(&client).with_context(|| name.clone())?;
            differences.extend(compare::write_difference(&name, &expected, &found));
        }
    }
    let expected = odd_keys::send(direct, Spelling::Canonical).context("odd keys: direct")?;
    for (style, client) in through.styles() {
        for spelling in [Spelling::Canonical, Spelling::Other] {
            let name = format!("odd keys, {spelling:?}, {style}");
            let found = odd_keys::send(&client, spelling).with_context(|| name.clone())?;
            differences.extend(compare::write_difference(&name, &expected, &found));
        }
    }
    Ok(differences)
}

fn path(key: &str) -> String {
    format!("{BUCKET}/{key}")
}

/// Signs the requests and sends them one after the other.
fn send(client: &Client, requests: impl IntoIterator<Item = Request>) -> Result<Vec<Response>> {
    requests.into_iter().map(|request| client.send(request)).collect()
}

fn reads(client: &Client) -> Result<Vec<Response>> {
    let requests = [
        ("GET", "plain"),
        ("HEAD", "plain"),
        ("GET", "empty"),
        ("HEAD", "empty"),
        ("GET", "missing"),
        ("HEAD", "missing"),
        ("GET", "plain?response-content-type=text%2Fplain"),
        ("GET", "plain?partNumber=1"),
    ];
    let requests = requests.map(|(method, key)| client.request(method, &path(key)));
    send(client, requests)
}

fn ranges(client: &Client) -> Result<Vec<Response>> {
    let ranges = [
        "bytes=2-5",
        "bytes=10-",
        "bytes=-4",
        "bytes=8-400",
        "bytes=400-500",
        "bytes=a-b",
    ];
    let get = || client.request("GET", &path("plain"));
    let mut answers = send(client, ranges.map(|range| get().header("Range", range)))?;
    for range in ranges {
        let unsigned = client.sign(get())?.header("Range", range);
        answers.push(unsigned.send(client.address)?);
    }
    Ok(answers)
}

fn conditions(client: &Client) -> Result<Vec<Response>> {
    let head = client.call("HEAD", &path("plain"))?;
    let etag = head.header("etag").context("no ETag")?;
    let conditions = [
        ("If-Match", etag),
        ("If-Match", "\"other\""),
        ("If-None-Match", etag),
        ("If-None-Match", "\"other\""),
        ("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT"),
        ("If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:10 GMT"),
    ];
    let requests = conditions.map(|(name, value)| client.request("GET", &path("plain")).header(name, value));
    send(client, requests)
}

fn lists(client: &Client) -> Result<Vec<Response>> {
    let queries = [
        "list-type=2&prefix=list%2F",
        "prefix=list%2F&list-type=2&delimiter=%2F",
        "list-type=2&prefix=list%2Fa%20b",
        "list-type=2&prefix=list%2Fa%2Bb",
        "list-type=2&prefix=list%2F&start-after=list%2Fdeep%2Fer",
        "encoding-type=url&list-type=2&prefix=list%2F",
        "list-type=2&prefix=list%2F&max-keys=2",
        "list-type=2&prefix=nothing%2F",
        "prefix=list%2F&marker=list%2Fdeep%2Fer",
    ];
    let mut answers = send(
        client,
        queries.map(|query| client.request("GET", &format!("{BUCKET}?{query}"))),
    )?;
    answers.push(client.call("HEAD", BUCKET)?);
    answers.push(client.call("GET", "/")?);
    Ok(answers)
}

fn upload(client: &Client) -> Result<Vec<Response>> {
    let key = path("w/new%20object");
    let put = client
        .request("PUT", &key)
        .header("Content-Type", "image/jpeg")
        .header("Cache-Control", "max-age=60")
        .header("x-amz-meta-lens", "none  at all")
        .body("pixels");
    let replace = client.request("PUT", &key).body("other pixels");
    let requests = [
        put,
        client.request("HEAD", &key),
        replace,
        client.request("GET", &key),
        client.request("DELETE", &key),
        client.request("GET", &key),
    ];
    send(client, requests)
}

fn multipart(client: &Client) -> Result<Vec<Response>> {
    let key = path("w/parts");
    let created = client.call("POST", &format!("{key}?uploads"))?;
    let id = created.element("UploadId").context("no UploadId")?;
    let mut answers = vec![created];
    let mut list = String::from("<CompleteMultipartUpload>");
    for (number, body) in [(1, vec![b'1'; 5 << 20]), (2, vec![b'2'; 100])] {
        let answer = client.put(&format!("{key}?partNumber={number}&uploadId={id}"), body)?;
        let etag = answer.header("etag").context("a part without an ETag")?;
        write!(
            list,
            "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
        )?;
        answers.push(answer);
    }
    list.push_str("</CompleteMultipartUpload>");
    let upload = format!("{key}?uploadId={id}");
    let requests = [
        client.request("GET", &upload),
        client.request("POST", &upload).body(list),
        client.request("HEAD", &key),
        client
            .request("GET", &key)
            .header("Range", "bytes=5242870-5242890"),
        client.request("DELETE", &key),
    ];
    answers.extend(send(client, requests)?);
    let created = client.call("POST", &format!("{key}?uploads"))?;
    let id = created.element("UploadId").context("no UploadId")?;
    answers.push(client.call("DELETE", &format!("{key}?uploadId={id}"))?);
    Ok(answers)
}

fn copy(client: &Client) -> Result<Vec<Response>> {
    let (source, target) = (path("list/a%20b"), path("w/copy"));
    let copy = |source: &str| {
        let request = client.request("PUT", &target);
        request.header("x-amz-copy-source", source)
    };
    let requests = [
        copy(&source),
        client.request("GET", &target),
        copy(&path("missing")),
        client.request("DELETE", &target),
    ];
    send(client, requests)
}

fn deletes(client: &Client) -> Result<Vec<Response>> {
    for key in ["w/d1", "w/d2", "w/d3"] {
        client.store(&path(key), key)?;
    }
    let list = "<Delete><Object><Key>w/d1</Key></Object><Object><Key>w/d2</Key></Object></Delete>";
    let requests = [
        // With a checksum, as SDKs send it: grants need one if the signature does not cover the body.
        client
            .request("POST", &format!("{BUCKET}?delete"))
            .header("Content-MD5", "eODatrbfwn9a3PnX0JmYZg==")
            .body(list),
        client.request("GET", &path("w/d1")),
        client.request("DELETE", &path("w/d3")),
        client.request("DELETE", &path("w/d3")),
    ];
    send(client, requests)
}

fn tags(client: &Client) -> Result<Vec<Response>> {
    let key = path("w/tagged");
    client.store(&key, "x")?;
    let tags = "<Tagging><TagSet><Tag><Key>kind</Key><Value>photo</Value></Tag></TagSet></Tagging>";
    let resource = format!("{key}?tagging");
    let requests = [
        client.request("PUT", &resource).body(tags),
        client.request("GET", &resource),
        client.request("DELETE", &resource),
        client.request("GET", &resource),
        client.request("DELETE", &key),
    ];
    send(client, requests)
}
