//! A soak: clients ask in random orders, objects are replaced, and the gateway is killed again and again and restarted on the same
//! disk. Every answer has the right value of a version that the store had when the client asked, or of a later one.

use std::{
    env,
    net::SocketAddr,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use parking_lot::{Mutex, RwLock};
use pushdown_testkit::{GOOD_SIGNATURE, PolicyStore, Request, Response, signed_by};

use super::{expected, launch, origin, photo, pixels};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 256 * MIB;
/// Seconds of the soak without [`SECONDS_VARIABLE`].
const SECONDS: u64 = 900;
const SECONDS_VARIABLE: &str = "PUSHDOWN_SOAK_SECONDS";
/// The gateway is killed after this time.
const LIFE: Duration = Duration::from_secs(15);
const CLIENTS: usize = 4;
/// Their values fit on the disk; with those of replaced versions they do not, so that space on it is reclaimed.
const OBJECTS: usize = 2000;
/// The first objects are replaced all the time.
const REPLACED: usize = 256;
/// A client replaces an object once per this many requests.
const REPLACEMENT_INTERVAL: usize = 8;
const PHOTOS: usize = 8;
/// Values of 2.5 KB and of 150 KB.
const PIPELINES: [&str; 2] = [
    "decode | resize(short=32) | center_crop(29)",
    "decode | resize(short=256) | center_crop(224)",
];

/// What the clients share with the thread that restarts the gateway.
struct Soak {
    store: PolicyStore,
    photos: Vec<Vec<u8>>,
    /// The values of each photo, by pipeline.
    values: Vec<[Vec<u8>; PIPELINES.len()]>,
    /// The version of each object.
    versions: Mutex<Vec<usize>>,
    /// The gateway, unless it is being killed or started.
    gateway: RwLock<Option<SocketAddr>>,
    is_over: AtomicBool,
}

/// A linear congruential generator, with the constants of Knuth's MMIX.
struct Random(u64);

impl Random {
    /// A number below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit
    }
}

fn path(object: usize) -> String {
    format!("/photos/{object:04}.jpg")
}

/// The photo of a version of an object. Neighbouring versions have different ones.
const fn photo_index(object: usize, version: usize) -> usize {
    (object + version) % PHOTOS
}

impl Soak {
    fn new() -> Result<Self> {
        let photos: Vec<Vec<u8>> = (400..)
            .step_by(40)
            .take(PHOTOS)
            .map(|width| photo(width, 400, "jpeg"))
            .collect();
        let value = |photo: &[u8], pipeline: &str| pixels(expected(photo, pipeline));
        let values: Vec<_> = photos
            .iter()
            .map(|photo| PIPELINES.map(|pipeline| value(photo, pipeline)))
            .collect();
        for (index, one) in values.iter().enumerate() {
            let is_unique = values[..index]
                .iter()
                .all(|other| other[0] != one[0] && other[1] != one[1]);
            ensure!(is_unique, "photo {index} has the values of another one");
        }
        let soak = Self {
            store: PolicyStore::start()?,
            photos,
            values,
            versions: Mutex::new(vec![0; OBJECTS]),
            gateway: RwLock::default(),
            is_over: AtomicBool::default(),
        };
        (0..OBJECTS).for_each(|object| soak.put(object, 0));
        Ok(soak)
    }

    fn put(&self, object: usize, version: usize) {
        let photo = self.photos[photo_index(object, version)].clone();
        self.store
            .put(&path(object), &format!("\"{object}-{version}\""), photo);
    }

    fn replace(&self, object: usize) {
        let mut versions = self.versions.lock();
        self.put(object, versions[object] + 1);
        versions[object] += 1;
    }

    /// Asks until the soak is over. Returns how many values came from the cache.
    fn ask(&self, client: usize) -> Result<usize> {
        let (access_key, mut random) = (format!("job{client}"), Random(client as u64));
        let mut hits = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            if random.below(REPLACEMENT_INTERVAL) == 0 {
                self.replace(random.below(REPLACED));
            }
            let (object, pipeline) = (random.below(OBJECTS), random.below(PIPELINES.len()));
            let oldest = self.versions.lock()[object];
            if let Some(answer) = self.get(&access_key, object, pipeline)? {
                hits += usize::from(self.check(object, pipeline, oldest, &answer)?);
            }
        }
        Ok(hits)
    }

    /// The answer; `None` if there is no gateway, or if it was killed.
    fn get(&self, access_key: &str, object: usize, pipeline: usize) -> Result<Option<Response>> {
        let Some(address) = *self.gateway.read() else {
            thread::sleep(Duration::from_millis(10));
            return Ok(None);
        };
        let request = Request::new("GET", &path(object))
            .header("Host", "store")
            .header("x-pushdown-pipeline", PIPELINES[pipeline])
            .header("Accept", "application/octet-stream");
        match signed_by(request, access_key, GOOD_SIGNATURE).send(address) {
            Ok(answer) => Ok(Some(answer)),
            Err(_) if *self.gateway.read() != Some(address) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks the value for the version that the answer names. Returns whether it came from the cache.
    fn check(&self, object: usize, pipeline: usize, oldest: usize, answer: &Response) -> Result<bool> {
        if answer.status == 503 {
            return Ok(false);
        }
        ensure!(answer.status == 200, "{}: {}", answer.status, answer.text());
        let (etag, origin) = (answer.header("x-pushdown-source-etag"), origin(answer)?);
        let version = etag.and_then(|etag| etag.trim_matches('"').strip_prefix(&format!("{object}-")));
        let version: usize = version
            .with_context(|| format!("object {object}: unexpected ETag {etag:?}"))?
            .parse()?;
        ensure!(
            version >= oldest,
            "object {object}, {origin}: expected version {oldest} or later, found {version}"
        );
        ensure!(
            answer.body == self.values[photo_index(object, version)][pipeline],
            "object {object}, version {version}, pipeline {pipeline}: wrong value, {origin}"
        );
        Ok(matches!(origin, "memory" | "disk"))
    }

    /// Starts the gateway, kills it in the middle of its work, and starts it again on the same disk, until `end`.
    fn restart_until(&self, end: Instant, folder: &Path) -> Result<()> {
        let flags = [
            format!("--memory-budget={BUDGET}"),
            "--cache-memory=64MiB".to_owned(),
            format!("--cache-dir={}", folder.display()),
            "--cache-disk=512MiB".to_owned(),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let is_over = || self.is_over.load(Ordering::Relaxed);
        while Instant::now() < end && !is_over() {
            let gateway = launch(&self.store, &flags)?;
            *self.gateway.write() = Some(gateway.listen());
            let killed_at = end.min(Instant::now() + LIFE);
            while Instant::now() < killed_at && !is_over() {
                thread::sleep(Duration::from_millis(100));
            }
            // From now on failed requests are expected. Dropping the gateway sends SIGKILL.
            *self.gateway.write() = None;
            let peak = gateway.peak_memory()?;
            ensure!(peak < BUDGET + 150 * MIB, "peak memory of {} MiB", peak / MIB);
            drop(gateway);
        }
        Ok(())
    }
}

#[test]
#[ignore = "15 minutes: make test-full"]
fn nothing_wrong_is_ever_served() -> Result<()> {
    let seconds = match env::var(SECONDS_VARIABLE) {
        Ok(text) => text.parse().context(SECONDS_VARIABLE)?,
        Err(_) => SECONDS,
    };
    let (soak, folder) = (&Soak::new()?, tempfile::tempdir()?);
    let end = Instant::now() + Duration::from_secs(seconds);
    let hits = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let asked = soak.ask(client);
                    // A wrong answer ends the soak for all.
                    soak.is_over.store(true, Ordering::Relaxed);
                    asked
                })
            })
            .collect();
        let restarted = soak.restart_until(end, folder.path());
        soak.is_over.store(true, Ordering::Relaxed);
        let mut hits = 0;
        for client in clients {
            hits += client.join().ok().context("a client panicked")??;
        }
        restarted?;
        anyhow::Ok(hits)
    })?;
    ensure!(hits > 0, "no value came from the cache");
    Ok(())
}
