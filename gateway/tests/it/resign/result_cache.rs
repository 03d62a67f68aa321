//! Law 6 in re-sign mode: a cached value is only for keys that have a grant, and only while they have it.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Gateway, Keys, Response, Store, photos};

use super::{BUCKET, Client, EVERYTHING, Grant, KeysFile, binary, error_of, key_block, launch, trainer};

const PIPELINE: &str = "decode | resize(8, 8)";
/// The path of the photo.
pub(super) const PHOTO: &str = "/photos/2024/cat.jpg";
/// Reads the photo, without pipelines.
pub(super) const READS: Grant = Grant::new("photos", "2024/", &["read"]);

/// A store with one photo, and a gateway in front of it with a result cache. [`trainer`] and [`granted`] may run pipelines on
/// the photo.
pub(super) struct Lab {
    direct: Client,
    gateway: Gateway,
    /// Other keys, with their grants.
    pub(super) refused: Vec<(Keys, Vec<Grant>)>,
    _store: Store,
    _keys_file: KeysFile,
}

/// A key that may do nothing else.
pub(super) fn granted() -> Keys {
    Keys::new("TESTGRANTED00001", "secret-of-the-granted")
}

impl Lab {
    /// Starts both, with a further key for each of these lists of grants. `None` if the embedded store is disabled.
    pub(super) fn start(refused: Vec<Vec<Grant>>) -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Backend::Embedded.start(binary())?;
        let refused = refused.into_iter().enumerate().map(|(number, grants)| {
            let keys = Keys::new(&format!("TESTREFUSED{number:05}"), "secret-of-the-refused");
            (keys, grants)
        });
        let refused: Vec<_> = refused.collect();
        let mut blocks = vec![
            key_block(&trainer(), "gateway", &[EVERYTHING]),
            key_block(&granted(), "gateway", &[READS.with_pipelines()]),
        ];
        blocks.extend(
            refused
                .iter()
                .map(|(keys, grants)| key_block(keys, "gateway", grants)),
        );
        let keys_file = KeysFile::new(&blocks)?;
        let lab = Self {
            direct: Client::new(&store.keys, store.address),
            gateway: launch(store.address, &store.keys, &keys_file, &["--cache-memory=64MiB"])?,
            refused,
            _store: store,
            _keys_file: keys_file,
        };
        let (_, photo) = photos()?.into_iter().next().context("no photos")?;
        lab.direct.store(BUCKET, "")?;
        lab.direct.store(PHOTO, photo)?;
        Ok(Some(lab))
    }

    pub(super) fn client(&self, keys: &Keys) -> Client {
        Client::new(keys, self.gateway.listen())
    }
}

/// A GET with a pipeline.
fn get(client: &Client) -> Result<Response> {
    let request = client
        .request("GET", PHOTO)
        .header("x-pushdown-pipeline", PIPELINE)
        .header("Accept", "application/octet-stream");
    client.send(request)
}

/// Where the value of an answer came from.
pub(super) fn origin(answer: &Response) -> Result<&str> {
    answer.header("x-pushdown-cache").with_context(|| answer.text())
}

/// Reads twice: the first answer brings the value into the cache.
pub(super) fn read_until_cached(read: impl Fn() -> Result<Response>) -> Result<Response> {
    read()?;
    let answer = read()?;
    ensure!(origin(&answer)? == "memory", "the value is not cached");
    Ok(answer)
}

#[test]
fn a_cached_value_needs_a_grant() -> Result<()> {
    // Each differs from `granted` in what it may do.
    let refused = vec![
        vec![],
        vec![READS],
        vec![Grant::new("photos", "2024-secret/", &["read"]).with_pipelines()],
        vec![Grant::new("other", "", &["read"]).with_pipelines()],
        vec![Grant::new("photos", "", &["list", "write", "delete"])],
    ];
    let Some(lab) = Lab::start(refused)? else {
        return Ok(());
    };
    let client = lab.client(&trainer());
    let value = read_until_cached(|| get(&client))?;
    for (keys, grants) in &lab.refused {
        let path = lab.client(keys);
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
    let answer = get(&lab.client(&wrong))?;
    assert_eq!(error_of(&answer), (403, "SignatureDoesNotMatch".to_owned()));
    for keys in [granted(), trainer()] {
        let path = lab.client(&keys);
        for client in [path.presigned(), path.with_virtual_host(), path] {
            let answer = get(&client)?;
            assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{client:?}");
            assert_eq!(answer.body, value.body);
        }
    }
    Ok(())
}

/// The store is asked for each hit: what it has replaced or deleted is no answer.
#[test]
fn a_hit_is_confirmed_by_the_store() -> Result<()> {
    let Some(lab) = Lab::start(Vec::new())? else {
        return Ok(());
    };
    let client = lab.client(&trainer());
    let value = read_until_cached(|| get(&client))?;
    let other = photos()?.into_values().nth(1).context("one photo")?;
    lab.direct.store(PHOTO, other)?;
    let answer = get(&client)?;
    ensure!(answer.status == 200 && origin(&answer)? != "memory", "{answer:?}");
    ensure!(answer.header("etag") != value.header("etag"));
    assert_eq!(lab.direct.call("DELETE", PHOTO)?.status, 204);
    let answer = get(&client)?;
    assert_eq!(error_of(&answer), (404, "NoSuchKey".to_owned()));
    Ok(())
}
