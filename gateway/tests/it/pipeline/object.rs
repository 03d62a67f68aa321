//! GET and HEAD of one object.

use anyhow::{Result, ensure};
use pushdown_testkit::{Backend, Payload, Request};

use super::{Lab, SHORT, batch, binary, expected, photo, pixels};

#[test]
fn a_get_with_a_pipeline_returns_the_value_and_describes_it() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(200, 150, "jpeg");
    lab.put("cat.jpg", object.clone())?;
    let answer = lab.get("cat.jpg", SHORT, &[("accept", "application/octet-stream")])?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.body, pixels(expected(&object, SHORT)));
    let stored = object.len().to_string();
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "6912"),
        ("x-pushdown-stage", "3"),
        ("x-pushdown-dtype", "u8"),
        ("x-pushdown-shape", "48,48,3"),
        ("x-pushdown-engine", "decode=4 resample=4"),
        (
            "x-pushdown-features",
            "cropped-jpeg, deliver, demand, each-parts, families, members, parts, stores",
        ),
        ("x-pushdown-source-bytes", &format!("{stored}/{stored}")),
        ("cache-control", "private, no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    let timing = answer.header("server-timing").unwrap_or_default();
    for metric in [
        "origin;dur=",
        "queue;dur=",
        "read;dur=",
        "decode_resize_center_crop;dur=",
    ] {
        assert!(timing.contains(metric), "{metric} in {timing}");
    }
    let plain = lab
        .keys
        .sign(lab.request("GET", "cat.jpg"), Payload::Signed)?
        .send(lab.address())?;
    assert_eq!(plain.body, object, "without a pipeline the object is unchanged");
    assert_eq!(answer.header("x-pushdown-source-etag"), plain.header("etag"));
    assert_ne!(answer.header("etag"), plain.header("etag"));
    for name in ["content-md5", "content-encoding", "x-amz-checksum-crc32"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    Ok(())
}

#[test]
fn every_answer_of_the_gateway_itself_lists_its_features() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(100, 80, "jpeg"))?;
    let features =
        |answer: &pushdown_testkit::Response| answer.header("x-pushdown-features").map(str::to_owned);
    let listed =
        Some("cropped-jpeg, deliver, demand, each-parts, families, members, parts, stores".to_owned());
    let refused = lab.get("cat.jpg", "decode | resiz(8, 8)", &[])?;
    assert_eq!((refused.status, features(&refused)), (400, listed.clone()));
    for path in [
        "/_pushdown/v1/models",
        "/_pushdown/v1/batch",
        "/_pushdown/v1/version",
    ] {
        let answer = Request::new("GET", path)
            .header("Host", &lab.address().to_string())
            .send(lab.address())?;
        assert_eq!(features(&answer), listed, "{path}: {}", answer.status);
    }
    let batch = batch::request(&lab, SHORT.parse()?, &["cat.jpg".to_owned()])?;
    let batch = batch::send(&lab, &batch)?;
    assert_eq!((batch.status, features(&batch)), (200, listed));
    // These are the store's.
    let missing = lab.get("dog.jpg", SHORT, &[])?;
    assert_eq!((missing.status, features(&missing)), (404, None));
    let plain = lab
        .keys
        .sign(lab.request("GET", "cat.jpg"), Payload::Signed)?
        .send(lab.address())?;
    assert_eq!((plain.status, features(&plain)), (200, None));
    Ok(())
}

#[test]
fn content_types_are_negotiated() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(100, 80, "jpeg"))?;
    let tensor = "decode | resize(8, 8) | to_float";
    for (pipeline, accept, status, content_type) in [
        (tensor, "", 200, "application/x-npy"),
        (tensor, "*/*", 200, "application/x-npy"),
        (
            tensor,
            "application/vnd.apache.arrow.stream",
            200,
            "application/vnd.apache.arrow.stream",
        ),
        (
            tensor,
            "application/vnd.safetensors",
            200,
            "application/vnd.safetensors",
        ),
        (
            tensor,
            "text/html, application/octet-stream;q=0.1",
            200,
            "application/octet-stream",
        ),
        (tensor, "text/html", 406, "application/xml"),
        (
            "decode | resize(8, 8) | to_float | cast(bf16)",
            "",
            200,
            "application/vnd.safetensors",
        ),
        ("decode | resize(8, 8) | encode(png)", "", 200, "image/png"),
        (
            "decode | resize(8, 8) | encode(jpeg)",
            "image/*",
            200,
            "image/jpeg",
        ),
        (
            "decode | resize(8, 8) | encode(jpeg)",
            "application/x-npy",
            406,
            "application/xml",
        ),
    ] {
        let accept = if accept.is_empty() {
            vec![]
        } else {
            vec![("accept", accept)]
        };
        let answer = lab.get("cat.jpg", pipeline, &accept)?;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (status, Some(content_type)),
            "{accept:?}"
        );
    }
    Ok(())
}

#[test]
fn a_split_returns_any_stage() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(200, 150, "jpeg");
    lab.put("cat.jpg", object.clone())?;
    for (split, stage, bytes) in [
        ("0", "0", object.len()),
        ("1", "1", 200 * 150 * 3),
        ("2", "2", 85 * 64 * 3),
        ("full", "3", 48 * 48 * 3),
    ] {
        let headers = [
            ("x-pushdown-split", split),
            ("accept", "application/octet-stream"),
        ];
        let answer = lab.get("cat.jpg", SHORT, &headers)?;
        assert_eq!(
            (answer.header("x-pushdown-stage"), answer.body.len()),
            (Some(stage), bytes),
            "{split}"
        );
    }
    // The object is smaller than the value after any step.
    let answer = lab.get(
        "cat.jpg",
        "decode | resize(100, 100) | to_float",
        &[("x-pushdown-split", "smallest")],
    )?;
    assert_eq!(
        (answer.header("x-pushdown-stage"), &answer.body),
        (Some("0"), &object)
    );
    let answer = lab.get(
        "cat.jpg",
        "decode | resize(16, 16) | to_float",
        &[("x-pushdown-split", "smallest")],
    )?;
    assert_eq!(answer.header("x-pushdown-stage"), Some("2"));
    assert_eq!(
        lab.get("cat.jpg", SHORT, &[("x-pushdown-split", "4")])?.status,
        400
    );
    Ok(())
}

#[test]
fn conditions_and_ranges_apply_to_the_result() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(100, 80, "jpeg"))?;
    let whole = lab.get("cat.jpg", SHORT, &[])?;
    // Stage 0 streams the whole stored object and ignores the range: a client reads a part with a plain GET.
    let headers = [("range", "bytes=0-9"), ("x-pushdown-split", "0")];
    assert_eq!(lab.get("cat.jpg", SHORT, &headers)?.status, 200);
    let etag = whole.header("etag").unwrap_or_default().to_owned();
    let cached = lab.get("cat.jpg", SHORT, &[("if-none-match", &etag)])?;
    assert_eq!(
        (cached.status, cached.header("etag"), cached.body.len()),
        (304, Some(etag.as_str()), 0)
    );
    assert_eq!(
        lab.get("cat.jpg", SHORT, &[("if-none-match", "\"other\"")])?
            .status,
        200
    );
    assert_eq!(
        lab.get("cat.jpg", SHORT, &[("if-match", "\"other\"")])?.status,
        412
    );
    let range = lab.get("cat.jpg", SHORT, &[("range", "bytes=100-199")])?;
    assert_eq!(
        (range.status, range.body.as_slice()),
        (206, &whole.body[100..200])
    );
    let total = whole.body.len();
    assert_eq!(
        range.header("content-range"),
        Some(format!("bytes 100-199/{total}").as_str())
    );
    let past_end = lab.get("cat.jpg", SHORT, &[("range", &format!("bytes={total}-"))])?;
    assert_eq!(
        (past_end.status, past_end.element("Code").as_deref()),
        (416, Some("InvalidRange"))
    );
    Ok(())
}

#[test]
fn head_returns_the_etag_of_the_get_without_a_length() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(100, 80, "jpeg"))?;
    let get = lab.get("cat.jpg", SHORT, &[])?;
    let head = lab.send("HEAD", "cat.jpg", SHORT, &[])?;
    assert_eq!((head.status, head.header("etag")), (200, get.header("etag")));
    assert_eq!(head.header("content-length"), None);
    assert_eq!(head.header("content-type"), get.header("content-type"));
    Ok(())
}

#[test]
fn a_presigned_query_carries_the_pipeline() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(100, 80, "png");
    lab.put("dir/a%20b.png", object.clone())?;
    let target = "/photos/dir/a%20b.png?x-pushdown-pipeline=decode%20%7C%20resize%288%2C%208%29";
    let request = Request::new("GET", target).header("Host", &lab.address().to_string());
    let answer = lab
        .keys
        .presign(request, std::time::Duration::from_mins(1))?
        .send(lab.address())?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer
            .body
            .ends_with(&pixels(expected(&object, "decode | resize(8, 8)")))
    );
    let whole = Request::new("GET", target).header("Host", &lab.address().to_string());
    let whole = lab.keys.presign(whole, std::time::Duration::from_mins(1))?;
    let whole = whole.header("x-pushdown-split", "0").send(lab.address())?;
    assert_eq!((whole.status, whole.body), (200, object));
    Ok(())
}

#[test]
fn random_steps_depend_only_on_seed_epoch_and_key() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(100, 80, "jpeg");
    lab.put("a.jpg", object.clone())?;
    lab.put("b.jpg", object)?;
    let pipeline = "decode | random_resized_crop(32) | flip_h";
    let get = |key: &str, seed: &str, epoch: &str| {
        let answer = lab.get(
            key,
            pipeline,
            &[("x-pushdown-seed", seed), ("x-pushdown-epoch", epoch)],
        )?;
        anyhow::Ok((answer.header("etag").map(str::to_owned), answer.body))
    };
    let first = get("a.jpg", "1", "0")?;
    assert_eq!(first, get("a.jpg", "1", "0")?);
    for other in [
        get("a.jpg", "2", "0")?,
        get("a.jpg", "1", "1")?,
        get("b.jpg", "1", "0")?,
    ] {
        assert_ne!(first, other);
    }
    let answer = lab.get("a.jpg", pipeline, &[("x-pushdown-seed", "1")])?;
    assert_eq!(
        (answer.status, answer.element("Code").as_deref()),
        (400, Some("InvalidPipeline"))
    );
    Ok(())
}

/// Each metadata entry is a header, and HTTP libraries often accept at most 100 headers.
#[test]
fn an_object_with_hundreds_of_metadata_entries_is_stored_and_read() -> Result<()> {
    for backend in [Backend::Embedded, Backend::SeaweedFs] {
        if !backend.is_enabled()? {
            continue;
        }
        let store = backend.start(binary())?;
        let lab = Lab::with_gateway(store.gateway, store.keys)?;
        let mut put = lab.request("PUT", "tagged.jpg");
        for index in 0..120 {
            put = put.header(&format!("x-amz-meta-{index:03}"), &index.to_string());
        }
        let put = lab.keys.sign(put.body(photo(40, 30, "jpeg")), Payload::Signed)?;
        for address in [store.address, lab.address()] {
            ensure!(put.send(address)?.status == 200, "{backend}");
        }
        let get = lab.keys.sign(lab.request("GET", "tagged.jpg"), Payload::Signed)?;
        let answer = get.send(lab.address())?;
        ensure!(
            (answer.status, answer.header("x-amz-meta-119")) == (200, Some("119")),
            "{backend}"
        );
        let answer = lab.get("tagged.jpg", "decode | resize(4, 4)", &[])?;
        ensure!(
            (answer.status, answer.header("x-pushdown-shape")) == (200, Some("4,4,3")),
            "{backend}: {}",
            answer.text()
        );
    }
    Ok(())
}
