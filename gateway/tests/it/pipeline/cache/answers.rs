//! Law 1: a cached answer equals a computed one.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use pushdown::{Pipeline, Sample, wire::CacheStatus};
use pushdown_testkit::{GOOD_SIGNATURE, Request, ScriptedOrigin, Sent, signed_by};

use super::{CacheLab, MEMORY, PATH, PIPELINE, constant_headers, expected, launch, origin, photo, pixels};
use crate::it::gateway_for;

/// Image, tensor and bytes.
const PIPELINES: [&str; 3] = [
    PIPELINE,
    "decode | resize(short=64) | center_crop(48) | to_float | normalize(imagenet) | cast(f16)",
    "decode | resize(short=64) | encode(png)",
];

#[test]
fn a_cached_answer_equals_the_computed_one() -> Result<()> {
    let headers = "Last-Modified: Wed, 25 Nov 2026 08:00:00 GMT\r\nx-amz-meta-label: cat\r\n";
    for pipeline in PIPELINES {
        let lab = CacheLab::new(&[MEMORY])?;
        lab.store.put_with(PATH, "\"1\"", lab.photo.clone(), headers);
        let accept = |request: Request| request.header("Accept", "*/*");
        let request = || {
            let request = accept(Request::new("GET", PATH).header("Host", "store"));
            signed_by(
                request.header("x-pushdown-pipeline", pipeline),
                "first",
                GOOD_SIGNATURE,
            )
            .send(lab.gateway.listen())
        };
        let computed = request()?;
        assert_eq!((computed.status, origin(&computed)?), (200, "computed"));
        let before = lab.store.sent();
        let cached = request()?;
        assert_eq!((cached.status, origin(&cached)?), (200, "memory"));
        assert_eq!(cached.body, computed.body, "{pipeline}");
        assert_eq!(constant_headers(&cached), constant_headers(&computed));
        assert_eq!(cached.header("x-amz-meta-label"), Some("cat"));
        let after = lab.store.sent();
        assert_eq!(
            after,
            Sent {
                not_modified: before.not_modified + 1,
                ..before
            }
        );
        assert!(lab.gateway.metric("pushdown_cache_saved_seconds_total")? > 0.0);
    }
    Ok(())
}

#[test]
fn rows_are_cached_like_answers_to_gets() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    let computed = lab.warm(PIPELINE)?;
    assert_eq!(computed.header("x-pushdown-cached-ratio"), Some("3=1"));
    let objects = lab.store.sent().objects;
    let rows = lab.rows("second", PIPELINE, 3)?;
    assert_eq!(lab.store.sent().objects, objects);
    for row in rows {
        assert_eq!(row.cache, CacheStatus::Memory);
        assert_eq!(pixels(row.value?), computed.body);
    }
    Ok(())
}

#[test]
fn the_longest_cached_prefix_is_used() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    let longer = format!("{PIPELINE} | to_float");
    let answer = lab.get(&longer)?;
    assert_eq!(origin(&answer)?, "prefix=3");
    let alone = CacheLab::new(&[MEMORY])?;
    let computed = alone.get(&longer)?;
    assert_eq!(answer.body, computed.body);
    assert_eq!(constant_headers(&answer), constant_headers(&computed));
    Ok(())
}

/// Values after random steps differ in each epoch: the value before them is cached.
#[test]
fn random_steps_continue_from_the_value_before_them() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    let text = "decode | resize(short=64) | random_crop(48) | flip_h | to_float";
    let pipeline = Pipeline::parse(text)?;
    for epoch in 0..6_u32 {
        let request = lab
            .request(text)
            .header("x-pushdown-seed", "7")
            .header("x-pushdown-epoch", &epoch.to_string());
        let request = signed_by(request, "first", GOOD_SIGNATURE);
        let answer = request.send(lab.gateway.listen())?;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let context = pushdown::Context {
            seed: Some(7),
            epoch: Some(epoch),
            ..pushdown::Context::new(b"cat.jpg")
        };
        let value = pipeline.run(
            0..pipeline.len(),
            Sample::Bytes(lab.photo.clone().into()),
            &context,
        )?;
        let Sample::Tensor(value) = value else {
            anyhow::bail!("expected a tensor")
        };
        assert_eq!(answer.body, value.data().as_slice(), "epoch {epoch}");
        let from = if epoch == 0 { "computed" } else { "prefix=2" };
        assert_eq!(origin(&answer)?, from, "epoch {epoch}");
    }
    Ok(())
}

#[test]
fn a_replaced_object_is_computed_anew() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    let other = photo(300, 500, "jpeg");
    lab.store.put(PATH, "\"2\"", other.clone());
    let answer = lab.get(PIPELINE)?;
    assert_eq!(origin(&answer)?, "computed");
    assert_eq!(answer.body, pixels(expected(&other, PIPELINE)));
    assert_eq!(answer.header("x-pushdown-source-etag"), Some("\"2\""));
    assert_eq!(origin(&lab.get(PIPELINE)?)?, "memory");
    Ok(())
}

#[test]
fn some_objects_and_requests_are_never_cached() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    for (etag, headers) in [("", ""), ("\"1\"", "Cache-Control: no-store\r\n")] {
        lab.store.put_with(PATH, etag, lab.photo.clone(), headers);
        for _ in 0..5 {
            assert_eq!(origin(&lab.get(PIPELINE)?)?, "computed", "{etag} {headers}");
        }
    }
    lab.store.put(PATH, "\"1\"", lab.photo.clone());
    lab.warm(PIPELINE)?;
    let request = lab
        .request(PIPELINE)
        .header("x-amz-server-side-encryption-customer-algorithm", "AES256");
    let request = signed_by(request, "first", GOOD_SIGNATURE);
    assert_eq!(origin(&request.send(lab.gateway.listen())?)?, "computed");
    Ok(())
}

/// It sends the object for each hit. Its ETag says that the cached value is right.
#[test]
fn a_store_that_ignores_conditions_is_safe() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.store.ignore_conditions();
    let computed = lab.get(PIPELINE)?;
    assert_eq!(lab.warm(PIPELINE)?.body, computed.body);
    lab.store.put(PATH, "\"2\"", photo(300, 500, "jpeg"));
    assert_eq!(origin(&lab.get(PIPELINE)?)?, "computed");
    Ok(())
}

#[test]
fn without_a_cache_no_request_is_conditional() -> Result<()> {
    let lab = CacheLab::new(&[])?;
    for _ in 0..3 {
        assert_eq!(origin(&lab.get(PIPELINE)?)?, "computed");
    }
    let requests = lab.store.requests();
    assert!(
        requests
            .iter()
            .all(|head| !head.to_lowercase().contains("if-none-match"))
    );
    assert_eq!(lab.store.sent().objects, 3);
    Ok(())
}

#[test]
fn plain_reads_are_never_cached() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    let objects = lab.store.sent().objects;
    for _ in 0..2 {
        let request = Request::new("GET", PATH).header("Host", "store");
        let request = signed_by(request, "first", GOOD_SIGNATURE);
        assert_eq!(request.send(lab.gateway.listen())?.body, lab.photo);
    }
    assert_eq!(lab.store.sent().objects, objects + 2);
    Ok(())
}

#[test]
fn the_status_page_shows_what_is_cached() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    let status: serde_json::Value = serde_json::from_slice(&lab.gateway.page("/status.json")?.body)?;
    let set = &status["cache"]["sets"][0];
    assert_eq!(set["tenants"], serde_json::json!(["first"]), "{status}");
    assert!(set["saved_seconds"].as_f64() > Some(0.0), "{status}");
    assert!(
        status["cache"]["memory_bytes"].as_u64() >= Some(48 * 48 * 3),
        "{status}"
    );
    let off = launch(&lab.store, &[])?;
    let status: serde_json::Value = serde_json::from_slice(&off.page("/status.json")?.body)?;
    assert!(status["cache"].is_null());
    Ok(())
}

/// A reader then sends hints, which cost bytes.
#[test]
fn a_gateway_with_a_cache_lists_it() -> Result<()> {
    for (flags, features) in [
        (
            &[][..],
            "cropped-jpeg, deliver, demand, each-parts, families, members, parts, stores",
        ),
        (
            &[MEMORY],
            "cache, cropped-jpeg, deliver, demand, each-parts, families, members, parts, stores",
        ),
    ] {
        let lab = CacheLab::new(flags)?;
        assert_eq!(lab.get(PIPELINE)?.header("x-pushdown-features"), Some(features));
    }
    Ok(())
}

/// Ceph answers so. The condition of the gateway names one version, so that the 304 can be for no other.
#[test]
fn a_304_without_an_etag_authorizes_the_version_of_the_condition() -> Result<()> {
    let photo = photo(300, 200, "jpeg");
    let objects = Arc::new(AtomicUsize::new(0));
    let (body, sent) = (photo.clone(), Arc::clone(&objects));
    let store = ScriptedOrigin::start(move |exchange| {
        if exchange.head.to_lowercase().contains("if-none-match: \"1\"") {
            return exchange.send("HTTP/1.1 304 Not Modified\r\n\r\n");
        }
        sent.fetch_add(1, Ordering::SeqCst);
        let length = body.len();
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {length}\r\n\r\n"
        ))?;
        exchange.send(&body)
    })?;
    let gateway = gateway_for(&store, &[MEMORY])?;
    let get = || {
        let request = Request::new("GET", PATH).header("Host", "store");
        let request = request
            .header("x-pushdown-pipeline", PIPELINE)
            .header("Accept", "application/octet-stream");
        signed_by(request, "first", GOOD_SIGNATURE).send(gateway.listen())
    };
    for expected_origin in ["computed", "memory", "memory"] {
        let answer = get()?;
        assert_eq!((answer.status, origin(&answer)?), (200, expected_origin));
        assert_eq!(answer.body, pixels(expected(&photo, PIPELINE)));
        assert_eq!(answer.header("x-pushdown-source-etag"), Some("\"1\""));
    }
    assert_eq!(objects.load(Ordering::SeqCst), 1, "a hit reads no object");
    Ok(())
}
