//! Conditions and ranges of a HEAD with a pipeline.

use anyhow::{Context as _, Result};

use super::{Lab, PHOTO, RESIZE, ask, check};

#[test]
fn conditions_and_ranges_apply_as_in_a_get() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    let raw = ("accept", "application/octet-stream");
    let get = check(&lab.client, RESIZE, &[raw])?;
    let etag = get.header("etag").context("no ETag")?;
    for (condition, status, length) in [
        (("if-none-match", etag), 304, None),
        (("if-match", "\"other\""), 412, None),
        (("if-match", etag), 200, Some("192")),
        (("range", "bytes=10-19"), 206, Some("10")),
        (("range", "bytes=-5"), 206, Some("5")),
    ] {
        let head = ask(&lab.client, "HEAD", PHOTO, RESIZE, &[raw, condition])?;
        assert_eq!(head.status, status, "{condition:?}");
        if status < 400 {
            check(&lab.client, RESIZE, &[raw, condition])?;
            assert_eq!(head.header("content-length"), length, "{condition:?}");
        }
    }
    let beyond = ask(
        &lab.client,
        "HEAD",
        PHOTO,
        RESIZE,
        &[raw, ("range", "bytes=500-")],
    )?;
    assert_eq!((beyond.status, beyond.body.len()), (416, 0));
    Ok(())
}
