//! Requests that change something: each scenario runs once at the store and once through the gateway, from the same
//! initial state.

use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use pushdown_testkit::{Payload, Request, Response};

use super::{BUCKET, Lab};

/// Sends a sequence of requests to one address and returns the answers.
type Scenario = fn(&Lab, SocketAddr) -> Result<Vec<Response>>;

pub(super) fn scenarios() -> Vec<(&'static str, Scenario)> {
    vec![
        ("put and get", put_and_get),
        ("put with metadata", put_with_metadata),
        ("put of an empty object", put_empty),
        ("put twice", put_again),
        ("presigned put", presigned_put),
        ("put with an unsigned payload", |lab, to| {
            put_as(lab, to, Payload::Unsigned)
        }),
        ("put in signed chunks", |lab, to| put_as(lab, to, Payload::Chunks)),
        ("put in signed chunks with a trailer", |lab, to| {
            put_as(lab, to, Payload::ChunksAndTrailer)
        }),
        ("put in unsigned chunks with a trailer", |lab, to| {
            put_as(lab, to, Payload::Trailer)
        }),
        ("put with a wrong digest", put_with_a_wrong_digest),
        ("put into an impossible bucket", put_into_an_impossible_bucket),
        ("put of odd keys", put_odd_keys),
        ("copy", copy),
        ("copy of a missing source", copy_of_nothing),
        ("delete", delete),
        ("delete of many", delete_many),
        ("multipart", multipart),
        ("multipart, aborted", multipart_aborted),
        ("multipart of an unknown upload", multipart_unknown),
        ("create and delete a bucket", bucket),
        ("tags", tags),
    ]
}

/// Sends the requests one after the other.
fn run(to: SocketAddr, requests: impl IntoIterator<Item = Result<Request>>) -> Result<Vec<Response>> {
    requests.into_iter().map(|request| request?.send(to)).collect()
}

fn get(lab: &Lab, key: &str) -> Result<Request> {
    lab.signed("GET", &format!("{BUCKET}/{key}"))
}

fn put(lab: &Lab, key: &str, body: &str) -> Result<Request> {
    lab.put(&format!("{BUCKET}/{key}"), body)
}

fn remove(lab: &Lab, key: &str) -> Result<Request> {
    lab.signed("DELETE", &format!("{BUCKET}/{key}"))
}

fn put_and_get(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    run(
        to,
        [
            put(lab, "w/one", "first"),
            get(lab, "w/one"),
            remove(lab, "w/one"),
            get(lab, "w/one"),
        ],
    )
}

fn put_with_metadata(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let request = lab
        .request("PUT", &format!("{BUCKET}/w/meta"))
        .header("Content-Type", "image/jpeg")
        .header("X-Amz-Meta-Camera", "pinhole")
        .header("x-amz-meta-lens", "none at all")
        .header("Cache-Control", "max-age=60")
        .body("pixels");
    let put = lab.keys().sign(request, Payload::Signed);
    let head = lab.signed("HEAD", &format!("{BUCKET}/w/meta"));
    run(to, [put, head, get(lab, "w/meta"), remove(lab, "w/meta")])
}

fn put_empty(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    run(
        to,
        [
            put(lab, "w/empty", ""),
            get(lab, "w/empty"),
            remove(lab, "w/empty"),
        ],
    )
}

fn put_again(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    run(
        to,
        [
            put(lab, "w/a", "first"),
            put(lab, "w/a", "second"),
            get(lab, "w/a"),
            remove(lab, "w/a"),
        ],
    )
}

fn presigned_put(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let request = lab.request("PUT", &format!("{BUCKET}/w/presigned"));
    let put = lab
        .keys()
        .presign(request, Duration::from_hours(1))
        .map(|request| request.body("presigned"));
    run(to, [put, get(lab, "w/presigned"), remove(lab, "w/presigned")])
}

fn put_as(lab: &Lab, to: SocketAddr, payload: Payload) -> Result<Vec<Response>> {
    let body: Vec<u8> = (0..=250).cycle().take(70_000).collect();
    let request = lab.request("PUT", &format!("{BUCKET}/w/carried")).body(body);
    let put = lab.keys().sign(request, payload);
    run(to, [put, get(lab, "w/carried"), remove(lab, "w/carried")])
}

fn put_with_a_wrong_digest(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let mut request = put(lab, "w/wrong", "signed bytes")?;
    request.body = b"other bytes.".to_vec();
    run(to, [Ok(request), get(lab, "w/wrong")])
}

fn put_into_an_impossible_bucket(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    // SeaweedFS creates a missing bucket if its name is valid.
    run(to, [lab.put("/No_Such_Bucket/key", "lost")])
}

fn put_odd_keys(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let keys = [
        "w/a%20b",
        "w/a%2Bb",
        "w/%E2%82%AC",
        "w/a%26b",
        "w/x//y",
        "w/a%3Ab%40c",
    ];
    let requests = keys
        .into_iter()
        .flat_map(|key| [put(lab, key, key), get(lab, key), remove(lab, key)]);
    run(to, requests)
}

fn copy(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let source = format!("{BUCKET}/plain");
    let request = lab
        .request("PUT", &format!("{BUCKET}/w/copy"))
        .header("x-amz-copy-source", &source);
    let copy = lab.keys().sign(request, Payload::Signed);
    run(to, [copy, get(lab, "w/copy"), remove(lab, "w/copy")])
}

fn copy_of_nothing(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let source = format!("{BUCKET}/nothing");
    let request = lab
        .request("PUT", &format!("{BUCKET}/w/copy"))
        .header("x-amz-copy-source", &source);
    run(to, [lab.keys().sign(request, Payload::Signed)])
}

fn delete(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    run(
        to,
        [
            put(lab, "w/d", "x"),
            remove(lab, "w/d"),
            remove(lab, "w/d"),
            get(lab, "w/d"),
        ],
    )
}

fn delete_many(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let list = "<Delete><Object><Key>w/m1</Key></Object><Object><Key>w/m2</Key></Object></Delete>";
    let request = lab.request("POST", &format!("{BUCKET}?delete")).body(list);
    let delete = lab.keys().sign(request, Payload::Signed);
    run(
        to,
        [
            put(lab, "w/m1", "1"),
            put(lab, "w/m2", "2"),
            delete,
            get(lab, "w/m1"),
            remove(lab, "w/m2"),
        ],
    )
}

fn create_upload(lab: &Lab, to: SocketAddr) -> Result<(Response, String)> {
    let created = lab
        .signed("POST", &format!("{BUCKET}/w/parts?uploads"))?
        .send(to)?;
    let id = created
        .element("UploadId")
        .with_context(|| format!("no upload id in {created:?}"))?;
    Ok((created, id))
}

fn upload_part(lab: &Lab, id: &str, number: u8, body: Vec<u8>) -> Result<Request> {
    lab.put(
        &format!("{BUCKET}/w/parts?partNumber={number}&uploadId={id}"),
        body,
    )
}

fn multipart(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let (created, id) = create_upload(lab, to)?;
    let mut answers = vec![created];
    let object = format!("{BUCKET}/w/parts");
    let upload = format!("{object}?uploadId={id}");
    let mut list = String::from("<CompleteMultipartUpload>");
    for (number, body) in [(1, vec![b'1'; 5 << 20]), (2, vec![b'2'; 100])] {
        let answer = upload_part(lab, &id, number, body)?.send(to)?;
        let tag = answer.header("etag").context("a part without a tag")?;
        write!(
            list,
            "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
        )?;
        answers.push(answer);
        if number == 1 {
            // The embedded store lists several parts in no particular order.
            answers.push(lab.signed("GET", &upload)?.send(to)?);
        }
    }
    list.push_str("</CompleteMultipartUpload>");
    let seam = lab
        .request("GET", &object)
        .header("Range", "bytes=5242870-5242890");
    let requests = [
        lab.keys()
            .sign(lab.request("POST", &upload).body(list), Payload::Signed),
        lab.signed("HEAD", &object),
        lab.keys().sign(seam, Payload::Signed),
        lab.signed("HEAD", &format!("{object}?partNumber=2")),
        remove(lab, "w/parts"),
    ];
    answers.extend(run(to, requests)?);
    Ok(answers)
}

fn multipart_aborted(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let (created, id) = create_upload(lab, to)?;
    let upload = format!("{BUCKET}/w/parts?uploadId={id}");
    let requests = [
        upload_part(lab, &id, 1, b"part".to_vec()),
        lab.signed("DELETE", &upload),
        get(lab, "w/parts"),
    ];
    let mut answers = vec![created];
    answers.extend(run(to, requests)?);
    Ok(answers)
}

fn multipart_unknown(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    run(
        to,
        [upload_part(
            lab,
            "00000000-0000-4000-8000-000000000000",
            1,
            b"part".to_vec(),
        )],
    )
}

fn bucket(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let bucket = "/parity-short-lived";
    let requests = [
        lab.put(bucket, ""),
        lab.put(bucket, ""),
        lab.signed("HEAD", bucket),
        lab.put(&format!("{bucket}/key"), "body"),
        lab.signed("GET", &format!("{bucket}?list-type=2")),
        lab.signed("DELETE", &format!("{bucket}/key")),
        lab.signed("DELETE", bucket),
        lab.signed("HEAD", bucket),
    ];
    run(to, requests)
}

fn tags(lab: &Lab, to: SocketAddr) -> Result<Vec<Response>> {
    let tags = "<Tagging><TagSet><Tag><Key>kind</Key><Value>photo</Value></Tag></TagSet></Tagging>";
    let resource = format!("{BUCKET}/w/tagged?tagging");
    let requests = [
        put(lab, "w/tagged", "x"),
        lab.put(&resource, tags),
        lab.signed("GET", &resource),
        lab.signed("DELETE", &resource),
        lab.signed("GET", &resource),
        remove(lab, "w/tagged"),
    ];
    run(to, requests)
}
