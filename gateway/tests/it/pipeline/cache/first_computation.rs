//! A value is cached at its first computation while there is space: the second job over a set that fits has hits alone.

use std::sync::LazyLock;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, signed_by};
use tempfile::TempDir;

use super::{launch, origin, photo};

/// Photos of different sizes.
static PHOTOS: LazyLock<Vec<Vec<u8>>> =
    LazyLock::new(|| (500..563).map(|width| photo(width, 400, "jpeg")).collect());
const OBJECTS: usize = 63;
const LATER_JOBS: usize = 3;
/// Values of 7 KB and of 150 KB.
const PIPELINES: [&str; 2] = [
    "decode | resize(short=64) | center_crop(48)",
    "decode | resize(short=256) | center_crop(224)",
];

/// A gateway in front of a store with the photos.
struct Lab {
    store: PolicyStore,
    gateway: Gateway,
    _folder: TempDir,
}

/// The places for values: memory, disk, or both, with less memory than the larger values need.
fn caches() -> [&'static [&'static str]; 3] {
    const DISK: [&str; 2] = ["--cache-dir={folder}", "--cache-disk=256MiB"];
    [
        &["--cache-memory=64MiB"],
        &DISK,
        &["--cache-memory=4MiB", DISK[0], DISK[1]],
    ]
}

impl Lab {
    fn new(flags: &[&str]) -> Result<Self> {
        let (store, folder) = (PolicyStore::start()?, tempfile::tempdir()?);
        for (index, photo) in PHOTOS.iter().enumerate() {
            store.put(&path(index), &format!("\"{index}\""), photo.clone());
        }
        let path = folder.path().display().to_string();
        let flags: Vec<String> = flags.iter().map(|flag| flag.replace("{folder}", &path)).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Ok(Self {
            gateway: launch(&store, &flags)?,
            store,
            _folder: folder,
        })
    }

    /// Values that were computed, and those that were in the cache, by the metrics.
    fn counts(&self) -> Result<(f64, f64)> {
        let values = |origin| {
            self.gateway
                .metric(&format!("pushdown_cache_values_total{{origin=\"{origin}\"}}"))
        };
        Ok((values("computed")?, values("memory")? + values("disk")?))
    }

    /// Checks that all values were computed once, by the first of some jobs, and were in the cache for the others.
    fn check(&self, jobs: usize) -> Result<()> {
        let (computed, cached) = self.counts()?;
        let expected = (OBJECTS, (jobs - 1) * OBJECTS);
        let expected = (u32::try_from(expected.0)?, u32::try_from(expected.1)?);
        assert_eq!((computed, cached), (f64::from(expected.0), f64::from(expected.1)));
        assert_eq!(self.store.sent().objects, OBJECTS);
        Ok(())
    }

    /// A job of GETs, which announces nothing. Returns how many values were computed.
    fn read_by_gets(&self, pipeline: &str) -> Result<usize> {
        let mut computed = 0;
        for index in 0..OBJECTS {
            let request = Request::new("GET", &path(index))
                .header("Host", "store")
                .header("x-pushdown-pipeline", pipeline)
                .header("Accept", "application/octet-stream");
            let answer = signed_by(request, "first", GOOD_SIGNATURE).send(self.gateway.listen())?;
            ensure!(answer.status == 200, "{}", answer.text());
            computed += usize::from(origin(&answer)? == "computed");
        }
        Ok(computed)
    }

    /// A job of batches. Only the first one computes values.
    fn read_by_batches(&self, pipeline: &str, hints: Option<CacheHints>, is_first: bool) -> Result<()> {
        let presign = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
                       &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
        let samples: Vec<BatchSample> = (0..OBJECTS)
            .map(|index| BatchSample::new(path(index), GOOD_SIGNATURE))
            .collect();
        let (computed, _) = self.counts()?;
        for batch in samples.chunks(16) {
            let mut request = BatchRequest::new(pipeline.parse()?, presign, batch.to_vec());
            request.cache = hints;
            let answer = Request::new("POST", "/_pushdown/v1/batch")
                .header("Host", "store")
                .body(serde_json::to_vec(&request)?)
                .send(self.gateway.listen())?;
            ensure!(answer.status == 200, "{}", answer.text());
            let mut reader = BatchReader::new(pushdown::Limits::default());
            for row in reader.push(answer.body.into())? {
                let is_computed = row.cache == CacheStatus::Computed;
                ensure!(is_computed == is_first, "{row:?}");
                row.value?;
            }
            reader.finish()?;
        }
        let expected = if is_first { u32::try_from(OBJECTS)? } else { 0 };
        let computed = self.counts()?.0 - computed;
        ensure!(
            (computed - f64::from(expected)).abs() < 0.5,
            "{computed} computed"
        );
        Ok(())
    }
}

fn path(index: usize) -> String {
    format!("/photos/{index:03}.jpg")
}

/// The value in memory and on disk is the larger one.
#[test]
fn later_jobs_of_gets_have_hits_alone() -> Result<()> {
    let [memory, disk, both] = caches();
    for (flags, pipeline) in [(memory, PIPELINES[0]), (disk, PIPELINES[0]), (both, PIPELINES[1])] {
        check_gets(flags, pipeline)?;
    }
    Ok(())
}

#[test]
#[ignore = "every cache and value: make test-full"]
fn later_jobs_of_gets_have_hits_alone_in_every_cache() -> Result<()> {
    for flags in caches() {
        for pipeline in PIPELINES {
            check_gets(flags, pipeline)?;
        }
    }
    Ok(())
}

fn check_gets(flags: &[&str], pipeline: &str) -> Result<()> {
    let lab = Lab::new(flags)?;
    assert_eq!(lab.read_by_gets(pipeline)?, OBJECTS);
    for _ in 0..LATER_JOBS {
        assert_eq!(lab.read_by_gets(pipeline)?, 0, "{pipeline} with {flags:?}");
    }
    lab.check(1 + LATER_JOBS)
}

const ONE_EPOCH: CacheHints = CacheHints {
    epochs: 1,
    samples: OBJECTS as u64,
};

#[test]
fn later_jobs_of_batches_have_hits_alone() -> Result<()> {
    let [memory, _, both] = caches();
    for (flags, hints) in [(memory, Some(ONE_EPOCH)), (both, None)] {
        check_batches(flags, hints)?;
    }
    Ok(())
}

#[test]
#[ignore = "every cache, with and without hints: make test-full"]
fn later_jobs_of_batches_have_hits_alone_in_every_cache() -> Result<()> {
    for flags in caches() {
        for hints in [None, Some(ONE_EPOCH)] {
            check_batches(flags, hints)?;
        }
    }
    Ok(())
}

fn check_batches(flags: &[&str], hints: Option<CacheHints>) -> Result<()> {
    let lab = Lab::new(flags)?;
    for job in 0..=LATER_JOBS {
        lab.read_by_batches(PIPELINES[1], hints, job == 0)
            .with_context(|| format!("job {job} with {hints:?} and {flags:?}"))?;
    }
    lab.check(1 + LATER_JOBS)
}

/// Each job has another pipeline. Nobody uses one again, and their values together do not fit.
#[test]
fn jobs_that_are_never_repeated_stay_within_the_memory() -> Result<()> {
    const MEMORY_BYTES: f64 = 8.0 * 1024.0 * 1024.0;
    let lab = Lab::new(&["--cache-memory=8MiB"])?;
    for side in 200..204 {
        lab.read_by_gets(&format!("decode | resize(short=256) | center_crop({side})"))?;
        let bytes = lab.gateway.metric("pushdown_cache_memory_bytes")?;
        ensure!(bytes > 0.0 && bytes <= MEMORY_BYTES, "{bytes} bytes");
    }
    Ok(())
}
