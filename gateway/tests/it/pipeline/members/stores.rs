//! Stores that do not support ranges, and real stores with accounts.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample};
use pushdown_testkit::{Backend, Gateway, Keys, PolicyStore, RealStore, Request, Response, StoreRelay};

use super::{PATH, SHORT, Shard, ShardLab, check_values, codes, error_of, pixels, post, rows};
use crate::it::binary;

/// A lab whose store always sends the whole shard.
fn without_ranges(shard: Shard, flags: &[&str]) -> Result<ShardLab> {
    let store = PolicyStore::start()?;
    store.put(PATH, super::ETAG, shard.bytes.clone());
    let upstream = format!("--upstream=http://{}", store.address());
    Ok(ShardLab {
        gateway: Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())?,
        store,
        shard,
    })
}

#[test]
fn a_store_without_ranges_sends_the_shard_up_to_the_member() -> Result<()> {
    let lab = without_ranges(Shard::of_photos(8)?, &[])?;
    for member in &lab.shard.members {
        let answer = lab.get(member)?;
        let size = member.range.size();
        let source_bytes = answer.header("x-pushdown-source-bytes");
        ensure!(source_bytes == Some(format!("{size}/{size}").as_str()));
    }
    let request = lab.request(SHORT, &lab.shard.members)?;
    let (rows, cost) = lab.cost(|| lab.rows(&request))?;
    check_values(&rows, &lab.shard.members, SHORT)?;
    assert_eq!(cost, 1, "the shard is sent once for all");
    lab.check_memory()
}

#[test]
fn no_more_than_the_largest_object_is_skipped() -> Result<()> {
    let lab = without_ranges(Shard::of_photos(8)?, &["--max-object-bytes=8KiB"])?;
    let (first, last) = (&lab.shard.members[0], &lab.shard.members[7]);
    ensure!(last.range.offset() > 8 << 10 && first.range.size() < 8 << 10);
    ensure!(lab.get(first)?.status == 200);
    let answer = lab.get_by("first", last, Some(super::ETAG))?;
    assert_eq!(
        error_of(&answer),
        (413, "EntityTooLarge".to_owned()),
        "{}",
        answer.text()
    );
    Ok(())
}

/// A gateway in front of a real store with a shard.
struct RealLab {
    store: RealStore,
    relay: StoreRelay,
    gateway: Gateway,
    shard: Shard,
}

impl RealLab {
    fn new(store: RealStore) -> Result<Self> {
        let relay = StoreRelay::start(store.address()?)?;
        let upstream = format!("--upstream=http://{}", relay.address());
        let lab = Self {
            gateway: Gateway::launch(binary(), [upstream.as_str(), "--cache-memory=64MiB"])?,
            shard: Shard::of_photos(8)?,
            store,
            relay,
        };
        lab.store.put("/photos", "")?;
        lab.store.put(PATH, lab.shard.bytes.clone())?;
        Ok(lab)
    }

    fn presigned(&self, keys: &Keys) -> Result<Request> {
        let host = self.gateway.listen().to_string();
        let request = Request::new("GET", PATH).header("Host", &host);
        keys.presign(request, Duration::from_mins(10))
    }

    fn etag(&self) -> Result<String> {
        let request = self.presigned(&self.store.owner)?;
        let answer = request.send(self.gateway.listen())?;
        Ok(answer.header("etag").context("no ETag")?.to_owned())
    }

    /// The answers to a batch of all members, and to a GET of the first one.
    fn ask(&self, keys: &Keys, etag: &str) -> Result<[Response; 2]> {
        let request = self.presigned(keys)?;
        let (path, query) = request.target.split_once('?').context("no query")?;
        let (presign, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        let shard = BatchSample::new(path, signature);
        let members = self.shard.members.iter();
        let samples = members.map(|member| member.sample(&shard, etag)).collect();
        let batch = BatchRequest::new(SHORT.parse()?, presign, samples);
        let address = self.gateway.listen();
        let batch = post(&address.to_string(), &batch)?.send(address)?;
        let get = self.shard.members[0].name_in(request, Some(etag));
        let get = get
            .header("x-pushdown-pipeline", SHORT)
            .header("Accept", "application/octet-stream");
        Ok([batch, get.send(address)?])
    }

    fn asked(&self) -> usize {
        let sent = self.relay.sent();
        sent.objects + sent.not_modified + sent.refused
    }
}

fn check(store: RealStore) -> Result<()> {
    let lab = RealLab::new(store)?;
    let etag = lab.etag()?;
    let before = lab.asked();
    let [batch, get] = lab.ask(&lab.store.owner, &etag)?;
    check_values(&rows(batch)?, &lab.shard.members, SHORT)?;
    ensure!(get.status == 200, "{}", get.text());
    ensure!(get.body == pixels(lab.shard.members[0].value(SHORT)));
    assert_eq!(
        lab.asked() - before,
        2,
        "one request for the batch, one for the GET"
    );
    // Values may be cached now: they are for whom the store authorizes.
    for _ in 0..3 {
        lab.ask(&lab.store.reader, &etag)?;
    }
    let guest = &lab.store.guest;
    let direct = lab.presigned(guest)?.send(lab.gateway.listen())?;
    let [batch, get] = lab.ask(guest, &etag)?;
    ensure!(get.status == 403, "{}", get.text());
    ensure!(get.element("Code") == direct.element("Code"), "{}", get.text());
    let code = direct.element("Code").context("no code")?;
    assert_eq!(codes(&rows(batch)?), vec![code.as_str(); 8]);
    // Another version at the same key.
    lab.store.put(PATH, Shard::of_photos(9)?.bytes)?;
    let [batch, get] = lab.ask(&lab.store.owner, &etag)?;
    assert_eq!(
        error_of(&get),
        (409, "ShardReplaced".to_owned()),
        "{}",
        get.text()
    );
    assert_eq!(codes(&rows(batch)?), ["ShardReplaced"; 8]);
    Ok(())
}

#[test]
#[ignore = "a second store: make test-full"]
fn members_on_the_embedded_store() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    check(RealStore::embedded(binary())?)
}

#[test]
fn members_on_seaweedfs() -> Result<()> {
    if !Backend::SeaweedFs.is_enabled()? {
        return Ok(());
    }
    check(RealStore::seaweedfs()?)
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn members_on_ceph() -> Result<()> {
    check(RealStore::ceph()?)
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn members_on_garage() -> Result<()> {
    check(RealStore::garage()?)
}
