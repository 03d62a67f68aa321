//! The result cache: a cached value is only for keys that have a grant.

use anyhow::{Context as _, Result, bail, ensure};
use pushdown::wire::{CacheHints, CacheStatus, Row};
use pushdown_testkit::{Backend, Keys, Response, photos};

use super::{post, rows, unsigned};
use crate::it::resign::pipelines::RESIZE;
use crate::it::resign::{Client, EVERYTHING, Grant, KeysFile, binary, key_block, launch, trainer};

const PATH: &str = "/photos/2024/cat.jpg";

/// A batch of a reader that will read the object again.
fn ask(client: &Client) -> Result<Response> {
    let mut request = unsigned(RESIZE, &[PATH])?;
    request.cache = Some(CacheHints {
        epochs: 5,
        samples: 1,
    });
    client.send(post(client, &request)?)
}

fn row(client: &Client) -> Result<Row> {
    rows(ask(client)?)?.pop().context("no row")
}

/// Asks until the value is cached.
fn warm(client: &Client) -> Result<Row> {
    for _ in 0..5 {
        let row = row(client)?;
        if row.cache == CacheStatus::Memory {
            return Ok(row);
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
    let direct = Client::new(&store.keys, store.address);
    let (_, photo) = photos()?.into_iter().next().context("no photos")?;
    direct.store("/photos", "")?;
    direct.store(PATH, photo)?;
    let reads = Grant::new("photos", "2024/", &["read"]);
    let granted = Keys::new("TESTGRANTED00001", "secret-of-the-granted");
    let refused = [
        (Keys::new("TESTREFUSED00001", "secret-of-the-first"), vec![reads]),
        (
            Keys::new("TESTREFUSED00002", "secret-of-the-second"),
            vec![Grant::new("photos", "2023/", &["read"]).with_pipelines()],
        ),
        (Keys::new("TESTREFUSED00003", "secret-of-the-third"), vec![]),
    ];
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
    let client = |keys: &Keys| Client::new(keys, gateway.listen());
    let expected = warm(&client(&trainer()))?.value?;
    for (keys, grants) in &refused {
        let answer = ask(&client(keys))?;
        ensure!(answer.header("x-pushdown-cached-ratio").is_none(), "{grants:?}");
        let row = rows(answer)?.pop().context("no row")?;
        let code = row.value.err().map(|error| error.code);
        ensure!(code.as_deref() == Some("AccessDenied"), "{grants:?}: {code:?}");
        ensure!(row.cache == CacheStatus::Computed, "{grants:?}");
    }
    let row = row(&client(&granted))?;
    assert_eq!(row.cache, CacheStatus::Memory);
    ensure!(row.value? == expected, "another value");
    Ok(())
}
