//! HEAD with a pipeline that fails, or that the key does not allow.

use anyhow::{Result, ensure};

use super::{BROKEN, Lab, PHOTO, RESIZE, TABLE, ask, reader};
use crate::it::resign::{Client, error_of};

#[test]
fn failures_have_the_status_of_the_get() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    for (key, pipeline, status) in [
        (BROKEN, RESIZE, 422),
        (TABLE, RESIZE, 422),
        ("2024/none.jpg", RESIZE, 404),
        (PHOTO, "dekode", 400),
    ] {
        let get = ask(&lab.client, "GET", key, pipeline, &[])?;
        let head = ask(&lab.client, "HEAD", key, pipeline, &[])?;
        assert_eq!((head.status, get.status), (status, status), "{key} {pipeline}");
        ensure!(head.body.is_empty(), "{head:?}");
    }
    let stranger = Client::new(&reader(), lab.client.address);
    for client in [stranger.presigned(), stranger] {
        for key in [PHOTO, BROKEN, "2024/none.jpg"] {
            let answer = ask(&client, "HEAD", key, RESIZE, &[])?;
            assert_eq!(error_of(&answer), (403, String::new()), "{key}");
            for name in ["etag", "x-pushdown-source-etag", "x-pushdown-cache"] {
                ensure!(answer.header(name).is_none(), "{key}: {name}");
            }
        }
    }
    Ok(())
}
