//! `--resign-cache-max-age`: hits of the result cache without a request to the store, for keys whose grants decide.

mod age;
mod writes;

use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus, Row};
use pushdown_testkit::{Backend, Gateway, Keys, Request, Response, StoreRelay, photos};

use super::result_cache::{origin, read_until_cached};
use super::{
    BUCKET, Client, EVERYTHING, Grant, KeysFile, VALID, binary, caller, error_of, key_block, launch, trainer,
};

const PIPELINE: &str = "decode | resize(8, 8)";
const KEY: &str = "2024/cat.jpg";
const HOUR: &str = "--resign-cache-max-age=1h";

/// A gateway in re-sign mode with a result cache, and a store with one photo, which counts what it is asked. The store knows
/// [`caller`], with which the gateway signs for all other keys.
struct Lab {
    /// A client of the store.
    direct: Client,
    client: Client,
    gateway: Gateway,
    relay: StoreRelay,
    keys_file: KeysFile,
    photos: Vec<Vec<u8>>,
    _store: Gateway,
}

impl Lab {
    /// `None` if the embedded store is disabled.
    fn start(flags: &[&str]) -> Result<Option<Self>> {
        Self::start_with(flags, &[key_block(&trainer(), "gateway", &[EVERYTHING])])
    }

    /// The same, with the blocks of a keys file.
    fn start_with(flags: &[&str], blocks: &[String]) -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Gateway::embedded(binary(), &caller(), [""; 0])?;
        let address = store.store().context("no store")?;
        let relay = StoreRelay::start(address)?;
        let keys_file = KeysFile::new(blocks)?;
        let flags = [&["--cache-memory=64MiB"], flags].concat();
        let gateway = launch(relay.address(), &caller(), &keys_file, &flags)?;
        let lab = Self {
            direct: Client::new(&caller(), address),
            client: Client::new(&trainer(), gateway.listen()),
            gateway,
            relay,
            keys_file,
            photos: photos()?.into_values().take(2).collect(),
            _store: store,
        };
        lab.direct.store(BUCKET, "")?;
        lab.store_photo(0)?;
        Ok(Some(lab))
    }

    fn client_of(&self, keys: &Keys) -> Client {
        Client::new(keys, self.gateway.listen())
    }

    /// Adds or replaces the photo at the store, past the gateway.
    fn store_photo(&self, number: usize) -> Result<()> {
        let photo = self.photos.get(number).context("too few photos")?;
        self.direct.store(&target(), photo.clone())
    }

    /// The number of requests that the store has answered.
    fn asked(&self) -> usize {
        let sent = self.relay.sent();
        sent.objects + sent.not_modified + sent.refused
    }

    /// The number of requests to the store that an action costs.
    fn cost<T>(&self, action: impl FnOnce() -> Result<T>) -> Result<(T, usize)> {
        let before = self.asked();
        let result = action()?;
        Ok((result, self.asked() - before))
    }
}

/// The path of the photo.
fn target() -> String {
    format!("{BUCKET}/{KEY}")
}

/// A request with the pipeline.
fn ask(client: &Client, method: &str) -> Result<Response> {
    client.send(request(client, method))
}

fn request(client: &Client, method: &str) -> Request {
    client
        .request(method, &target())
        .header("x-pushdown-pipeline", PIPELINE)
}

fn warm(client: &Client) -> Result<Response> {
    read_until_cached(|| ask(client, "GET"))
}

/// The row of a batch with the photo alone.
fn batch_row(client: &Client) -> Result<Row> {
    let keys = client.keys.with_time(SystemTime::now());
    let signed = keys.presign(client.request("GET", &target()), VALID)?;
    let (path, query) = signed.target.split_once('?').context("no query")?;
    let (presign, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
    let samples = vec![BatchSample::new(path, signature)];
    let mut batch = BatchRequest::new(PIPELINE.parse()?, presign.to_owned(), samples);
    batch.cache = Some(CacheHints {
        epochs: 2,
        samples: 1,
    });
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &client.address.to_string())
        .body(serde_json::to_vec(&batch)?)
        .send(client.address)?;
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.into())?;
    reader.finish()?;
    rows.into_iter().next().context("no row")
}

#[test]
fn hits_within_the_age_do_not_reach_the_store() -> Result<()> {
    let Some(lab) = Lab::start(&[HOUR])? else {
        return Ok(());
    };
    let (value, client) = (warm(&lab.client)?, &lab.client);
    for client in [client.clone(), client.presigned(), client.with_virtual_host()] {
        for method in ["GET", "HEAD"] {
            let (answer, cost) = lab.cost(|| ask(&client, method))?;
            assert_eq!(
                (answer.status, origin(&answer)?, cost),
                (200, "memory", 0),
                "{method} {client:?}"
            );
            for name in [
                "etag",
                "last-modified",
                "x-pushdown-source-etag",
                "content-length",
            ] {
                ensure!(answer.header(name).is_some(), "{name}: {answer:?}");
                assert_eq!(answer.header(name), value.header(name), "{method} {name}");
            }
            ensure!(
                answer.body
                    == if method == "HEAD" {
                        vec![]
                    } else {
                        value.body.clone()
                    }
            );
        }
    }
    let (row, cost) = lab.cost(|| batch_row(client))?;
    ensure!(row.value.is_ok(), "{row:?}");
    assert_eq!((row.cache, cost), (CacheStatus::Memory, 0));
    Ok(())
}

#[test]
fn grants_decide_on_each_hit() -> Result<()> {
    let granted = Keys::new("TESTGRANTED00001", "secret-of-the-granted");
    let refused = [
        vec![],
        vec![Grant::new("photos", "2024/", &["read"])],
        vec![Grant::new("photos", "2023/", &["read"]).with_pipelines()],
    ];
    let refused: Vec<_> = (0..)
        .zip(&refused)
        .map(|(number, grants)| {
            let keys = Keys::new(&format!("TESTREFUSED{number:05}"), "secret-of-the-refused");
            (keys, grants)
        })
        .collect();
    let reads = Grant::new("photos", "2024/", &["read"]).with_pipelines();
    let mut blocks = vec![
        key_block(&trainer(), "gateway", &[EVERYTHING]),
        key_block(&granted, "gateway", &[reads]),
    ];
    let refused_blocks = refused
        .iter()
        .map(|(keys, grants)| key_block(keys, "gateway", grants));
    blocks.extend(refused_blocks);
    let Some(lab) = Lab::start_with(&[HOUR], &blocks)? else {
        return Ok(());
    };
    let value = warm(&lab.client)?;
    // What was confirmed for one key holds for every key with a grant.
    let (answer, cost) = lab.cost(|| ask(&lab.client_of(&granted), "GET"))?;
    assert_eq!((origin(&answer)?, cost), ("memory", 0));
    assert_eq!(answer.body, value.body);
    let (row, cost) = lab.cost(|| batch_row(&lab.client_of(&granted)))?;
    assert_eq!((row.cache, cost), (CacheStatus::Memory, 0));
    for (keys, grants) in &refused {
        let client = lab.client_of(keys);
        for client in [client.presigned(), client.clone()] {
            let (answer, cost) = lab.cost(|| ask(&client, "GET"))?;
            assert_eq!(
                (error_of(&answer), cost),
                ((403, "AccessDenied".to_owned()), 0),
                "{grants:?}"
            );
            for name in ["etag", "x-pushdown-source-etag", "x-pushdown-cache"] {
                ensure!(answer.header(name).is_none(), "{grants:?}: {name}");
            }
        }
        let (row, cost) = lab.cost(|| batch_row(&client))?;
        let error = row.value.err().context("a value without a grant")?;
        assert_eq!((error.code.as_str(), cost), ("AccessDenied", 0), "{grants:?}");
    }
    let wrong = Keys::new(&trainer().access, "another-secret-of-tests");
    let (answer, cost) = lab.cost(|| ask(&lab.client_of(&wrong), "GET"))?;
    assert_eq!((error_of(&answer).1.as_str(), cost), ("SignatureDoesNotMatch", 0));
    Ok(())
}
