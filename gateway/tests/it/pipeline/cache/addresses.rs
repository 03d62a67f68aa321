//! What a request reads is what the store reads: a value is shared only between requests that no store could answer differently.

use anyhow::{Result, ensure};
use pushdown_testkit::{GOOD_SIGNATURE, Response, signed_by};

use super::{CacheLab, MEMORY, PATH, PIPELINE, origin};

fn get(lab: &CacheLab, query: &str) -> Result<Response> {
    let mut request = lab.request(PIPELINE);
    request.target = format!("{PATH}?{query}");
    signed_by(request, "first", GOOD_SIGNATURE).send(lab.gateway.listen())
}

/// A store that answers 200 to a part would have the value of the part served as that of the object.
#[test]
fn a_part_is_refused_in_any_spelling() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    for query in [
        "partNumber=1",
        "%70artNumber=1",
        "p%61rt%4Eumber=1",
        "uploads",
        "%75ploads",
        "a&%74agging",
        "versionId=1&version%49d=2",
        "partNumber%00=1",
    ] {
        let answer = get(&lab, query)?;
        ensure!(answer.status == 400, "{query}: {}", answer.text());
    }
    assert_eq!(lab.store.requests().len(), 0);
    Ok(())
}

#[test]
fn a_parameter_that_is_not_known_ends_sharing() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    lab.warm(PIPELINE)?;
    for query in [
        "partnumber=1",
        "width=8",
        "response-content-disposition=inline",
        "X-Amz-Unknown=1",
        "a;partNumber=1",
    ] {
        let answer = get(&lab, query)?;
        let is_shared = answer.status == 200 && origin(&answer)? != "computed";
        ensure!(!is_shared, "{query}: {answer:?}");
    }
    for query in ["x-id=GetObject", "x-pushdown-seed=1"] {
        let answer = get(&lab, query)?;
        assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{query}");
    }
    Ok(())
}

/// The reverse: what such a request has brought into the cache is for no other one.
#[test]
fn a_value_of_an_unknown_parameter_is_not_that_of_the_object() -> Result<()> {
    let lab = CacheLab::new(&[MEMORY])?;
    for _ in 0..5 {
        let answer = get(&lab, "width=8")?;
        ensure!(answer.status == 200, "{}", answer.text());
    }
    let answer = lab.get(PIPELINE)?;
    assert_eq!(origin(&answer)?, "computed");
    Ok(())
}
