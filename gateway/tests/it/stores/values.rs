//! Law 1: values do not depend on the addresses, nor on where they name the bucket.

use anyhow::{Context as _, Result, ensure};
use pushdown::{Context, Pipeline, Sample, wire::CacheHints};
use pushdown_testkit::{Gateway, Keys, Parquet, Payload, Request};

use super::*;

const RANDOM: &str = "decode | random_resized_crop(32) | flip_h";
const SEED: u64 = 7;
const EPOCH: u32 = 3;
/// Keys with and without slashes: the first segment of a path is no bucket at a virtual host.
const KEYS: [&str; 4] = ["1.jpg", "train/1.jpg", "photos/train/cat 1.jpg", "/a//1.jpg"];

/// The value of random steps on this host, for the sample with this key.
fn drawn(object: &[u8], key: &str) -> Result<Vec<u8>> {
    let pipeline = Pipeline::parse(RANDOM)?;
    let context = Context {
        seed: Some(SEED),
        epoch: Some(EPOCH),
        ..Context::new(key.as_bytes())
    };
    let sample = Sample::Bytes(object.to_vec().into());
    Ok(pixels(pipeline.run(0..pipeline.len(), sample, &context)?))
}

#[test]
fn random_steps_draw_by_the_key_in_either_style() -> Result<()> {
    let object = photo(400, 300, "jpeg");
    for style in STYLES {
        let lab = StoresLab::new(style, &[])?;
        for key in KEYS {
            lab.put(key, "\"1\"", object.clone());
        }
        let mut batch = lab.batch("first", &KEYS, RANDOM)?;
        (batch.seed, batch.epoch) = (Some(SEED), Some(EPOCH));
        let rows = lab.rows(&batch)?;
        assert_eq!(rows.len(), KEYS.len());
        for (key, row) in KEYS.into_iter().zip(rows) {
            let value = drawn(&object, key)?;
            let found = row.value.map(pixels);
            assert_eq!(found.as_ref(), Ok(&value), "{style:?} {key}");
            let answer = lab
                .request("first", key, RANDOM)
                .header("x-pushdown-seed", &SEED.to_string())
                .header("x-pushdown-epoch", &EPOCH.to_string())
                .send(lab.gateway.listen())?;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.body, value, "{style:?} {key}");
        }
    }
    Ok(())
}

#[test]
fn the_store_gets_what_was_signed_and_nothing_of_the_gateway() -> Result<()> {
    for style in STYLES {
        let lab = StoresLab::new(style, &[])?;
        lab.put(KEY, "\"1\"", photo(400, 300, "jpeg"));
        lab.get(KEY, PIPELINE)?;
        lab.rows(&lab.batch("first", &[KEY], PIPELINE)?)?;
        let heads = lab.store.requests();
        assert_eq!(heads.len(), 2);
        for head in heads {
            let head = head.to_ascii_lowercase();
            let target = format!("get {}?{} http/1.1", lab.path(KEY), signed_query("first"));
            ensure!(head.starts_with(&target.to_ascii_lowercase()), "{head}");
            let hosts: Vec<_> = head
                .lines()
                .filter_map(|line| line.strip_prefix("host: "))
                .collect();
            assert_eq!(hosts, [lab.authority()]);
            ensure!(!head.contains("x-pushdown") && !head.contains("accept"), "{head}");
        }
    }
    Ok(())
}

/// Readers and gateways compute the same hash of a sample, which decides what is cached, whatever the style.
#[test]
fn cached_ratios_are_of_the_data_set_of_the_bucket() -> Result<()> {
    for style in STYLES {
        let lab = StoresLab::new(style, &[MEMORY])?;
        let object = photo(400, 300, "jpeg");
        let keys: Vec<String> = (0..4).map(|number| format!("{number}/photo.jpg")).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        for key in &keys {
            lab.put(key, "\"1\"", object.clone());
        }
        let mut batch = lab.batch("first", &keys, PIPELINE)?;
        batch.cache = Some(CacheHints {
            epochs: 3,
            samples: 4,
        });
        lab.rows(&batch)?;
        let answer = lab.post(&batch)?;
        // One set: the folders are no buckets.
        let ratio = answer.header("x-pushdown-cached-ratio").context("no ratio")?;
        assert_eq!(ratio, "3=1", "{style:?}");
        let rows = rows(&answer)?;
        ensure!(rows.iter().all(|row| row.cache.is_hit()), "{style:?}: {rows:?}");
    }
    Ok(())
}

#[test]
fn tables_are_read_by_ranges_of_what_was_signed() -> Result<()> {
    let photos = [photo(80, 60, "jpeg"), photo(60, 80, "jpeg")];
    let photos: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    let table = Parquet::of_photos(&photos, 1)?;
    let mut bodies = Vec::new();
    for style in STYLES {
        let lab = StoresLab::new(style, &[])?;
        lab.store.support_ranges();
        lab.put("t.parquet", "\"1\"", table.clone());
        lab.put("t.csv", "\"1\"", "n\n1\n2\n");
        let rows = "select(row_number=row) | each(photo: decode | random_crop(32) | encode(png))";
        let mut request = lab.request("first", "t.parquet", rows);
        request.headers.retain(|(name, _)| name != "Accept");
        let answer = request
            .header("x-pushdown-seed", "7")
            .header("x-pushdown-epoch", "0")
            .header("Accept", "application/vnd.apache.arrow.stream")
            .send(lab.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        bodies.push(answer.body);
        let mut batch = lab.batch("first", &["t.csv"], "select")?;
        batch.table = Some(serde_json::from_str(r#"{"key": true}"#)?);
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", &lab.gateway.listen().to_string())
            .header("Accept", "text/csv")
            .body(batch.to_json()?)
            .send(lab.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        ensure!(answer.text().contains("t.csv,1"), "{}", answer.text());
        bodies.push(answer.body);
    }
    assert_eq!(bodies[..2], bodies[2..]);
    Ok(())
}

/// The gateway's own store needs no flag, and keeps serving requests that state none.
#[test]
fn the_upstream_is_a_store_that_requests_may_state() -> Result<()> {
    let store = Gateway::embedded(binary(), &Keys::new("owner", "secretofowner"), [""; 0])?;
    let address = store.store().context("no store")?;
    let keys = Keys::new("owner", "secretofowner");
    let object = photo(400, 300, "jpeg");
    let send = |method: &str, path: &str, body: Vec<u8>| -> Result<()> {
        let request = Request::new(method, path)
            .header("Host", &address.to_string())
            .body(body);
        let answer = keys.sign(request, Payload::Signed)?.send(address)?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(())
    };
    send("PUT", "/photos", Vec::new())?;
    send("PUT", "/photos/1.jpg", object.clone())?;
    let gateway = Gateway::launch(binary(), [format!("--upstream=http://{address}")])?;
    let valid = std::time::Duration::from_mins(5);
    let signed_for = |host: String| {
        let request = Request::new("GET", "/photos/1.jpg").header("Host", &host);
        Ok::<_, anyhow::Error>(keys.presign(request, valid)?.target)
    };
    let value = pixels(expected(&object, PIPELINE));
    let target = signed_for(address.to_string())?;
    let stated = get(&gateway, &target, PIPELINE).header(STORE, &format!("http://{address}"));
    let answer = stated.send(gateway.listen())?;
    ensure!(answer.status == 200 && answer.body == value, "{}", answer.text());
    let own = get(&gateway, &signed_for(gateway.listen().to_string())?, PIPELINE);
    let answer = own.send(gateway.listen())?;
    ensure!(answer.status == 200 && answer.body == value, "{}", answer.text());
    // Signed for the store, and not said so: the store sees another host.
    let unstated = get(&gateway, &target, PIPELINE).send(gateway.listen())?;
    assert_eq!(
        (unstated.status, code(&unstated).as_deref()),
        (403, Some("SignatureDoesNotMatch"))
    );
    Ok(())
}
