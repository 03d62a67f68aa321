//! Re-sign mode in front of a store that addresses and refuses as AWS does: virtual hosts, regions, newly created buckets, and
//! credentials that end, from each source of AWS's chain.

mod failures;
mod leaks;
mod newly_created;
mod operations;
mod own_keys;
mod pipelines;
mod regions;
mod scripted;
mod sessions;
mod sources;
mod unsent_bodies;
mod uploads;

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{AwsFront, Backend, FrontRecord, Gateway, Response, Store};

use super::{BUCKET, Client, DOMAIN, EVERYTHING, KeysFile, binary, error_of, key_block, trainer};

/// The region that the gateway is configured for.
const REGION: &str = "us-east-1";
const OTHER_REGION: &str = "eu-central-1";
/// Hosts of the store.
const HOME_HOST: &str = "s3.us-east-1.localhost";
const BUCKET_HOST: &str = "photos.s3.us-east-1.localhost";
/// Of sessions that end after the test.
const LIFETIME: Duration = Duration::from_mins(10);
/// The variable with the URL of the credentials endpoint.
const CREDENTIALS_URL: &str = "AWS_CONTAINER_CREDENTIALS_FULL_URI";

/// A store with one bucket, a front of it, and a gateway in front of both with a key that the store does not know.
struct Lab {
    /// To the store itself.
    direct: Client,
    /// To a gateway in forward mode in front of the store.
    forward: Client,
    through: Client,
    front: AwsFront,
    gateway: Gateway,
    _store: Store,
    _keys_file: KeysFile,
}

impl Lab {
    /// Starts the embedded store. `None` if it is disabled.
    fn start() -> Result<Option<Self>> {
        Self::start_with(Backend::Embedded, LIFETIME, &[])
    }

    /// Starts a store, with sessions of this lifetime. `None` if the backend is disabled.
    fn start_with(backend: Backend, lifetime: Duration, flags: &[&str]) -> Result<Option<Self>> {
        if !backend.is_enabled()? {
            return Ok(None);
        }
        let (store, keys) = (backend.start(binary())?, trainer());
        let front = AwsFront::start(store.address, &store.keys, REGION, lifetime)?;
        let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[EVERYTHING])])?;
        let variables = [(CREDENTIALS_URL, front.credentials_url())];
        let gateway = launch(&front.url(), &keys_file, &variables, flags)?;
        let lab = Self {
            direct: Client::new(&store.keys, store.address),
            forward: Client::new(&store.keys, store.gateway.listen()),
            through: Client::new(&keys, gateway.listen()),
            front,
            gateway,
            _store: store,
            _keys_file: keys_file,
        };
        lab.direct.store(BUCKET, "")?;
        Ok(Some(lab))
    }

    /// Clients of the gateway that differ in how they address and sign.
    fn clients(&self) -> [(&'static str, Client); 4] {
        self.through.styles()
    }

    /// Creates a bucket in the other region, with objects `0` to `2`, of which the gateway knows nothing.
    fn create_elsewhere(&self, bucket: &str) -> Result<()> {
        self.direct.store(bucket, "")?;
        for key in 0..3 {
            self.direct.store(&format!("{bucket}/{key}"), "body")?;
        }
        self.front
            .move_bucket(bucket.trim_start_matches('/'), OTHER_REGION);
        Ok(())
    }

    /// Checks what the store itself has for an object.
    fn check_object(&self, target: &str, expected: &[u8]) -> Result<()> {
        let answer = self.direct.call("GET", target)?;
        ensure!(
            answer.status == 200 && answer.body == expected,
            "{target}: expected {} bytes, found the status {} and {} bytes",
            expected.len(),
            answer.status,
            answer.body.len()
        );
        Ok(())
    }
}

/// Launches a gateway in front of a store with virtual hosts, with these environment variables and no other credentials.
fn launch(url: &str, keys_file: &KeysFile, variables: &[(&str, String)], flags: &[&str]) -> Result<Gateway> {
    let own = [
        format!("--upstream={url}"),
        "--resign-upstream-style=virtual".to_owned(),
        format!("--resign-region={REGION}"),
        format!("--resign-keys={}", keys_file.path().display()),
        format!("--resign-domains={DOMAIN}"),
    ];
    let missing = keys_file.path().with_file_name("missing");
    let mut environment: Vec<(&str, &OsStr)> =
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"]
            .map(|name| (name, OsStr::new("")))
            .to_vec();
    environment.extend([
        ("AWS_CONFIG_FILE", missing.as_os_str()),
        ("AWS_SHARED_CREDENTIALS_FILE", missing.as_os_str()),
        ("AWS_EC2_METADATA_DISABLED", OsStr::new("true")),
    ]);
    environment.extend(variables.iter().map(|(name, value)| (*name, OsStr::new(value))));
    let flags = own.iter().map(String::as_str).chain(flags.iter().copied());
    Gateway::launch_with(binary(), flags, &environment)
}

/// The number of refusals of a front.
fn refusals(record: &FrontRecord) -> usize {
    record.refusals.values().sum()
}

/// Checks an answer that tells its client to try again later, and nothing of the store. HEAD has no code.
fn check_slow_down(answer: &Response) -> Result<()> {
    let (status, code) = error_of(answer);
    ensure!(
        status == 503 && (answer.body.is_empty() || code == "SlowDown"),
        "{answer:?}"
    );
    let pause: u64 = answer
        .header("retry-after")
        .with_context(|| format!("no Retry-After: {answer:?}"))?
        .parse()?;
    ensure!(pause >= 1 && answer.header("location").is_none(), "{answer:?}");
    Ok(())
}
