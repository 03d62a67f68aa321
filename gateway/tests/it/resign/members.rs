//! Members of shards in re-sign mode: the grants of a key decide on them as on their shard.

use anyhow::{Context as _, Result, ensure};
use pushdown::{
    shard::{MemberRange, TarWriter},
    wire::{BatchRequest, BatchSample, ColumnMember},
};
use pushdown_testkit::{Backend, Gateway, Keys, Request, Response, StoreRelay, photos};

use super::result_cache::{origin, read_until_cached};
use super::signed_batches::rows;
use super::{BUCKET, Client, EVERYTHING, Grant, KeysFile, binary, error_of, key_block, launch, trainer};

const PIPELINE: &str = "decode | random_resized_crop(32) | flip_h";
const KEY: &str = "shards/train.tar";

/// A key that may run pipelines in one folder.
fn granted() -> Keys {
    Keys::new("TESTGRANTED00001", "secret-of-the-granted")
}

/// A key that may read the folder, without pipelines.
fn reader() -> Keys {
    Keys::new("TESTREADER000001", "secret-of-the-reader")
}

/// A key that may run pipelines in another folder.
fn other() -> Keys {
    Keys::new("TESTOTHER0000001", "secret-of-the-other-one")
}

/// A store with a shard of three photos, each with a label, and a gateway in re-sign mode that counts its requests.
struct Lab {
    /// A client of the store.
    direct: Client,
    /// A client of a gateway in forward mode.
    forward: Client,
    gateway: Gateway,
    relay: StoreRelay,
    shard: Vec<u8>,
    etag: String,
    /// Labels and photos by turns.
    members: Vec<(String, MemberRange)>,
    _keys_file: KeysFile,
    _store: pushdown_testkit::Store,
}

impl Lab {
    /// `None` if the embedded store is disabled.
    fn start(flags: &[&str]) -> Result<Option<Self>> {
        if !Backend::Embedded.is_enabled()? {
            return Ok(None);
        }
        let store = Backend::Embedded.start(binary())?;
        let relay = StoreRelay::start(store.address)?;
        let folder = Grant::new("photos", "shards/", &["read"]);
        let blocks = [
            key_block(&trainer(), "gateway", &[EVERYTHING]),
            key_block(&granted(), "gateway", &[folder.with_pipelines()]),
            key_block(&reader(), "gateway", &[folder]),
            key_block(
                &other(),
                "gateway",
                &[Grant::new("photos", "other/", &["read"]).with_pipelines()],
            ),
        ];
        let keys_file = KeysFile::new(&blocks)?;
        let gateway = launch(relay.address(), &store.keys, &keys_file, flags)?;
        let (mut writer, mut members) = (TarWriter::new(Vec::new()), Vec::new());
        let photos = photos()?.into_iter().filter(|(name, _)| name.contains("_large"));
        for (number, (_, photo)) in photos.take(3).enumerate() {
            for (extension, content) in [("cls", number.to_string().into_bytes()), ("img", photo)] {
                let name = format!("{number}.{extension}");
                let range = writer.append(&name, &content)?;
                members.push((name, range));
            }
        }
        let shard = writer.finish()?;
        let direct = Client::new(&store.keys, store.address);
        direct.store(BUCKET, "")?;
        direct.store(&target(), shard.clone())?;
        let etag = direct.call("HEAD", &target())?;
        Ok(Some(Self {
            etag: etag.header("etag").context("no ETag")?.to_owned(),
            forward: Client::new(&store.keys, store.gateway.listen()),
            direct,
            gateway,
            relay,
            shard,
            members,
            _keys_file: keys_file,
            _store: store,
        }))
    }

    fn client(&self, keys: &Keys) -> Client {
        Client::new(keys, self.gateway.listen())
    }

    fn photos(&self) -> impl Iterator<Item = &(String, MemberRange)> {
        self.members.iter().skip(1).step_by(2)
    }

    /// A GET of a member.
    fn get(&self, client: &Client, (name, range): &(String, MemberRange)) -> Result<Response> {
        let request = client
            .request("GET", &target())
            .header("x-pushdown-pipeline", PIPELINE)
            .header("x-pushdown-seed", "7")
            .header("x-pushdown-epoch", "1")
            .header("x-pushdown-member", name)
            .header("x-pushdown-offset", &range.offset().to_string())
            .header("x-pushdown-size", &range.size().to_string())
            .header("x-pushdown-shard-etag", &self.etag)
            .header("Accept", "application/octet-stream");
        client.send(request)
    }

    /// The answer to a signed batch of all photos, with their labels as a further column.
    fn batch(&self, client: &Client) -> Result<Response> {
        let samples = self.members.chunks_exact(2).map(|group| {
            let [(label, label_range), (photo, range)] = group else {
                unreachable!("chunks have two elements")
            };
            let sample = BatchSample::for_signed_batch(target());
            let mut sample = sample.with_member(photo, range, &self.etag);
            sample.columns = vec![Some(ColumnMember::new(label, label_range))];
            sample
        });
        let mut request = BatchRequest::for_signed_batch(PIPELINE.parse()?, samples.collect());
        request.columns = vec!["cls".to_owned()];
        (request.seed, request.epoch) = (Some(7), Some(1));
        let request = client
            .request("POST", "/_pushdown/v1/batch")
            .body(request.to_json()?);
        client.send(request)
    }

    /// The number of requests that the store has answered to the gateway.
    fn asked(&self) -> usize {
        let sent = self.relay.sent();
        sent.objects + sent.not_modified + sent.refused
    }
}

fn target() -> String {
    format!("{BUCKET}/{KEY}")
}

#[test]
fn members_are_those_of_forward_mode() -> Result<()> {
    let Some(lab) = Lab::start(&[])? else {
        return Ok(());
    };
    let client = lab.client(&granted());
    let mut expected = Vec::new();
    for member in lab.photos() {
        let forward = lab.get(&lab.forward, member)?;
        ensure!(forward.status == 200, "{}", forward.text());
        for client in [client.clone(), client.presigned(), client.with_virtual_host()] {
            let found = lab.get(&client, member)?;
            ensure!(found.status == 200, "{client:?}: {}", found.text());
            ensure!(found.body == forward.body, "{client:?}: another value");
            for name in ["etag", "x-pushdown-source-etag", "x-pushdown-source-bytes"] {
                ensure!(found.header(name) == forward.header(name), "{client:?}: {name}");
            }
        }
        expected.push(forward.body);
    }
    let before = lab.asked();
    let rows = rows(lab.batch(&client)?)?;
    assert_eq!(lab.asked() - before, 1, "labels and photos are read together");
    assert_eq!(rows.len(), expected.len());
    for (number, (row, expected)) in rows.into_iter().zip(expected).enumerate() {
        let Ok(pushdown::Sample::Image(image)) = row.value else {
            anyhow::bail!("{number}: {:?}", row.value);
        };
        ensure!(image.into_pixels() == expected, "{number}: another value");
        assert_eq!(row.columns, [Some(number.to_string().into())]);
    }
    Ok(())
}

#[test]
fn a_member_needs_the_grant_for_its_shard() -> Result<()> {
    let Some(lab) = Lab::start(&["--cache-memory=64MiB"])? else {
        return Ok(());
    };
    let photo = lab.photos().next().context("no photo")?;
    read_often(|| lab.get(&lab.client(&granted()), photo))?;
    for keys in [reader(), other()] {
        let client = lab.client(&keys);
        for client in [client.clone(), client.presigned()] {
            let answer = lab.get(&client, photo)?;
            assert_eq!(error_of(&answer), (403, "AccessDenied".to_owned()), "{client:?}");
            for name in ["etag", "x-pushdown-source-etag", "x-pushdown-cache"] {
                ensure!(answer.header(name).is_none(), "{client:?}: {name}");
            }
        }
        for row in rows(lab.batch(&client)?)? {
            let error = row.value.err().context("a value without a grant")?;
            assert_eq!(error.code, "AccessDenied");
            ensure!(row.columns.is_empty());
        }
    }
    Ok(())
}

/// Reads a few times, so that a value would be cached.
fn read_often(read: impl Fn() -> Result<Response>) -> Result<()> {
    for _ in 0..5 {
        let answer = read()?;
        ensure!(answer.status == 200, "{}", answer.text());
    }
    Ok(())
}

/// `--resign-cache-max-age`: what is confirmed of a shard holds for all its members, and ends with a write to the shard.
#[test]
fn a_confirmed_shard_confirms_its_members_until_it_is_written() -> Result<()> {
    let Some(lab) = Lab::start(&["--cache-memory=64MiB", "--resign-cache-max-age=1h"])? else {
        return Ok(());
    };
    let client = lab.client(&trainer());
    let photos: Vec<_> = lab.photos().collect();
    let get = |(name, range): &(String, MemberRange)| -> Result<Response> {
        let request: Request = client
            .request("GET", &target())
            .header("x-pushdown-pipeline", "decode | resize(8, 8)")
            .header("x-pushdown-member", name)
            .header("x-pushdown-offset", &range.offset().to_string())
            .header("x-pushdown-size", &range.size().to_string());
        client.send(request)
    };
    for member in &photos {
        read_until_cached(|| get(member))?;
    }
    let before = lab.asked();
    for member in &photos {
        assert_eq!(origin(&get(member)?)?, "memory");
    }
    assert_eq!(lab.asked(), before, "the store is not asked");
    // The same bytes again: another gateway could not know.
    client.store(&target(), lab.shard.clone())?;
    let before = lab.asked();
    for member in &photos {
        ensure!(get(member)?.status == 200);
    }
    ensure!(lab.asked() > before, "the store is asked after a write");
    // A write that bypasses the gateway does not show within the time.
    let before = lab.asked();
    lab.direct.store(&target(), lab.shard.clone())?;
    assert_eq!(origin(&get(photos[0])?)?, "memory");
    assert_eq!(lab.asked(), before);
    Ok(())
}
