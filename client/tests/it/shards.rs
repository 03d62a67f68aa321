//! Shards of photos, packed in this process, and gateways that have them.

use pushdown::shard::{Member, TarWriter};
use pushdown_client::{
    reader::PushdownReaderBuilder,
    shards::{ColumnSelection, ShardIndex},
    store::{Credentials, MemberRef, Object, Objects, Store},
};

use super::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, run};

/// A tar of photos, each in a group with a label and, but for every third one, a description.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) key: String,
    pub(super) bytes: Vec<u8>,
    /// The members that are photos.
    pub(super) photos: Vec<Member>,
}

/// Packs photos into shards of `groups` groups.
pub(super) fn pack(photos: &[Vec<u8>], groups: usize) -> Vec<Shard> {
    let chunks = photos.chunks(groups).enumerate();
    chunks
        .map(|(number, photos)| {
            let mut tar = TarWriter::new(Vec::new());
            let mut members = Vec::new();
            for (nth, photo) in photos.iter().enumerate() {
                let sample = number * groups + nth;
                let mut append = |extension: &str, content: &[u8]| {
                    let name = format!("{number}/{nth:03}.{extension}");
                    let range = tar.append(&name, content).unwrap();
                    Member { name, range }
                };
                append("cls", sample.to_string().as_bytes());
                members.push(append("jpg", photo));
                if !sample.is_multiple_of(3) {
                    append("json", format!("{{\"number\": {sample}}}").as_bytes());
                }
            }
            Shard {
                key: format!("train-{number:06}.tar"),
                bytes: tar.finish().unwrap(),
                photos: members,
            }
        })
        .collect()
}

/// The photos of shards as a list, with these ETags by key.
pub(super) fn list(shards: &[Shard], etag: impl Fn(&str) -> String) -> Objects {
    let etags: Vec<_> = shards.iter().map(|shard| etag(&shard.key)).collect();
    let objects = shards.iter().zip(&etags).flat_map(|(shard, etag)| {
        shard.photos.iter().map(move |member| Object {
            key: &shard.key,
            bytes: None,
            etag: Some(etag),
            member: Some(MemberRef {
                name: &member.name,
                range: member.range,
            }),
        })
    });
    Objects::from_objects(BUCKET, objects)
}

/// A gateway whose store has shards, and their index.
pub(super) struct ShardWorld {
    pub(super) world: World,
    pub(super) shards: Vec<Shard>,
    index: ShardIndex,
}

impl ShardWorld {
    pub(super) fn new(photos: &[Vec<u8>], groups: usize) -> Self {
        let shards = pack(photos, groups);
        let objects = shards
            .iter()
            .map(|shard| (shard.key.clone(), shard.bytes.clone()));
        let world = World::with_objects(objects.collect());
        let index = run(async {
            let store = store(&world.endpoint()).await;
            let listed = store.list_objects(BUCKET, "").await.unwrap();
            store.index_shards(&listed, |_progress| ()).await.unwrap()
        });
        Self { world, shards, index }
    }

    /// The photos, with these further columns.
    pub(super) fn samples(&self, further: &[&str]) -> Objects {
        let selection = ColumnSelection {
            value: Some("jpg".to_owned()),
            further: further.iter().map(|name| (*name).to_owned()).collect(),
        };
        self.index.samples(&selection).unwrap()
    }

    /// A reader of the photos.
    pub(super) fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        self.world
            .reader(pipeline)
            .objects(self.samples(&[]))
            .batch_size(8)
    }
}

pub(super) async fn store(endpoint: &str) -> Store {
    let store = Store::builder().endpoint(endpoint).region("us-east-1");
    let credentials = Credentials::new(ACCESS_KEY, SECRET_KEY);
    store.credentials(credentials).build().await.unwrap()
}
