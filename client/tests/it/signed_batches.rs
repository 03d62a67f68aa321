//! Batches of a reader at a gateway in re-sign mode: the request is signed, and its samples are not.

#[cfg(feature = "tables")]
mod tables;

use std::{ffi::OsStr, fs, io::Write as _, os::unix::fs::OpenOptionsExt as _, path::PathBuf, time::Duration};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    ErrorKind,
    reader::{Batch, PushdownReaderBuilder},
    store::{Credentials, RetryPolicy},
};
use pushdown_testkit::{
    Gateway, RelayAction, ScriptedOrigin, eventually, faulty_relay, features_relay, find_gateway,
};
use serde_json::Value;
use tempfile::TempDir;

use super::world::{ACCESS_KEY, SECRET_KEY, World, assert_same_rows, into_rows, read_rows, reader, run};

const PIPELINE: &str = "decode | resize(8, 8)";
const READER: (&str, &str) = ("TESTREADER000001", "secret-of-a-reader");
const OTHER: (&str, &str) = ("TESTOTHERKEY0001", "secret-of-another-key");

/// A gateway in re-sign mode in front of the store of another one.
struct Resigning {
    gateway: Gateway,
    folder: TempDir,
}

impl Resigning {
    /// Launches a gateway that knows this key, which may read everything.
    fn launch(world: &World, key: (&str, &str)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_keys(&folder, key);
        let flags = [
            format!("--upstream=http://{}", world.gateway.store().unwrap()),
            format!("--resign-keys={}", keys_file(&folder).display()),
        ];
        let environment = [
            ("AWS_ACCESS_KEY_ID", OsStr::new(ACCESS_KEY)),
            ("AWS_SECRET_ACCESS_KEY", OsStr::new(SECRET_KEY)),
            ("AWS_SESSION_TOKEN", OsStr::new("")),
        ];
        let gateway = Gateway::launch_with(&find_gateway().unwrap(), flags, &environment).unwrap();
        Self { gateway, folder }
    }

    /// Replaces all keys by this one.
    fn replace_keys(&self, key: (&str, &str)) {
        write_keys(&self.folder, key);
        eventually("the keys are replaced", Duration::from_secs(20), || {
            Ok(self.gateway.log()?.contains("keys file reloaded").then_some(()))
        })
        .unwrap();
    }
}

fn keys_file(folder: &TempDir) -> PathBuf {
    folder.path().join("keys.toml")
}

fn write_keys(folder: &TempDir, (access_key, secret): (&str, &str)) {
    let draft = folder.path().join("draft");
    let mut options = fs::File::options();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .unwrap();
    let text = format!(
        "[[key]]\naccess-key = {access_key:?}\nsecret = {secret:?}\nupstream = \"gateway\"\n\n[[key.grant]]\nbucket = \
         \"*\"\nallow = [\"list\", \"read\"]\npipelines = true\n"
    );
    file.write_all(text.as_bytes()).unwrap();
    fs::rename(draft, keys_file(folder)).unwrap();
}

/// A reader of all photos, three at a time, which signs with this key.
fn read_by(key: (&str, &str), world: &World, endpoint: &str) -> PushdownReaderBuilder {
    let keys: Vec<String> = world.objects.keys().cloned().collect();
    reader(endpoint, PIPELINE)
        .credentials(Credentials::new(key.0, key.1))
        .keys(keys)
        .batch_size(3)
        .requests(1)
}

/// For each batch request that arrived, whether it was signed.
fn signed_posts(relay: &ScriptedOrigin) -> Vec<bool> {
    let heads = relay.requests().into_iter();
    heads
        .filter(|head| head.starts_with("POST /_pushdown/v1/batch "))
        .map(|head| {
            head.to_lowercase()
                .contains("\r\nauthorization: aws4-hmac-sha256 ")
        })
        .collect()
}

#[test]
fn batches_are_signed_once_the_gateway_has_listed_the_feature() {
    let world = World::with_photos(9);
    let expected = read_rows(read_by((ACCESS_KEY, SECRET_KEY), &world, &world.endpoint()));
    let resigning = Resigning::launch(&world, READER);
    for (features, signed) in [
        // Nothing is known of the gateway before its first answer.
        ("families, signed-batches", [false, true, true]),
        ("families", [false; 3]),
    ] {
        let (relay, bodies) = features_relay(resigning.gateway.listen(), features).unwrap();
        let endpoint = format!("http://{}", relay.address());
        assert_same_rows(&read_rows(read_by(READER, &world, &endpoint)), &expected);
        assert_eq!(signed_posts(&relay), signed, "{features}");
        let bodies = bodies.lock();
        for (body, is_signed) in bodies.iter().zip(signed) {
            let request: Value = serde_json::from_slice(body).unwrap();
            assert_eq!(request.get("presign").is_none(), is_signed);
            let samples = request["samples"].as_array().unwrap();
            assert!(
                samples
                    .iter()
                    .all(|sample| sample.get("signature").is_none() == is_signed)
            );
        }
        if signed[1] {
            assert!(bodies[1].len() < bodies[0].len() / 2, "{}", bodies[1].len());
        }
    }
}

/// A gateway that forwards signatures cannot verify a signed batch.
#[test]
fn a_replaced_gateway_gets_presigned_samples_again() {
    let world = World::with_photos(9);
    let key = (ACCESS_KEY, SECRET_KEY);
    let expected = read_rows(read_by(key, &world, &world.endpoint()));
    let relay = faulty_relay(world.gateway.listen(), |earlier| match earlier {
        0 => RelayAction::OtherFeatures("families, signed-batches"),
        _ => RelayAction::Forward,
    })
    .unwrap();
    run(async {
        let endpoint = format!("http://{}", relay.address());
        let mut reader = read_by(key, &world, &endpoint).build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same_rows(&into_rows(batches), &expected);
        assert_eq!(reader.stats().retries, 0);
    });
    assert_eq!(signed_posts(&relay), [false, true, false, false]);
}

#[test]
fn a_withdrawn_key_ends_a_read() {
    let world = World::with_photos(24);
    let resigning = Resigning::launch(&world, READER);
    let endpoint = format!("http://{}", resigning.gateway.listen());
    run(async {
        let builder = read_by(READER, &world, &endpoint).prefetch_bytes(0);
        let mut reader = builder.retry(RetryPolicy::NEVER).build().await.unwrap();
        let mut batches = 1;
        reader.next().await.unwrap().unwrap();
        resigning.replace_keys(OTHER);
        let error = loop {
            match reader.next().await.unwrap() {
                Ok(_) => batches += 1,
                Err(error) => break error,
            }
        };
        assert!(batches < 8, "{batches} batches");
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("InvalidAccessKeyId"), "{error}");
    });
}
