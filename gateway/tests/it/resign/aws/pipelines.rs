//! Pipelines and batches, with the values of forward mode.

use anyhow::{Result, ensure};

use super::{BUCKET_HOST, Lab, OTHER_REGION};
use crate::it::resign::BUCKET;
use crate::it::resign::pipelines::{KEYS, RANDOM, RESIZE, batch_request, get, send_batch, store_photos};

/// A store with photos. `None` if it is disabled.
fn start() -> Result<Option<Lab>> {
    let Some(lab) = Lab::start()? else {
        return Ok(None);
    };
    store_photos(&lab.direct)?;
    Ok(Some(lab))
}

#[test]
fn values_are_those_of_forward_mode() -> Result<()> {
    let Some(lab) = start()? else {
        return Ok(());
    };
    for pipeline in [RESIZE, RANDOM] {
        for key in KEYS {
            let expected = get(&lab.forward, key, pipeline, "0")?;
            ensure!(expected.status == 200, "{key}: {}", expected.text());
            for (style, client) in lab.clients() {
                let found = get(&client, key, pipeline, "0")?;
                let place = format!("{key} {pipeline} {style}");
                ensure!(found.status == 200, "{place}: {}", found.text());
                ensure!(found.body == expected.body, "{place}: another value");
                ensure!(
                    found.header("etag") == expected.header("etag"),
                    "{place}: another ETag"
                );
            }
        }
    }
    let record = lab.front.record();
    ensure!(
        record.refusals.is_empty() && record.hosts.keys().eq([BUCKET_HOST]),
        "{record:?}"
    );
    Ok(())
}

/// The first batch finds the region, and its samples fail neither at first nor later.
#[test]
fn batches_are_those_of_forward_mode_in_each_region() -> Result<()> {
    let Some(lab) = start()? else {
        return Ok(());
    };
    lab.front
        .move_bucket(BUCKET.trim_start_matches('/'), OTHER_REGION);
    for pipeline in [RESIZE, RANDOM] {
        let expected = send_batch(&lab.forward, &batch_request(&lab.forward, pipeline)?)?;
        ensure!(expected.len() == KEYS.len() && expected.iter().all(Result::is_ok));
        for _ in 0..2 {
            let found = send_batch(&lab.through, &batch_request(&lab.through, pipeline)?)?;
            ensure!(found == expected, "{pipeline}: {found:?}");
        }
    }
    // The samples of a batch are read concurrently.
    let record = lab.front.record();
    let found = record.refused("PermanentRedirect");
    ensure!((1..=KEYS.len()).contains(&found), "{record:?}");
    Ok(())
}
