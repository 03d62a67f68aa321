//! Batches: many samples in one request.

use std::io::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown::Pipeline;
use pushdown::wire::{
    BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus, CpuTime, OnError, Order, Row, Split,
};
use pushdown_testkit::{Keys, Raw, Request, Response};

use super::{Lab, SHORT, expected, photo};

fn batch(lab: &Lab, pipeline: &str, keys: &[String]) -> Result<BatchRequest> {
    request(lab, pipeline.parse()?, keys)
}

/// A batch request for these keys, each presigned with the keys of the fixture.
pub(super) fn request(lab: &Lab, pipeline: Pipeline, keys: &[String]) -> Result<BatchRequest> {
    request_signed_by(&lab.keys, lab, pipeline, keys)
}

/// A batch request whose samples are presigned by `signer`.
pub(super) fn request_signed_by(
    signer: &Keys,
    lab: &Lab,
    pipeline: Pipeline,
    keys: &[String],
) -> Result<BatchRequest> {
    let mut presign = String::new();
    let mut samples = Vec::new();
    // One signing time for all, so that the samples share the signing parameters.
    let signer = signer.with_time(std::time::SystemTime::now());
    for key in keys {
        let signed = signer.presign(lab.request("GET", key), Duration::from_mins(5))?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        let (shared, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        shared.clone_into(&mut presign);
        samples.push(BatchSample::new(path, signature));
    }
    Ok(BatchRequest::new(pipeline, presign, samples))
}

pub(super) fn post(lab: &Lab, body: Vec<u8>) -> Request {
    Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &lab.address().to_string())
        .body(body)
}

pub(super) fn send(lab: &Lab, request: &BatchRequest) -> Result<Response> {
    post(lab, serde_json::to_vec(request)?).send(lab.address())
}

pub(super) fn rows(answer: Response) -> Result<Vec<Row>> {
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.into())?;
    reader.finish()?;
    Ok(rows)
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("{index:03}.jpg")).collect()
}

/// Readers plan with the number of cores, the batches in flight, and the CPU load between two answers.
#[test]
fn an_answer_reports_the_cpu_use_of_the_gateway() -> Result<()> {
    let lab = Lab::new(&["--threads=2"])?;
    let keys = keys(64);
    for key in &keys {
        lab.put(key, photo(800, 600, "jpeg"))?;
    }
    let cpu_time = |answer: &Response| -> Result<CpuTime> {
        let number = |name| answer.header(name).map(str::to_owned).context(name);
        ensure!(number("x-pushdown-cores")? == "2.00");
        ensure!(number("x-pushdown-batches")? == "1");
        Ok(number("x-pushdown-cpu")?.parse()?)
    };
    let request = batch(&lab, SHORT, &keys)?;
    let first = cpu_time(&send(&lab, &request)?)?;
    let second = cpu_time(&send(&lab, &request)?)?;
    let elapsed = second.since(first).context("no time passed")?;
    let CpuTime {
        busy_seconds: busy,
        total_seconds: all,
        step_seconds: steps,
    } = elapsed;
    // The second request decodes photos. The system counts CPU time in hundredths of a second.
    ensure!(busy > 0.0 && busy <= all + 0.05, "{elapsed}");
    ensure!(steps > 0.0 && steps <= all + 0.05, "{elapsed}");
    Ok(())
}

#[test]
fn hints_for_the_result_cache_add_a_column() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(80, 60, "jpeg");
    lab.put("000.jpg", object.clone())?;
    let mut request = batch(&lab, SHORT, &keys(1))?;
    request.samples[0].etag = Some("\"of-another-object\"".to_owned());
    let read = |request: &BatchRequest| -> Result<(bool, Row)> {
        let answer = send(&lab, request)?;
        let has_column = answer.body.windows(5).any(|name| name == b"cache");
        let row = rows(answer)?.pop().context("a row")?;
        assert_eq!(row.value, Ok(expected(&object, SHORT)));
        Ok((has_column, row))
    };
    let (has_column, _) = read(&request)?;
    assert!(!has_column);
    request.cache = Some(CacheHints {
        epochs: 2,
        samples: 1,
    });
    let (has_column, row) = read(&request)?;
    assert_eq!((has_column, row.cache), (true, CacheStatus::Computed));
    Ok(())
}

#[test]
fn rows_are_in_order_and_a_bad_sample_fails_alone() -> Result<()> {
    let lab = Lab::new(&[])?;
    let objects: Vec<_> = (0..8).map(|index| photo(80 + index, 60, "jpeg")).collect();
    let keys = keys(256);
    for (index, key) in keys.iter().enumerate() {
        match index {
            100 => lab.put(key, "no photo")?,
            _ => lab.put(key, objects[index % 8].clone())?,
        }
    }
    let mut request = batch(&lab, SHORT, &keys)?;
    request.samples[200].path = "/photos/missing.jpg".to_owned();
    let rows = rows(send(&lab, &request)?)?;
    assert_eq!(
        rows.iter().map(|row| row.row).collect::<Vec<_>>(),
        (0..256).collect::<Vec<_>>()
    );
    for row in rows {
        match (row.row, row.value) {
            (100, Err(error)) => assert_eq!(error.code, "UndecodableObject"),
            // The signature is for another path: the store checks it before it looks up the key.
            (200, Err(error)) => assert_eq!(error.code, "SignatureDoesNotMatch"),
            (index, value) => {
                let value = value.map_err(|error| anyhow::anyhow!("{index}: {error}"))?;
                assert_eq!(value, expected(&objects[index as usize % 8], SHORT), "{index}");
                assert_eq!(row.stage, 3);
            }
        }
    }
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

/// The size of an encoded value is known only after encoding; the size of pixels is known from the header of the photo.
#[test]
fn a_value_over_its_limit_is_replaced_by_the_object() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(800, 600, "jpeg");
    let keys = keys(4);
    for key in &keys {
        lab.put(key, object.clone())?;
    }
    let stored = pushdown::Sample::Bytes(object.clone().into());
    for pipeline in [
        "decode | resize(64, 48) | encode(png)",
        "decode | resize(short=48)",
    ] {
        let value = expected(&object, pipeline);
        let mut request = batch(&lab, pipeline, &keys)?;
        let limits = [None, Some(0), Some(value.bytes() - 1), Some(value.bytes())];
        for (sample, max_bytes) in request.samples.iter_mut().zip(limits) {
            sample.max_bytes = max_bytes;
        }
        for (row, max_bytes) in rows(send(&lab, &request)?)?.into_iter().zip(limits) {
            let fits = max_bytes.is_none_or(|max_bytes| max_bytes >= value.bytes());
            let stage = if fits { request.pipeline.len() } else { 0 };
            assert_eq!(usize::from(row.stage), stage, "{pipeline}, limit {max_bytes:?}");
            assert_eq!(
                row.value.as_ref(),
                Ok(if fits { &value } else { &stored }),
                "{pipeline}"
            );
            // A rejected encoding costs CPU time; pixels over the limit are not decoded at all.
            let ran = fits || pipeline.contains("encode");
            assert_eq!(row.seconds > 0.0, ran, "{pipeline}, limit {max_bytes:?}");
        }
    }
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0);
    Ok(())
}

#[test]
fn mixed_splits_in_any_order_lose_no_row() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(80, 60, "jpeg");
    let keys = keys(16);
    for key in &keys {
        lab.put(key, object.clone())?;
    }
    let mut request = batch(&lab, "decode | resize(16, 16) | to_float", &keys)?;
    request.order = Order::Any;
    for (index, sample) in request.samples.iter_mut().enumerate() {
        sample.split = [
            Some(Split::At(0)),
            Some(Split::At(2)),
            Some(Split::Smallest),
            None,
        ][index % 4];
    }
    let mut rows = rows(send(&lab, &request)?)?;
    rows.sort_by_key(|row| row.row);
    assert_eq!(rows.len(), 16);
    for row in rows {
        let stage = [0, 2, 2, 3][row.row as usize % 4];
        assert_eq!(row.stage, stage);
        let value = row.value.map_err(|error| anyhow::anyhow!("{error}"))?;
        let prefix = request.pipeline.run(
            0..usize::from(stage),
            pushdown::Sample::Bytes(object.clone().into()),
            &pushdown::Context::new(b""),
        )?;
        assert_eq!(value, prefix);
    }
    Ok(())
}

#[test]
fn a_batch_larger_than_the_memory_budget_succeeds() -> Result<()> {
    let lab = Lab::new(&["--memory-budget=16MiB", "--queue-wait=30s"])?;
    let object = photo(500, 400, "jpeg");
    let keys = keys(64);
    for key in &keys {
        lab.put(key, object.clone())?;
    }
    let rows = rows(send(&lab, &batch(&lab, "decode", &keys)?)?)?;
    assert_eq!(
        rows.iter().filter(|row| row.value.is_ok()).count(),
        64,
        "{:?}",
        rows.iter().find_map(|row| row.value.as_ref().err())
    );
    Ok(())
}

#[test]
fn an_invalid_batch_request_is_refused_as_a_whole() -> Result<()> {
    let lab = Lab::new(&["--batch-samples=4"])?;
    lab.put("000.jpg", photo(20, 20, "jpeg"))?;
    let good = batch(&lab, SHORT, &keys(1))?;
    let json = |edit: &dyn Fn(&mut serde_json::Value)| {
        let mut value = serde_json::to_value(&good)?;
        edit(&mut value);
        anyhow::Ok(serde_json::to_vec(&value)?)
    };
    for (name, body, code) in [
        ("no JSON", b"{".to_vec(), "InvalidRequest"),
        (
            "an unknown field",
            json(&|value| value["colour"] = 1.into())?,
            "InvalidRequest",
        ),
        (
            "a bad pipeline",
            json(&|value| value["pipeline"] = "decode | x".into())?,
            "InvalidPipeline",
        ),
        (
            "randomness without seed",
            json(&|value| value["pipeline"] = "decode | flip_h".into())?,
            "InvalidPipeline",
        ),
        (
            "a split beyond the end",
            json(&|value| value["split"] = 9.into())?,
            "InvalidRequest",
        ),
        (
            "a foreign presign",
            json(&|value| value["presign"] = "acl&X-Amz-Date=1".into())?,
            "InvalidRequest",
        ),
        (
            "too many samples",
            serde_json::to_vec(&batch(&lab, SHORT, &keys(5))?)?,
            "InvalidRequest",
        ),
    ] {
        let answer = post(&lab, body).send(lab.address())?;
        let found = (answer.status, answer.element("Code").unwrap_or_default());
        assert_eq!(found, (400, code.to_owned()), "{name}: {}", answer.text());
    }
    assert_eq!(post(&lab, vec![b' '; 5 << 20]).send(lab.address())?.status, 413);
    let get = Request::new("GET", "/_pushdown/v1/batch")
        .header("Host", "gateway")
        .send(lab.address())?;
    assert_eq!(get.status, 405);
    assert_eq!(rows(send(&lab, &good)?)?.len(), 1);
    Ok(())
}

#[test]
fn gzip_is_inflated_within_the_limit() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("000.jpg", photo(20, 20, "jpeg"))?;
    let zip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes)?;
        anyhow::Ok(encoder.finish()?)
    };
    let body = zip(&serde_json::to_vec(&batch(&lab, SHORT, &keys(1))?)?)?;
    let answer = post(&lab, body)
        .header("content-encoding", "gzip")
        .send(lab.address())?;
    assert_eq!(rows(answer)?.len(), 1);
    let bomb = zip(&vec![b' '; 64 << 20])?;
    assert_eq!(
        post(&lab, bomb)
            .header("content-encoding", "gzip")
            .send(lab.address())?
            .status,
        413
    );
    assert_eq!(
        post(&lab, vec![0])
            .header("content-encoding", "br")
            .send(lab.address())?
            .status,
        400
    );
    Ok(())
}

#[test]
fn on_error_fail_fails_the_request() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("000.jpg", "no photo")?;
    let mut request = batch(&lab, SHORT, &keys(1))?;
    request.on_error = OnError::Fail;
    let answer = send(&lab, &request)?;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("UndecodableObject"), "{}", answer.text());
    Ok(())
}

#[test]
fn a_disconnect_during_a_batch_releases_all_memory() -> Result<()> {
    let lab = Lab::new(&[])?;
    let object = photo(1500, 1000, "jpeg");
    let keys = keys(64);
    for key in &keys {
        lab.put(key, object.clone())?;
    }
    let mut client = Raw::connect(lab.address())?;
    let request = post(&lab, serde_json::to_vec(&batch(&lab, "decode", &keys)?)?);
    client.write(&[request.head(), request.body].concat())?;
    assert_eq!(client.head()?.status, 200);
    drop(client);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while lab.gateway.metric("pushdown_memory_reserved_bytes")? > 0.0 {
        ensure!(
            std::time::Instant::now() < deadline,
            "permits are held after the client disconnected"
        );
        std::thread::yield_now();
    }
    Ok(())
}
