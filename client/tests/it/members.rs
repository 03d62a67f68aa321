//! Members of shards as samples: the values of loose objects, in every mode and order.

use std::collections::BTreeSet;

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown::{Context, Pipeline, Sample};
use pushdown_client::reader::{
    Batch, Mode, PushdownReader, PushdownReaderBuilder, Rank, Row, SampleOrder, Stats,
};
use pushdown_testkit::{features_relay, recording_relay};

use super::{
    shards::{ShardWorld, store},
    world::{World, assert_same_rows, into_rows, photos, read_rows, reader, run},
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32)";
const RANDOM: &str = "decode | random_resized_crop(24) | flip_h | to_float";
const MODES: [Mode; 3] = [Mode::Pushdown, Mode::Auto, Mode::Plain];
/// Groups of members in a shard.
const GROUPS: usize = 7;

fn all_photos() -> Vec<Vec<u8>> {
    photos().into_values().collect()
}

fn read(builder: PushdownReaderBuilder) -> (Vec<Row>, Stats, Mode) {
    run(async {
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        (into_rows(batches), reader.stats(), reader.mode())
    })
}

#[test]
fn members_have_the_values_of_loose_objects() {
    let photos = all_photos();
    let loose = photos.iter().enumerate();
    let loose = loose.map(|(index, photo)| (format!("{index:03}.jpg"), photo.clone()));
    let loose = World::with_objects(loose.collect());
    let shards = ShardWorld::new(&photos, GROUPS);
    for mode in MODES {
        let expected = read_rows(loose.reader(PIPELINE).mode(mode).batch_size(8));
        let (rows, stats, _) = read(shards.reader(PIPELINE).mode(mode));
        assert_eq!(rows.len(), photos.len());
        for (row, expected) in rows.iter().zip(&expected) {
            let name = row.name();
            assert_eq!((row.position, row.index), (expected.position, expected.index));
            assert!(
                row.value == expected.value,
                "{mode:?}: the values of {name} differ"
            );
            let shard = &shards.shards[row.index / GROUPS];
            let member = &shard.photos[row.index % GROUPS];
            assert_eq!(
                (&*row.key, row.member.as_deref()),
                (&*shard.key, Some(&*member.name))
            );
            assert_eq!(name.to_string(), format!("{} member {}", shard.key, member.name));
        }
        let stored: u64 = photos.iter().map(|photo| photo.len() as u64).sum();
        assert_eq!((stats.samples, stats.stored_bytes), (photos.len() as u64, stored));
        if mode == Mode::Plain {
            assert_eq!(stats.value_bytes, stored, "without headers and gaps");
        }
    }
}

/// The id for random draws is that of the shard and the member.
#[test]
fn random_steps_draw_the_same_in_every_mode_and_epoch() {
    let photos = all_photos();
    let shards = ShardWorld::new(&photos, GROUPS);
    let pipeline = Pipeline::parse(RANDOM).unwrap();
    for (mode, epoch) in MODES.into_iter().zip([0, 1, 1]) {
        let (rows, ..) = read(shards.reader(RANDOM).mode(mode).seed(11).epoch(epoch));
        let mut seen = BTreeSet::new();
        for row in rows {
            let id = format!("{}\0{}", row.key, row.member.as_deref().unwrap());
            let context = Context {
                seed: Some(11),
                epoch: Some(epoch),
                ..Context::new(id.as_bytes())
            };
            let photo = Sample::Bytes(photos[row.index].clone().into());
            let expected = pipeline.run(0..pipeline.len(), photo, &context).unwrap();
            assert!(row.value.as_ref() == Ok(&expected), "{mode:?}: {}", row.name());
            assert!(seen.insert(row.index), "each sample once");
        }
        assert_eq!(seen.len(), photos.len());
    }
}

#[test]
fn any_worlds_continue_either_order() {
    let shards = ShardWorld::new(&all_photos(), GROUPS);
    for order in [SampleOrder::Global, SampleOrder::Shards { buffer: 5 }] {
        let reader = || shards.reader(PIPELINE).seed(5).order(order).limit(30);
        let whole = read_rows(reader());
        assert_same_rows(&read_rows(reader().start_at(2)), &whole[16..]);
        for world in 1..=3 {
            let rank = |rank| {
                read_rows(
                    reader()
                        .rank(Rank { index: rank, world })
                        .start_position(10)
                        .limit(20 / world),
                )
            };
            let mut rows: Vec<Row> = (0..world).flat_map(rank).collect();
            rows.sort_by_key(|row| row.position);
            assert_same_rows(&rows, &whole[10..][..rows.len()]);
        }
    }
}

#[test]
fn without_a_buffer_shards_are_read_one_after_the_other() {
    let shards = ShardWorld::new(&all_photos(), GROUPS);
    let by_shards = shards.reader(PIPELINE).order(SampleOrder::Shards { buffer: 0 });
    let rows = read_rows(by_shards.seed(3));
    let runs: Vec<_> = rows.chunk_by(|a, b| a.key == b.key).collect();
    assert_eq!(runs.len(), shards.shards.len());
    assert!(runs.iter().all(|run| run.is_sorted_by_key(|row| row.index)));
    assert!(!rows.is_sorted_by_key(|row| row.index), "shards are shuffled");
}

#[test]
fn further_columns_are_delivered_as_they_are_stored() {
    let shards = ShardWorld::new(&all_photos(), GROUPS);
    for mode in MODES {
        let folder = shards.world.folder().join(format!("kept-{mode:?}"));
        let reader = || {
            shards
                .reader(&format!("{PIPELINE} | encode(jpeg, quality=10)"))
                .objects(shards.samples(&["cls", "json"]))
                .mode(mode)
                .seed(1)
                .value_cache(&folder)
        };
        let (first, fetched, _) = read(reader());
        for row in &first {
            let number = row.index;
            let json = (!number.is_multiple_of(3)).then(|| format!("{{\"number\": {number}}}"));
            let columns = [Some(number.to_string()), json];
            let columns = columns.map(|text| text.map(bytes::Bytes::from));
            assert_eq!(row.columns, columns, "{mode:?}: {}", row.name());
        }
        // Values and columns are read from the folder together.
        let (again, cached, _) = read(reader());
        assert_eq!(cached.cache_hits, fetched.cache_writes);
        assert!(cached.cache_hits > 0, "{fetched:?}");
        for (row, first) in again.iter().zip(&first) {
            assert!(row.value == first.value && row.columns == first.columns);
        }
    }
}

#[test]
fn members_are_taken_by_index() {
    let shards = ShardWorld::new(&all_photos(), GROUPS);
    let whole = read_rows(shards.reader(PIPELINE));
    for mode in MODES {
        run(async {
            let reader = shards.reader(PIPELINE).mode(mode).build().await.unwrap();
            let batch = PushdownReader::take(&reader, &[9, 0, 9, 8]).await.unwrap();
            for row in batch.rows() {
                let expected = &whole[row.index];
                assert!(row.value == expected.value && row.member == expected.member);
            }
        });
    }
}

/// The members of a shard are near each other, so one request reads those of a batch.
#[test]
fn a_batch_of_a_global_shuffle_is_one_request_per_shard() {
    let mut small = all_photos();
    small.retain(|photo| photo.len() < 4_000);
    let shards = ShardWorld::new(&small, 5);
    let (relay, _) = recording_relay(shards.world.gateway.listen()).unwrap();
    let builder = reader(&format!("http://{}", relay.address()), PIPELINE)
        .objects(shards.samples(&["cls"]))
        .mode(Mode::Plain)
        .seed(7)
        .batch_size(12)
        .limit(12);
    let (rows, ..) = read(builder);
    let keys: BTreeSet<_> = rows.iter().map(|row| &row.key).collect();
    assert!(keys.len() < rows.len());
    assert_eq!(relay.requests().len(), keys.len(), "{:?}", relay.requests());
}

#[test]
fn a_gateway_that_reads_no_members_is_read_plainly() {
    let shards = ShardWorld::new(&all_photos()[..9], GROUPS);
    let expected = read_rows(shards.reader(PIPELINE));
    let (relay, batches) = features_relay(shards.world.gateway.listen(), "cache, families").unwrap();
    for mode in [Mode::Pushdown, Mode::Auto] {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE).mode(mode);
        let (rows, _, mode) = read(builder.objects(shards.samples(&[])));
        assert_eq!(mode, Mode::Plain);
        for (row, expected) in rows.iter().zip(&expected) {
            assert!(row.value == expected.value && row.stage == 0);
        }
    }
    assert!(batches.lock().is_empty(), "no batch was sent");
}

#[test]
fn a_profile_measures_members() {
    let shards = ShardWorld::new(&all_photos(), GROUPS);
    let samples = shards.samples(&[]).select([0, 9, 20]);
    let profile = run(async {
        let store = store(&shards.world.endpoint()).await;
        let pipeline = store.pipeline(PIPELINE).await.unwrap();
        store.profile(&samples, &pipeline, None, 0).await.unwrap()
    });
    assert_eq!(profile.failed, []);
    let stored = profile.samples.iter();
    let stored = stored.map(|sample| sample.candidates[0].bytes.to_string());
    let sizes = samples.iter().map(|object| object.bytes.unwrap().to_string());
    assert!(stored.eq(sizes), "the sizes of members");
    assert_eq!(profile.samples[0].key, "train-000000.tar member 0/000.jpg");
}
