//! Jobs over one data set: the store and the steps work for one of them.

use std::thread;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus, Order, Row};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request};

use super::{MEMORY, expected, launch, photo, pixels};

const SAMPLES: usize = 96;
const BATCH_SIZE: usize = 16;
const PIPELINE: &str = "decode | resize(short=64) | center_crop(48)";

/// One epoch of a job: all samples, in an order of its own, in batches.
fn epoch(gateway: &Gateway, job: usize, epochs_left: u32) -> Result<Vec<Row>> {
    let presign = format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=job{job}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
    );
    // 37 is prime to the number of samples.
    let order: Vec<usize> = (0..SAMPLES).map(|nth| (nth * 37 + job) % SAMPLES).collect();
    let mut all = Vec::new();
    for batch in order.chunks(BATCH_SIZE) {
        let samples = batch
            .iter()
            .map(|index| BatchSample::new(format!("/photos/{index}.jpg"), GOOD_SIGNATURE));
        let mut request = BatchRequest::new(PIPELINE.parse()?, presign.as_str(), samples.collect());
        request.order = Order::Any;
        request.cache = Some(CacheHints {
            epochs: epochs_left,
            samples: SAMPLES as u64,
        });
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", "store")
            .body(serde_json::to_vec(&request)?)
            .send(gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        let mut reader = BatchReader::new(pushdown::Limits::default());
        all.extend(reader.push(answer.body.into())?);
        reader.finish()?;
    }
    Ok(all)
}

fn store() -> Result<(PolicyStore, Vec<u8>)> {
    let (store, photo) = (PolicyStore::start()?, photo(600, 400, "jpeg"));
    (0..SAMPLES).for_each(|index| {
        store.put(
            &format!("/photos/{index}.jpg"),
            &format!("\"{index}\""),
            photo.clone(),
        );
    });
    Ok((store, photo))
}

/// Each sample is fetched and computed once, and the other jobs get it from the cache or from the flight.
#[test]
fn four_and_ten_jobs_cost_the_store_one() -> Result<()> {
    for jobs in [4, 10] {
        let (store, photo) = store()?;
        let gateway = launch(&store, &[MEMORY])?;
        let value = pixels(expected(&photo, PIPELINE));
        let gateway = &gateway;
        let rows: Vec<Row> = thread::scope(|scope| {
            let running: Vec<_> = (0..jobs)
                .map(|job| scope.spawn(move || epoch(gateway, job, 2)))
                .collect();
            let ended = running
                .into_iter()
                .map(|job| job.join().ok().context("a job panicked")?);
            let rows: Result<Vec<Vec<Row>>> = ended.collect();
            rows.map(|rows| rows.into_iter().flatten().collect())
        })?;
        assert_eq!(rows.len(), jobs * SAMPLES);
        let mut computed = 0;
        for row in rows {
            computed += usize::from(row.cache == CacheStatus::Computed);
            assert_eq!(pixels(row.value?), value);
        }
        let sent = store.sent();
        assert_eq!(
            (computed, sent.objects, sent.not_modified),
            (SAMPLES, SAMPLES, (jobs - 1) * SAMPLES),
            "{jobs} jobs"
        );
    }
    Ok(())
}

/// With one job nothing is shared in the first epoch, and everything in the second.
#[test]
fn the_second_epoch_of_a_job_is_cached() -> Result<()> {
    let (store, _) = store()?;
    let gateway = launch(&store, &[MEMORY])?;
    for (epochs_left, expected) in [(2, CacheStatus::Computed), (1, CacheStatus::Memory)] {
        for row in epoch(&gateway, 0, epochs_left)? {
            assert_eq!(row.cache, expected);
        }
    }
    assert_eq!(store.sent().objects, SAMPLES);
    Ok(())
}

/// Nobody has announced that anybody asks again: there is space, so values are cached, and that costs the store nothing.
#[test]
fn one_epoch_of_one_job_is_cached_while_there_is_space() -> Result<()> {
    let (store, _) = store()?;
    let gateway = launch(&store, &[MEMORY])?;
    epoch(&gateway, 0, 1)?;
    let inserted = gateway.metric("pushdown_cache_inserted_bytes_total{tier=\"memory\"}")?;
    ensure!(inserted > 1.0, "{inserted} bytes");
    assert_eq!(store.requests().len(), SAMPLES);
    for job in [0, 1, 2] {
        for row in epoch(&gateway, job, 1)? {
            assert_eq!(row.cache, CacheStatus::Memory, "job {job}");
        }
    }
    assert_eq!(store.sent().objects, SAMPLES);
    Ok(())
}
