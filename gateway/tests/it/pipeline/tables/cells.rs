//! The values that `each` computes stay within the memory budget.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, anyhow, ensure};
use pushdown_testkit::{Parquet, eventually};
use serde_json::Value;

use super::super::{Lab, photo};

/// A third of it is for values.
const BUDGET: &str = "--memory-budget=192MiB";
const PIPELINE: &str = "select | each(photo: decode | resize(8, 8))";
const PHOTOS: usize = 6;
/// The row of a photo of 6000 x 5000 pixels: 90 MB once it is decoded.
const LARGE: usize = 2;
const CLIENTS: usize = 4;

/// Writes another size to the header of a JPEG.
fn set_size(jpeg: &mut [u8], width: u16, height: u16) -> Result<()> {
    let frame = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]);
    let frame = frame.context("no baseline frame")?;
    jpeg[frame + 5..frame + 7].copy_from_slice(&height.to_be_bytes());
    jpeg[frame + 7..frame + 9].copy_from_slice(&width.to_be_bytes());
    Ok(())
}

fn rows(lab: &Lab) -> Result<Vec<Value>> {
    let answer = lab.get("t.parquet", PIPELINE, &[("accept", "application/x-ndjson")])?;
    ensure!(answer.status == 200, "{}", answer.text());
    let text = answer.text();
    let rows = text.lines().map(serde_json::from_str);
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The row of the large photo fails before it is decoded, and the others of many scans wait for each other's memory.
#[test]
fn a_value_that_takes_too_much_memory_fails_alone() -> Result<()> {
    let mut photos: Vec<_> = (0..PHOTOS).map(|_| photo(640, 480, "jpeg")).collect();
    set_size(&mut photos[LARGE], 6000, 5000)?;
    let column: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
    let lab = Lab::new(&[BUDGET, "--queue-wait=60s"])?;
    lab.put("t.parquet", Parquet::of_photos(&column, PHOTOS)?)?;
    let answers = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| rows(&lab))).collect();
        let answers = clients
            .into_iter()
            .map(|client| client.join().map_err(|_| anyhow!("panicked"))?);
        answers.collect::<Result<Vec<_>>>()
    })?;
    for rows in answers {
        assert_eq!(rows.len(), PHOTOS);
        for (index, row) in rows.iter().enumerate() {
            assert_eq!(row["photo"].is_null(), index == LARGE, "{row}");
            assert_eq!(row["photo_error"].is_null(), index != LARGE, "{row}");
        }
        let error = rows[LARGE]["photo_error"].as_str().unwrap_or_default();
        let expected =
            "the value takes too much memory: expected at most 67108864 bytes while it is computed, found ";
        assert!(error.contains(expected), "{error}");
    }
    eventually("the memory is free", Duration::from_secs(10), || {
        let reserved = lab.gateway.metric("pushdown_memory_reserved_bytes")?;
        Ok((reserved == 0.0).then_some(()))
    })
}
