//! Samples that are not those of the caller's list, and stores that refuse: nothing is written.

use pushdown::wire::PartAction;
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore};

use super::*;

/// Rows and codes of the samples that failed.
fn codes(refused: &RefusedPart) -> Vec<(u32, &str)> {
    let errors = refused.errors.iter();
    errors.map(|error| (error.row, error.code.as_str())).collect()
}

#[test]
fn a_sample_of_another_version_ends_a_part_by_its_row() -> Result<()> {
    for (caller, _store) in stores()? {
        let objects = caller.put_photos(40)?;
        let request = caller.part(RESIZE.parse()?, PartFormat::Wds, &objects)?;
        caller.put(&objects[2].path, photo(90, 60, "jpeg"))?;
        caller.put(&objects[37].path, "no photo")?;
        let gone = caller.send(caller.request("DELETE", &objects[20].path))?;
        assert_eq!(gone.status, 204);
        let refused = refused(&caller.ask(&request)?)?;
        assert_eq!(refused.action, PartAction::Read);
        assert_eq!(refused.code, "PreconditionFailed");
        assert_eq!(
            codes(&refused),
            [
                (2, "PreconditionFailed"),
                (20, "NoSuchKey"),
                (37, "PreconditionFailed")
            ]
        );
        ensure!(refused.message.contains("list it again"), "{}", refused.message);
        assert_eq!(caller.get(PART)?, None);
    }
    Ok(())
}

#[test]
fn the_put_is_refused_with_the_text_of_the_store() -> Result<()> {
    for (caller, _store) in stores()? {
        let objects = caller.put_photos(3)?;
        let mut request = caller.part(RESIZE.parse()?, PartFormat::Wds, &objects)?;
        let forger = Caller {
            keys: Keys::new(&caller.keys.access, "another-secret"),
            ..caller.clone()
        };
        let target = forger.target(PART)?;
        request.part.as_mut().context("no part")?.target = Some(target.clone());
        let refused = refused(&caller.ask(&request)?)?;
        let found = (refused.action, refused.code.as_str());
        assert_eq!(found, (PartAction::Write, "SignatureDoesNotMatch"));
        // As the store answers the same PUT.
        let direct = caller
            .request("PUT", &target.request_target())
            .body("a part")
            .send(caller.gateway)?;
        assert_eq!(direct.status, 403);
        let message = direct.element("Message");
        let message = message.as_deref().unwrap_or("Forbidden").replace("&#39;", "'");
        ensure!(
            refused.message == format!("the store answered 403: {message}"),
            "{} instead of {message}",
            refused.message
        );
        assert_eq!(caller.get(PART)?, None);
    }
    Ok(())
}

/// A store in memory whose answers to reads the test sets, and its gateway.
struct Policy {
    store: PolicyStore,
    gateway: Gateway,
}

impl Policy {
    fn new(flags: &[&str]) -> Result<Self> {
        let store = PolicyStore::start()?;
        for number in 0..4 {
            store.put(&path(number), "\"1\"", photo(80 + number, 60, "jpeg"));
        }
        let upstream = format!("--upstream=http://{}", store.address());
        Ok(Self {
            gateway: Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())?,
            store,
        })
    }

    /// A trial of all objects by an access key.
    fn ask(&self, access_key: &str) -> Result<Response> {
        let presign = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={access_key}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
        );
        let samples = (0..4).map(|number| BatchSample {
            etag: Some("\"1\"".to_owned()),
            ..BatchSample::new(path(number), GOOD_SIGNATURE)
        });
        let mut request = BatchRequest::new(RESIZE.parse()?, presign, samples.collect());
        request.part = Some(PartRequest {
            format: PartFormat::Wds,
            prefix: PREFIX.to_owned(),
            label: None,
            labels: Vec::new(),
            engine: None,
            target: None,
        });
        Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", "store")
            .body(request.to_json()?)
            .send(self.gateway.listen())
    }
}

fn path(number: u32) -> String {
    format!("{BUCKET}/{PREFIX}{number}.jpg")
}

#[test]
fn a_store_that_ignores_conditions_gives_no_other_version() -> Result<()> {
    for flags in [&[][..], &["--cache-memory=16MiB"]] {
        let lab = Policy::new(flags)?;
        lab.store.ignore_conditions();
        assert_eq!(written(&lab.ask("first")?)?.samples, 4);
        lab.store.put(&path(3), "\"2\"", photo(90, 60, "jpeg"));
        assert_eq!(codes(&refused(&lab.ask("first")?)?), [(3, "PreconditionFailed")]);
        // One without a version could be any.
        lab.store.put(&path(3), "", photo(83, 60, "jpeg"));
        assert_eq!(codes(&refused(&lab.ask("first")?)?), [(3, "PreconditionFailed")]);
    }
    Ok(())
}

#[test]
fn a_part_of_cached_values_is_the_same() -> Result<()> {
    let lab = Policy::new(&["--cache-memory=16MiB"])?;
    lab.store.support_ranges();
    let first = written(&lab.ask("first")?)?;
    for _ in 0..3 {
        assert_eq!(written(&lab.ask("first")?)?.md5, first.md5);
    }
    lab.store.put(&path(1), "\"2\"", photo(90, 60, "jpeg"));
    assert_eq!(codes(&refused(&lab.ask("first")?)?), [(1, "PreconditionFailed")]);
    Ok(())
}

#[test]
fn a_sample_that_the_caller_may_not_read_ends_a_part() -> Result<()> {
    for row in [0, 2] {
        let lab = Policy::new(&[])?;
        lab.store.forbid("guest", &path(row));
        let part = refused(&lab.ask("guest")?)?;
        assert_eq!(
            (part.action, part.code.as_str()),
            (PartAction::Read, "AccessDenied")
        );
        assert_eq!(codes(&part), [(row, "AccessDenied")]);
        assert_eq!(written(&lab.ask("first")?)?.samples, 4);
    }
    Ok(())
}
