//! Law 1 as a property: answers that are computed, cached, shared, or continued from a cached prefix are equal.

mod cases;
mod models;

use std::{fs, path::Path, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use proptest::prelude::*;
use pushdown::{
    Limits,
    wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus, Row},
};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, eventually, signed_by};
use tempfile::TempDir;

use super::{CacheLab, MEMORY, PATH, constant_headers, launch, origin, photo};
use cases::{Case, case};

const DISK: &str = "--cache-disk=256MiB";
/// A value that is worth caching is cached within this time.
const LIMIT: Duration = Duration::from_secs(30);
/// Cases that share gateways. Each has data sets of its own, and a new data set gets a quarter of the free cache.
const CASES_PER_LAUNCH: usize = 8;
/// Time for which the store holds back an object. It makes computing slower than a hit, so that values are worth caching.
const STALL: Duration = Duration::from_millis(20);
const PRESIGN: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2F\
    aws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
/// Headers that a 304 of the store lacks.
const OBJECT_HEADERS: &str = "Last-Modified: Wed, 25 Nov 2026 08:00:00 GMT\r\nx-amz-meta-label: cat\r\n";

/// Gateways without a cache and with each level alone, in front of one store.
struct Gateways {
    store: PolicyStore,
    uncached: Gateway,
    memory: Gateway,
    disk: Gateway,
    _folder: TempDir,
}

/// A case, and the path of its object in a bucket of its own.
struct CaseLab<'a> {
    gateways: &'a Gateways,
    case: &'a Case,
    path: String,
}

/// Checks all cases with new gateways.
fn check_all(cases: &[Case]) -> Result<()> {
    let (store, folder) = (PolicyStore::start()?, tempfile::tempdir()?);
    let gateways = Gateways {
        uncached: launch(&store, &[])?,
        memory: launch(&store, &[MEMORY])?,
        disk: launch(&store, &[&cache_dir(&folder), DISK])?,
        store,
        _folder: folder,
    };
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/photos");
    for (index, case) in cases.iter().enumerate() {
        let path = |name: &str| format!("/photos{index}/{name}");
        let photo = fs::read(photos.join(case.photo))?;
        for name in ["photo", "copy"] {
            gateways
                .store
                .put_with(&path(name), "\"1\"", photo.clone(), OBJECT_HEADERS);
        }
        let lab = |name| CaseLab {
            gateways: &gateways,
            case,
            path: path(name),
        };
        let checked = lab("photo").check().and_then(|()| lab("copy").check_row());
        checked.with_context(|| format!("{} of {}, cut at {}", case.pipeline, case.photo, case.cut))?;
    }
    Ok(())
}

impl CaseLab<'_> {
    fn check(&self) -> Result<()> {
        let Gateways {
            uncached,
            memory,
            disk,
            ..
        } = self.gateways;
        let (cut, full) = (self.case.cut, self.case.pipeline.len());
        let (part, whole) = (self.get(uncached, cut)?, self.get(uncached, full)?);
        ensure!(origin(&part)? == "computed");
        ensure!(origin(&whole)? == "computed");

        self.check_level(memory, "memory", cut, &part)?;
        let continued = self.get(memory, full)?;
        let prefix = format!("prefix={}", self.last_deterministic(cut));
        ensure!(origin(&continued)? == prefix, "{}", origin(&continued)?);
        ensure_equal(&continued, &whole)?;

        self.check_level(disk, "disk", full, &whole)
    }

    /// A row that continues from the value at the cut. The next one finds the value that it has cached, if the steps after the cut
    /// take so long that a hit is cheaper.
    fn check_row(&self) -> Result<()> {
        let Gateways { uncached, memory, .. } = self.gateways;
        let cut = self.case.cut;
        self.get(memory, cut)?;
        let expected = self.row(uncached)?;
        for is_first in [true, false] {
            let row = self.row(memory)?;
            let is_found = !is_first && row.cache == CacheStatus::Memory;
            ensure!(row.cache == CacheStatus::Prefix || is_found, "{row:?}");
            ensure!(row.stage == expected.stage, "{row:?}");
            ensure!(row.value.is_ok() && row.value == expected.value, "{row:?}");
        }
        Ok(())
    }

    /// Compares the answers to two requests at a time, and then those of the cache, with the computed one.
    fn check_level(&self, gateway: &Gateway, level: &str, stage: usize, expected: &Response) -> Result<()> {
        let mut origins = Vec::new();
        for answer in self.ask_at_once(gateway, stage)? {
            ensure_equal(&answer, expected)?;
            origins.push(origin(&answer)?.to_owned());
        }
        origins.sort();
        ensure!(origins == ["computed", "shared"], "{origins:?}");
        let deterministic = self.last_deterministic(stage);
        let cached = if deterministic == stage {
            level.to_owned()
        } else {
            format!("prefix={deterministic}")
        };
        // A disk is written in the background.
        eventually(&format!("the answer is of {cached}"), LIMIT, || {
            let answer = self.get(gateway, stage)?;
            ensure_equal(&answer, expected)?;
            Ok((origin(&answer)? == cached).then_some(()))
        })
    }

    /// Two GETs of different tenants. The store holds back the end of the object until it has answered both.
    fn ask_at_once(&self, gateway: &Gateway, stage: usize) -> Result<[Response; 2]> {
        let store = &self.gateways.store;
        let before = store.sent();
        let answered = before.objects + before.not_modified + 2;
        store.set_stalled(true);
        thread::scope(|scope| {
            let asked = ["first", "second"].map(|key| scope.spawn(move || self.get_by(gateway, key, stage)));
            let waited = store.wait_until(|sent| sent.objects + sent.not_modified == answered);
            thread::sleep(STALL);
            store.set_stalled(false);
            waited?;
            let [one, other] = asked.map(|thread| thread.join().ok().context("a request panicked")?);
            Ok([one?, other?])
        })
    }

    fn get(&self, gateway: &Gateway, stage: usize) -> Result<Response> {
        self.get_by(gateway, "first", stage)
    }

    fn get_by(&self, gateway: &Gateway, access_key: &str, stage: usize) -> Result<Response> {
        let request = Request::new("GET", &self.path)
            .header("Host", "store")
            .header("x-pushdown-pipeline", &self.case.pipeline.to_string())
            .header("x-pushdown-split", &stage.to_string())
            .header("x-pushdown-seed", &self.case.seed.to_string())
            .header("x-pushdown-epoch", &self.case.epoch.to_string());
        let answer = signed_by(request, access_key, GOOD_SIGNATURE).send(gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer)
    }

    /// The row of a batch of this object alone.
    fn row(&self, gateway: &Gateway) -> Result<Row> {
        let samples = vec![BatchSample::new(self.path.as_str(), GOOD_SIGNATURE)];
        let mut request = BatchRequest::new(self.case.pipeline.clone(), PRESIGN, samples);
        request.seed = Some(self.case.seed);
        request.epoch = Some(self.case.epoch);
        request.cache = Some(CacheHints {
            epochs: 1,
            samples: 1,
        });
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", "store")
            .body(serde_json::to_vec(&request)?)
            .send(gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        let mut reader = BatchReader::new(Limits::default());
        let rows = reader.push(answer.body.into())?;
        reader.finish()?;
        rows.into_iter().next().context("no row")
    }

    /// The last stage up to `stage` whose value is the same in every epoch. Later values are not cached.
    fn last_deterministic(&self, stage: usize) -> usize {
        let steps = self.case.pipeline.steps()[..stage].iter();
        steps.take_while(|step| !step.is_random()).count()
    }
}

/// Fails unless status, headers and body are equal.
fn ensure_equal(found: &Response, expected: &Response) -> Result<()> {
    let origin = origin(found)?;
    ensure!(
        found.status == expected.status,
        "{origin}: status {}",
        found.status
    );
    let (found_headers, expected_headers) = (headers(found), headers(expected));
    ensure!(
        found_headers == expected_headers,
        "{origin}: expected {expected_headers:?}, found {found_headers:?}"
    );
    ensure!(found.body == expected.body, "{origin}: the bytes differ");
    Ok(())
}

/// The headers that must be equal. The features are those of the gateway: one without a cache does not list it.
fn headers(answer: &Response) -> Vec<(String, String)> {
    let mut headers = constant_headers(answer);
    headers.retain(|(name, _)| name != "x-pushdown-features");
    headers
}

fn cache_dir(folder: &TempDir) -> String {
    format!("--cache-dir={}", folder.path().display())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 32))]

    /// In each case the header `x-pushdown-cache` must say that the answer was made in the way that is checked.
    #[test]
    fn answers_are_equal_however_they_are_made(cases in prop::collection::vec(case(), CASES_PER_LAUNCH)) {
        check_all(&cases).map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
    }
}
