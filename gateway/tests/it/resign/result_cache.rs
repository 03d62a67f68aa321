//! Law 6 in re-sign mode: a cached value is only for keys that have a grant, and only while they have it.

use anyhow::{Context as _, Result, bail, ensure};
use pushdown_testkit::{Backend, Keys, Response, photos};

use super::{BUCKET, Client, EVERYTHING, Grant, KeysFile, binary, error_of, key_block, launch, trainer};

const PIPELINE: &str = "decode | resize(8, 8)";
const KEY: &str = "2024/cat.jpg";

/// A GET with a pipeline.
fn get(client: &Client) -> Result<Response> {
    let request = client
        .request("GET", &format!("{BUCKET}/{KEY}"))
        .header("x-pushdown-pipeline", PIPELINE)
        .header("Accept", "application/octet-stream");
    client.send(request)
}

/// Where the value of an answer came from.
pub(super) fn origin(answer: &Response) -> Result<&str> {
    answer.header("x-pushdown-cache").with_context(|| answer.text())
}

/// Reads until the value is cached: a data set is worth it once it is read repeatedly.
pub(super) fn read_until_cached(read: impl Fn() -> Result<Response>) -> Result<Response> {
    for _ in 0..5 {
        let answer = read()?;
        if origin(&answer)? == "memory" {
            return Ok(answer);
        }
    }
    bail!("the value is not cached")
}

#[test]
fn a_cached_value_needs_a_grant() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let store = Backend::Embedded.start(binary())?;
    let reads = Grant::new("photos", "2024/", &["read"]);
    // Each differs from the first key in what it may do.
    let granted = Keys::new("TESTGRANTED00001", "secret-of-the-granted");
    let refused: Vec<_> = [
        vec![],
        vec![reads],
        vec![Grant::new("photos", "2024-secret/", &["read"]).with_pipelines()],
        vec![Grant::new("other", "", &["read"]).with_pipelines()],
        vec![Grant::new("photos", "", &["list", "write", "delete"])],
    ]
    .into_iter()
    .enumerate()
    .map(|(number, grants)| {
        let keys = Keys::new(&format!("TESTREFUSED{number:05}"), "secret-of-the-refused");
        (keys, grants)
    })
    .collect();
    let mut blocks = vec![
        key_block(&trainer(), "gateway", &[EVERYTHING]),
        key_block(&granted, "gateway", &[reads.with_pipelines()]),
    ];
    blocks.extend(
        refused
            .iter()
            .map(|(keys, grants)| key_block(keys, "gateway", grants)),
    );
    let keys_file = KeysFile::new(&blocks)?;
    let gateway = launch(store.address, &store.keys, &keys_file, &["--cache-memory=64MiB"])?;
    let client = Client::new(&trainer(), gateway.listen());
    client_setup(&Client::new(&store.keys, store.address))?;

    let value = read_until_cached(|| get(&client))?;
    for (keys, grants) in &refused {
        let path = Client::new(keys, gateway.listen());
        for client in [path.presigned(), path.with_virtual_host(), path] {
            let answer = get(&client)?;
            let expected = (403, "AccessDenied".to_owned());
            ensure!(error_of(&answer) == expected, "{grants:?}: {answer:?}");
            for name in ["x-pushdown-cache", "x-pushdown-source-etag", "etag"] {
                ensure!(answer.header(name).is_none(), "{grants:?}: {name}");
            }
        }
    }
    // A wrong signature is refused, too, and those with a grant share the value.
    let wrong = Keys::new(&trainer().access, "another-secret-of-tests");
    let answer = get(&Client::new(&wrong, gateway.listen()))?;
    assert_eq!(error_of(&answer), (403, "SignatureDoesNotMatch".to_owned()));
    for keys in [granted, trainer()] {
        let path = Client::new(&keys, gateway.listen());
        for client in [path.presigned(), path.with_virtual_host(), path] {
            let answer = get(&client)?;
            assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{client:?}");
            assert_eq!(answer.body, value.body);
        }
    }
    Ok(())
}

/// Creates the bucket with one photo.
fn client_setup(direct: &Client) -> Result<()> {
    let (_, photo) = photos()?.into_iter().next().context("no photos")?;
    direct.store(BUCKET, "")?;
    direct.store(&format!("{BUCKET}/{KEY}"), photo)
}

/// The store is asked for each hit: what it has replaced or deleted is no answer.
#[test]
fn a_hit_is_confirmed_by_the_store() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    let store = Backend::Embedded.start(binary())?;
    let keys_file = KeysFile::new(&[key_block(&trainer(), "gateway", &[EVERYTHING])])?;
    let gateway = launch(store.address, &store.keys, &keys_file, &["--cache-memory=64MiB"])?;
    let (direct, client) = (
        Client::new(&store.keys, store.address),
        Client::new(&trainer(), gateway.listen()),
    );
    client_setup(&direct)?;
    let value = read_until_cached(|| get(&client))?;
    let target = format!("{BUCKET}/{KEY}");
    let other = photos()?.into_values().nth(1).context("one photo")?;
    direct.store(&target, other)?;
    let answer = get(&client)?;
    ensure!(answer.status == 200 && origin(&answer)? != "memory", "{answer:?}");
    ensure!(answer.header("etag") != value.header("etag"));
    assert_eq!(direct.call("DELETE", &target)?.status, 204);
    let answer = get(&client)?;
    assert_eq!(error_of(&answer), (404, "NoSuchKey".to_owned()));
    Ok(())
}
