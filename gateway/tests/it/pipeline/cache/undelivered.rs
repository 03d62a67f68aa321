//! Batches that are not delivered: their values are computed, kept in the result cache, and pinned.

use std::{path::Path, time::Duration};

use anyhow::{Result, ensure};
use pushdown::{
    Limits, Sample,
    wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus, Pin, Row},
};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, eventually};
use serde_json::Value;

use super::{MEMORY, PIPELINE, expected, launch, photo};

const OBJECTS: usize = 24;
/// Values of 150 KB.
const LARGE: &str = "decode | resize(short=256) | center_crop(224)";

/// A gateway in front of a store with photos.
struct Lab {
    store: PolicyStore,
    gateway: Gateway,
    photo: Vec<u8>,
}

impl Lab {
    fn new(flags: &[&str]) -> Result<Self> {
        let (store, photo) = (PolicyStore::start()?, photo(600, 400, "jpeg"));
        (0..OBJECTS).for_each(|index| store.put(&path(index), &format!("\"{index}\""), photo.clone()));
        Ok(Self {
            gateway: launch(&store, flags)?,
            store,
            photo,
        })
    }

    fn on_disk(folder: &Path) -> Result<Self> {
        let folder = format!("--cache-dir={}", folder.display());
        Self::new(&[&folder, "--cache-disk=256MiB"])
    }

    fn post(&self, body: Vec<u8>) -> Result<Response> {
        Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", "store")
            .body(body)
            .send(self.gateway.listen())
    }

    /// The rows of a batch, delivered or not.
    fn rows(&self, request: &BatchRequest) -> Result<Vec<Row>> {
        let answer = self.post(request.to_json()?)?;
        ensure!(answer.status == 200, "{}", answer.text());
        let mut reader = if request.deliver {
            BatchReader::new(Limits::default())
        } else {
            BatchReader::without_values(Limits::default())
        };
        let rows = reader.push(answer.body.into())?;
        reader.finish()?;
        assert!(rows.iter().map(|row| row.row).eq(0..u32::try_from(rows.len())?));
        Ok(rows)
    }

    /// Warms all objects; returns how many values are stored.
    fn warm(&self, pipeline: &str, pin: Option<Pin>) -> Result<usize> {
        let rows = self.rows(&undelivered("first", pipeline, pin)?)?;
        for row in &rows {
            ensure!(row.value == Ok(Sample::Bytes(Vec::new().into())), "{row:?}");
        }
        Ok(rows.iter().filter(|row| row.stored == Some(true)).count())
    }

    /// What came from the cache in a delivered batch.
    fn hits(&self, pipeline: &str) -> Result<usize> {
        let rows = self.rows(&request("first", pipeline)?)?;
        let expected = expected(&self.photo, pipeline);
        assert!(rows.iter().all(|row| row.value.as_ref() == Ok(&expected)));
        Ok(rows.iter().filter(|row| row.cache.is_hit()).count())
    }

    /// Seconds of steps so far.
    fn step_seconds(&self) -> Result<f64> {
        self.gateway
            .metric("pushdown_step_seconds_total{step=\"decode\"}")
    }

    fn pinned_bytes(&self) -> Result<f64> {
        self.gateway.metric("pushdown_cache_pinned_bytes")
    }

    fn pins(&self) -> Result<Value> {
        let status: Value = serde_json::from_slice(&self.gateway.page("/status.json")?.body)?;
        Ok(status["cache"]["pins"].clone())
    }
}

fn path(index: usize) -> String {
    format!("/photos/{index:03}.jpg")
}

/// A batch of all objects, with their ETags as listed.
fn request(access_key: &str, pipeline: &str) -> Result<BatchRequest> {
    let presign = format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={access_key}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
    );
    let samples = (0..OBJECTS).map(|index| BatchSample {
        etag: Some(format!("\"{index}\"")),
        ..BatchSample::new(path(index), GOOD_SIGNATURE)
    });
    let mut request = BatchRequest::new(pipeline.parse()?, presign, samples.collect());
    request.cache = Some(CacheHints {
        epochs: 1,
        samples: OBJECTS as u64,
    });
    Ok(request)
}

/// The same, without values.
fn undelivered(access_key: &str, pipeline: &str, pin: Option<Pin>) -> Result<BatchRequest> {
    let mut request = request(access_key, pipeline)?;
    request.deliver = false;
    request.pin = pin;
    Ok(request)
}

const fn pin(keep_seconds: u32) -> Pin {
    Pin { keep_seconds }
}

/// The second time moves no bytes of objects and runs no steps, and a delivered batch has hits alone.
#[test]
fn warming_twice_computes_once() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for lab in [Lab::new(&[MEMORY])?, Lab::on_disk(folder.path())?] {
        assert_eq!(lab.warm(PIPELINE, None)?, OBJECTS);
        let (sent, seconds) = (lab.store.sent(), lab.step_seconds()?);
        assert_eq!(sent.objects, OBJECTS);
        assert!(seconds > 0.0);
        assert_eq!(lab.warm(PIPELINE, None)?, OBJECTS);
        assert_eq!(lab.hits(PIPELINE)?, OBJECTS);
        let later = lab.store.sent();
        assert_eq!(
            (later.objects, later.bytes, later.not_modified),
            (sent.objects, sent.bytes, sent.not_modified + 2 * OBJECTS)
        );
        ensure!((lab.step_seconds()? - seconds).abs() < 1e-12);
        // What nobody pinned.
        assert_eq!((lab.pinned_bytes()?, lab.pins()?), (0.0, serde_json::json!([])));
    }
    Ok(())
}

/// The value before the first random step is the last one that later requests need. Its steps need no seed.
#[test]
fn the_value_before_random_steps_is_stored() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    let random = format!("{PIPELINE} | flip_h");
    let rows = lab.rows(&undelivered("first", &random, None)?)?;
    ensure!(
        rows.iter().all(|row| (row.stage, row.stored) == (3, Some(true))),
        "{rows:?}"
    );
    let mut delivered = request("first", &random)?;
    (delivered.seed, delivered.epoch) = (Some(7), Some(0));
    let rows = lab.rows(&delivered)?;
    ensure!(
        rows.iter().all(|row| row.cache == CacheStatus::Prefix),
        "{rows:?}"
    );
    Ok(())
}

#[test]
fn what_is_never_cached_is_not_stored() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    lab.store.put(&path(3), "W/\"weak\"", lab.photo.clone());
    let rows = lab.rows(&undelivered("first", PIPELINE, Some(pin(60)))?)?;
    for (index, row) in rows.iter().enumerate() {
        assert_eq!(row.stored, Some(index != 3), "{row:?}");
    }
    // The stored object, and a random first step.
    let mut objects = undelivered("first", PIPELINE, None)?;
    objects.split = pushdown::wire::Split::At(0);
    let rows = lab.rows(&objects)?;
    ensure!(rows.iter().all(|row| row.stored == Some(false)), "{rows:?}");
    Ok(())
}

#[test]
fn without_a_cache_nothing_can_be_warmed() -> Result<()> {
    let lab = Lab::new(&[])?;
    let answer = lab.post(undelivered("first", PIPELINE, None)?.to_json()?)?;
    assert_eq!(answer.status, 400);
    for flag in ["--cache-memory", "--cache-dir"] {
        assert!(answer.text().contains(flag), "{}", answer.text());
    }
    assert_eq!(lab.store.requests().len(), 0);
    Ok(())
}

#[test]
fn without_the_right_nothing_is_pinned() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    for index in 0..OBJECTS {
        lab.store.forbid("guest", &path(index));
    }
    // Also while the values are cached.
    for _ in 0..2 {
        let rows = lab.rows(&undelivered("guest", PIPELINE, Some(pin(60)))?)?;
        for row in rows {
            assert_eq!(row.stored, None);
            assert_eq!(
                row.value.map_err(|error| error.code),
                Err("AccessDenied".to_owned())
            );
        }
        assert_eq!((lab.pinned_bytes()?, lab.pins()?), (0.0, serde_json::json!([])));
        assert_eq!(lab.warm(PIPELINE, None)?, OBJECTS);
    }
    Ok(())
}

/// Values of 3.6 MB for a cache of 2 MiB.
#[test]
fn of_a_set_that_does_not_fit_a_part_is_stored() -> Result<()> {
    let lab = Lab::new(&["--cache-memory=2MiB", "--cache-pin-ratio=0.4"])?;
    let stored = lab.warm(LARGE, Some(pin(3600)))?;
    assert!((3..OBJECTS - 6).contains(&stored), "{stored} stored");
    let (pinned, space) = (lab.pinned_bytes()?, 0.9 * f64::from(2 << 20));
    assert!((pinned - 0.4 * space).abs() < 2.0, "{pinned}");
    assert_eq!(lab.hits(LARGE)?, stored);
    let pins = lab.pins()?;
    assert_eq!(
        (&pins[0]["tenant"], &pins[0]["sets"]),
        (&"first".into(), &1.into())
    );
    assert_eq!(pins[0]["bytes"].as_f64(), Some(pinned.round()), "{pins}");
    Ok(())
}

#[test]
fn a_pin_ends_with_its_lease() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    assert_eq!(lab.warm(PIPELINE, Some(pin(2)))?, OBJECTS);
    assert!(lab.pinned_bytes()? > 0.0);
    // A longer one of another set.
    assert_eq!(lab.warm(LARGE, Some(pin(3600)))?, OBJECTS);
    eventually("the first lease has ended", Duration::from_secs(30), || {
        let pins = lab.pins()?;
        Ok((pins[0]["sets"] == 1).then_some(()))
    })?;
    assert!(lab.pinned_bytes()? > 24.0 * 150_000.0);
    // What was stored is there until others need the space.
    assert_eq!(lab.hits(PIPELINE)?, OBJECTS);
    Ok(())
}

#[test]
fn a_pin_survives_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut lab = Lab::on_disk(folder.path())?;
    assert_eq!(lab.warm(PIPELINE, Some(pin(3600)))?, OBJECTS);
    let pinned = lab.pinned_bytes()?;
    assert!(pinned > 0.0);
    lab.gateway.terminate()?;
    lab.gateway.wait(Duration::from_secs(30))?;
    lab.gateway = launch(
        &lab.store,
        &[
            &format!("--cache-dir={}", folder.path().display()),
            "--cache-disk=256MiB",
        ],
    )?;
    eventually("the pin is there again", Duration::from_secs(30), || {
        Ok(((lab.pinned_bytes()? - pinned).abs() < 2.0).then_some(()))
    })?;
    assert_eq!(lab.pins()?[0]["tenant"], "first");
    let sent = lab.store.sent();
    assert_eq!(lab.warm(PIPELINE, None)?, OBJECTS);
    assert_eq!(lab.store.sent().bytes, sent.bytes);
    let computed = lab
        .gateway
        .metric("pushdown_cache_values_total{origin=\"computed\"}")?;
    ensure!(computed.abs() < 0.5, "{computed}");
    Ok(())
}

/// Requests of earlier readers have no `deliver`.
#[test]
fn a_delivered_batch_is_the_same_with_and_without_the_field() -> Result<()> {
    let lab = Lab::new(&[MEMORY])?;
    assert_eq!(lab.warm(PIPELINE, None)?, OBJECTS);
    let mut request = request("first", PIPELINE)?;
    // Rows that are ready at other times are sent in other groups.
    request.samples.truncate(1);
    let json: Value = serde_json::from_slice(&request.to_json()?)?;
    assert_eq!(json.get("deliver"), None);
    let mut stated = json.clone();
    stated["deliver"] = true.into();
    let [one, other] = [json, stated].map(|json| lab.post(json.to_string().into_bytes()));
    assert!(one?.body == other?.body);
    Ok(())
}
