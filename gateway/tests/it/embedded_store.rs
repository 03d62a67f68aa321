//! What the embedded store lists, and which keys it stores.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};
use pushdown_testkit::{Gateway, Keys, Payload, Request, Response};
use tempfile::TempDir;

use super::binary;

/// A gateway on its embedded store with an empty bucket.
struct Lab {
    gateway: Gateway,
    keys: Keys,
    folder: TempDir,
}

impl Lab {
    fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let flags = [
            format!("--store={}", folder.path().display()),
            "--access-key=accesskey".to_owned(),
            "--secret-key=secretkey".to_owned(),
        ];
        let lab = Self {
            gateway: Gateway::launch(binary(), flags)?,
            keys: Keys::new("accesskey", "secretkey"),
            folder,
        };
        ensure!(lab.send("PUT", "/bkt", "")?.status == 200);
        Ok(lab)
    }

    /// The file of a key.
    fn file(&self, key: &str) -> PathBuf {
        self.folder.path().join("bkt").join(key)
    }

    fn send(&self, method: &str, target: &str, body: impl Into<Vec<u8>>) -> Result<Response> {
        self.send_with(method, target, &[], body)
    }

    fn send_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Result<Response> {
        let mut request = Request::new(method, target).header("Host", &self.gateway.listen().to_string());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let signed = self.keys.sign(request.body(body), Payload::Signed)?;
        signed.send(self.gateway.listen())
    }

    fn put(&self, path: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        let answer = self.send("PUT", &format!("/bkt/{path}"), body)?;
        ensure!(answer.status == 200, "{path}: {}", answer.text());
        Ok(())
    }

    /// The ETag of HEAD, which GET has, too.
    fn etag(&self, path: &str) -> Result<String> {
        let target = format!("/bkt/{path}");
        let (head, get) = (self.send("HEAD", &target, "")?, self.send("GET", &target, "")?);
        ensure!(head.header("etag") == get.header("etag"), "{path}");
        Ok(head.header("etag").context("no ETag")?.to_owned())
    }

    fn list(&self, query: &str) -> Result<Response> {
        let answer = self.send("GET", &format!("/bkt?{query}"), "")?;
        ensure!(answer.status == 200, "{query}: {}", answer.text());
        Ok(answer)
    }
}

/// The texts of these elements of a document, in order.
fn elements(document: &Response, name: &str) -> Vec<String> {
    let text = document.text();
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let parts = text.split(&start).skip(1);
    let parts = parts.filter_map(|part| Some(part.split_once(&end)?.0.to_owned()));
    parts.collect()
}

/// An object in two parts, of which the first is as small as S3 allows.
fn upload_in_parts(lab: &Lab, path: &str) -> Result<()> {
    let begun = lab.send("POST", &format!("/bkt/{path}?uploads"), "")?;
    let id = begun.element("UploadId").context("no upload")?;
    let mut parts = Vec::new();
    for (number, body) in [(1, vec![7; 5 << 20]), (2, vec![8; 3])] {
        let target = format!("/bkt/{path}?partNumber={number}&uploadId={id}");
        let part = lab.send("PUT", &target, body)?;
        let etag = part.header("etag").context("no ETag")?;
        parts.push(format!(
            "<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>"
        ));
    }
    let list = format!(
        "<CompleteMultipartUpload>{}</CompleteMultipartUpload>",
        parts.concat()
    );
    let done = lab.send("POST", &format!("/bkt/{path}?uploadId={id}"), list)?;
    ensure!(done.status == 200, "{}", done.text());
    Ok(())
}

#[test]
fn both_listings_have_the_etags_of_the_objects() -> Result<()> {
    let lab = Lab::start()?;
    lab.put("put", "put")?;
    upload_in_parts(&lab, "parts")?;
    let copied = lab.send_with("PUT", "/bkt/copy", &[("x-amz-copy-source", "/bkt/parts")], "")?;
    assert_eq!(copied.status, 200);
    lab.put("folder/", "")?;
    fs::write(lab.file("file"), "came without a request")?;
    let keys = ["copy", "file", "folder/", "parts", "put"];
    let etags = keys.map(|key| lab.etag(key).unwrap());
    assert!(etags[3].ends_with("-2\"") && etags[0] == etags[3], "{etags:?}");
    for query in ["list-type=2", "max-keys=1000"] {
        let listing = lab.list(query)?;
        assert_eq!(elements(&listing, "Key"), keys);
        let listed = elements(&listing, "ETag");
        let listed: Vec<String> = listed.iter().map(|etag| etag.replace("&quot;", "\"")).collect();
        assert_eq!(listed, etags, "{query}");
    }
    Ok(())
}

#[test]
fn an_etag_changes_with_the_object_however_it_changes() -> Result<()> {
    let lab = Lab::start()?;
    let listed = || -> Result<String> {
        let etags = elements(&lab.list("list-type=2")?, "ETag");
        let etag = etags.first().context("no ETag")?.replace("&quot;", "\"");
        ensure!(etag == lab.etag("key")?);
        Ok(etag)
    };
    let mut etags = Vec::new();
    lab.put("key", "first")?;
    etags.push(listed()?);
    lab.put("key", "other")?;
    etags.push(listed()?);
    // The clock of files advances in steps.
    std::thread::sleep(std::time::Duration::from_millis(20));
    fs::write(lab.file("key"), "third")?;
    etags.push(listed()?);
    let not_modified = lab.send_with("GET", "/bkt/key", &[("If-None-Match", &etags[2])], "")?;
    assert_eq!(not_modified.status, 304);
    let stale = lab.send_with("PUT", "/bkt/key", &[("If-Match", &etags[1])], "never")?;
    assert_eq!(stale.status, 412);
    let copied = lab.send_with("PUT", "/bkt/copy", &[("x-amz-copy-source", "/bkt/key")], "")?;
    assert_eq!(copied.status, 200);
    assert!(
        !etags.contains(&lab.etag("copy")?),
        "a copy has no ETag of earlier bytes"
    );
    lab.send("DELETE", "/bkt/copy", "")?;
    let current = lab.send_with("PUT", "/bkt/key", &[("If-Match", &etags[2])], "fourth")?;
    assert_eq!(current.status, 200);
    etags.push(listed()?);
    for (number, etag) in etags.iter().enumerate() {
        assert!(!etags[..number].contains(etag), "{etags:?}");
    }
    Ok(())
}

#[test]
fn names_are_encoded_if_the_request_asks_for_it() -> Result<()> {
    let lab = Lab::start()?;
    for path in [
        "l/a%20b",
        "l/a%2Bb",
        "l/%25",
        "l/%17",
        "l/%C3%A9",
        "l/d+d/x",
        "l/d&amp;/x",
    ] {
        lab.put(path, "x")?;
    }
    let raw = ["l/%", "l/a b", "l/a+b", "l/\u{e9}"];
    let encoded = ["l/%17", "l/%25", "l/a%20b", "l/a%2Bb", "l/%C3%A9"];
    for version in ["", "list-type=2&"] {
        let query = format!("{version}delimiter=%2F&prefix=l%2F");
        let url = lab.list(&format!("{query}&encoding-type=url"))?;
        assert_eq!(elements(&url, "Key"), encoded);
        assert_eq!(url.element("EncodingType").as_deref(), Some("url"));
        let prefixes = elements(&url, "Prefix");
        assert!(prefixes.contains(&"l/d%2Bd/".to_owned()), "{prefixes:?}");
        let plain = lab.list(&query)?;
        let keys = elements(&plain, "Key");
        assert!(
            raw.iter().all(|key| keys.contains(&(*key).to_owned())),
            "{keys:?}"
        );
        assert_eq!(plain.element("EncodingType"), None);
    }
    let marker = lab.list("encoding-type=url&prefix=l%2Fa&marker=l%2Fa%20b&delimiter=%2B")?;
    assert_eq!(marker.element("Marker").as_deref(), Some("l/a%20b"));
    assert_eq!(marker.element("Delimiter").as_deref(), Some("%2B"));
    assert_eq!(elements(&marker, "Prefix"), ["l/a", "l/a%2B"]);
    let next = lab.list("encoding-type=url&prefix=l%2F&max-keys=3")?;
    assert_eq!(next.element("NextMarker").as_deref(), Some("l/a%20b"));
    let start = lab.list("list-type=2&encoding-type=url&start-after=l%2Fa%20b")?;
    assert_eq!(start.element("StartAfter").as_deref(), Some("l/a%20b"));
    let other = lab.send("GET", "/bkt?encoding-type=base64", "")?;
    assert_eq!(
        (other.status, other.element("Code").as_deref()),
        (400, Some("InvalidArgument"))
    );
    Ok(())
}

#[test]
fn pages_follow_each_other() -> Result<()> {
    let lab = Lab::start()?;
    let keys: Vec<String> = (0..7).map(|number| format!("k/{number}%17")).collect();
    for key in &keys {
        lab.put(key, "x")?;
    }
    for (version, token, parameter) in [
        ("", "NextMarker", "marker"),
        ("list-type=2&", "NextContinuationToken", "continuation-token"),
    ] {
        let (mut found, mut next) = (Vec::new(), String::new());
        for page in 0..3 {
            let query = format!("{version}encoding-type=url&max-keys=3{next}");
            let listing = lab.list(&query)?;
            found.extend(elements(&listing, "Key"));
            let is_truncated = listing.element("IsTruncated").context("no end")?;
            assert_eq!(is_truncated == "true", page < 2, "{query}");
            if let Some(token) = listing.element(token) {
                // A marker is encoded, and a token has nothing to encode.
                next = format!("&{parameter}={}", token.replace('/', "%2F"));
            }
        }
        assert_eq!(found, keys, "{version}");
    }
    let wrong = lab.send("GET", "/bkt?list-type=2&continuation-token=%3F", "")?;
    assert_eq!(
        (wrong.status, wrong.element("Code").as_deref()),
        (400, Some("InvalidArgument"))
    );
    Ok(())
}

fn code(answer: &Response) -> (u16, Option<String>) {
    (answer.status, answer.element("Code"))
}

#[test]
fn keys_that_a_folder_cannot_hold_are_refused_by_name() -> Result<()> {
    let lab = Lab::start()?;
    let name = |bytes: usize| "n".repeat(bytes);
    let too_long = (400, Some("KeyTooLongError".to_owned()));
    for (key, expected) in [
        (name(256), too_long.clone()),
        (format!("a/{}", name(256)), too_long.clone()),
        (name(200), too_long.clone()),
        ([name(60), name(60), name(60)].join("/"), too_long.clone()),
        (name(1025), too_long.clone()),
        ("a//b".to_owned(), (400, Some("InvalidArgument".to_owned()))),
        ("a/../b".to_owned(), (400, Some("InvalidArgument".to_owned()))),
        ("a/./b".to_owned(), (400, Some("InvalidArgument".to_owned()))),
    ] {
        let target = format!("/bkt/{key}");
        let put = lab.send("PUT", &target, "x")?;
        assert_eq!(code(&put), expected, "{key}: {}", put.text());
        assert!(!put.text().contains("symbolic link"));
        let upload = lab.send("POST", &format!("{target}?uploads"), "")?;
        assert_eq!(code(&upload), expected, "{key}");
        if key.len() <= 1024 {
            let get = lab.send("GET", &target, "")?;
            assert_eq!(code(&get), (404, Some("NoSuchKey".to_owned())), "{key}");
            assert_eq!(lab.send("HEAD", &target, "")?.status, 404, "{key}");
            assert_eq!(lab.send("DELETE", &target, "")?.status, 204, "{key}");
        }
    }
    assert_eq!(
        elements(&lab.list("list-type=2")?, "Key"),
        [""; 0],
        "nothing is left over"
    );
    for key in [name(165), ["d"; 80].join("/")] {
        lab.put(&key, "stored")?;
        assert_eq!(lab.send("GET", &format!("/bkt/{key}"), "")?.text(), "stored");
    }
    Ok(())
}

#[test]
fn an_object_and_a_folder_of_objects_do_not_have_one_name() -> Result<()> {
    let lab = Lab::start()?;
    lab.put("a", "object")?;
    lab.put("d/b", "below")?;
    for (key, because) in [
        ("a/b", "expected no object with the key `a`, found one"),
        ("a/b/c", "expected no object with the key `a`, found one"),
        ("d", "expected no objects below `d/`, found some"),
    ] {
        let target = format!("/bkt/{key}");
        let refused = lab.send("PUT", &target, "x")?;
        assert_eq!(code(&refused), (400, Some("InvalidRequest".to_owned())), "{key}");
        assert!(refused.text().contains(because), "{}", refused.text());
        let copied = lab.send_with("PUT", &target, &[("x-amz-copy-source", "/bkt/a")], "")?;
        assert_eq!(code(&copied), (400, Some("InvalidRequest".to_owned())), "{key}");
        assert_eq!(
            code(&lab.send("GET", &target, "")?),
            (404, Some("NoSuchKey".to_owned())),
            "{key}"
        );
        assert_eq!(lab.send("HEAD", &target, "")?.status, 404, "{key}");
        assert_eq!(lab.send("DELETE", &target, "")?.status, 204, "{key}");
    }
    assert_eq!(elements(&lab.list("list-type=2")?, "Key"), ["a", "d/b"]);
    // Once the objects below it are deleted, the name is free.
    assert_eq!(lab.send("DELETE", "/bkt/d/b", "")?.status, 204);
    lab.put("d", "object")?;
    assert_eq!(lab.send("GET", "/bkt/d", "")?.text(), "object");
    Ok(())
}

#[test]
fn an_empty_object_may_stand_for_a_folder() -> Result<()> {
    let lab = Lab::start()?;
    lab.put("f/", "")?;
    lab.put("f/a", "a")?;
    let get = lab.send("GET", "/bkt/f/", "")?;
    assert_eq!((get.status, get.text().as_str()), (200, ""));
    let head = lab.send("HEAD", "/bkt/f/", "")?;
    assert_eq!((head.status, head.header("content-length")), (200, Some("0")));
    assert_eq!(elements(&lab.list("list-type=2")?, "Key"), ["f/", "f/a"]);
    assert_eq!(lab.send("DELETE", "/bkt/f/", "")?.status, 204);
    assert_eq!(lab.send("HEAD", "/bkt/f/", "")?.status, 404);
    assert_eq!(elements(&lab.list("list-type=2")?, "Key"), ["f/a"]);
    assert_eq!(lab.send("PUT", "/bkt/g/", "content")?.status, 400);
    // A bucket that is made again has no objects of the one before.
    lab.put("f/", "")?;
    assert_eq!(lab.send("DELETE", "/bkt", "")?.status, 204);
    assert_eq!(lab.send("PUT", "/bkt", "")?.status, 200);
    lab.put("f/a", "a")?;
    assert_eq!(elements(&lab.list("list-type=2")?, "Key"), ["f/a"]);
    Ok(())
}

/// Ten thousand files without attributes: their bytes are not read, and each page asks only for its own.
#[test]
fn a_listing_reads_no_objects() -> Result<()> {
    let lab = Lab::start()?;
    let sparse = |path: &Path| fs::File::create(path).and_then(|file| file.set_len(1 << 30));
    for number in 0..10_000 {
        sparse(&lab.file(&format!("{number:05}")))?;
    }
    let (mut count, mut next) = (0, String::new());
    loop {
        let page = lab.list(&format!("list-type=2{next}"))?;
        let keys = elements(&page, "Key");
        assert_eq!(elements(&page, "ETag").len(), keys.len());
        assert!(keys.len() <= 1000);
        count += keys.len();
        let Some(token) = page.element("NextContinuationToken") else {
            break;
        };
        next = format!("&continuation-token={token}");
    }
    assert_eq!(count, 10_000, "10 TB would take hours");
    Ok(())
}
