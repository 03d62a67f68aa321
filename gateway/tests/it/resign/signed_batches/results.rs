//! The result cache: a cached value is only for keys that have a grant.

use anyhow::{Context as _, Result, bail, ensure};
use pushdown::wire::{CacheHints, CacheStatus, Row};
use pushdown_testkit::Response;

use super::{post, rows, unsigned};
use crate::it::resign::pipelines::RESIZE;
use crate::it::resign::result_cache::{Lab, PHOTO, READS, granted};
use crate::it::resign::{Client, Grant, trainer};

/// A batch of a reader that will read the object again.
fn ask(client: &Client) -> Result<Response> {
    let mut request = unsigned(RESIZE, &[PHOTO])?;
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
    let refused = vec![
        vec![READS],
        vec![Grant::new("photos", "2023/", &["read"]).with_pipelines()],
        vec![],
    ];
    let Some(lab) = Lab::start(refused)? else {
        return Ok(());
    };
    let expected = warm(&lab.client(&trainer()))?.value?;
    for (keys, grants) in &lab.refused {
        let answer = ask(&lab.client(keys))?;
        ensure!(answer.header("x-pushdown-cached-ratio").is_none(), "{grants:?}");
        let row = rows(answer)?.pop().context("no row")?;
        let code = row.value.err().map(|error| error.code);
        ensure!(code.as_deref() == Some("AccessDenied"), "{grants:?}: {code:?}");
        ensure!(row.cache == CacheStatus::Computed, "{grants:?}");
    }
    let row = row(&lab.client(&granted()))?;
    assert_eq!(row.cache, CacheStatus::Memory);
    ensure!(row.value? == expected, "another value");
    Ok(())
}
