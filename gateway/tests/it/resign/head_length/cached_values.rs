//! The result cache, which serves HEAD and GET.

use std::cmp::Ordering;

use anyhow::{Result, ensure};

use super::{Lab, PHOTO, RESIZE, ask, check};

#[test]
fn head_and_get_share_cached_values() -> Result<()> {
    for methods in [["GET", "HEAD"], ["HEAD", "GET"]] {
        let Some(lab) = Lab::start(&["--cache-memory=64MiB"])? else {
            return Ok(());
        };
        let origin = |method: &str| -> Result<Option<String>> {
            let answer = ask(&lab.client, method, PHOTO, RESIZE, &[])?;
            ensure!(answer.status == 200, "{method}: {answer:?}");
            Ok(answer.header("x-pushdown-cache").map(str::to_owned))
        };
        let [first, second] = methods;
        // The first answer brings the value into the cache.
        origin(first)?;
        ensure!(
            origin(first)?.as_deref() == Some("memory"),
            "the value is not cached by {first}"
        );
        let computed = lab.computed()?;
        assert_eq!(origin(second)?.as_deref(), Some("memory"), "{methods:?}");
        check(&lab.client, RESIZE, &[])?;
        assert_eq!(lab.computed()?.total_cmp(&computed), Ordering::Equal);
    }
    Ok(())
}
