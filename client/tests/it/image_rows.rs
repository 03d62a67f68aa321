//! Image columns: rows equal the same bytes as loose objects, wherever the steps run, after a resume, and in any world.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use arrow_array::{Array as _, RecordBatch, cast::AsArray as _, types::Float32Type};
use futures::TryStreamExt as _;
use pushdown::{Context, Image, Pipeline, Sample};
use pushdown_client::{
    ErrorKind,
    reader::{Mode, PushdownReaderBuilder, Rank, Split},
    store::RetryPolicy,
    table::{RowId, RowsRead, TableBatch},
};
use pushdown_testkit::{Parquet, features_relay, other_engine_relay, overloaded_relay};

use super::{
    rows::read_all,
    world::{Objects, World, photos, reader, run},
};

const DETERMINISTIC: &str = "decode | resize(24, 20) | to_float | normalize(imagenet)";
const RANDOM: &str = "decode | random_resized_crop(20) | flip_h | color_jitter(brightness=0.4) | to_float";
/// Photos of each file, and of each row group.
const FILES: [(&str, usize, usize); 3] = [
    ("i/a.parquet", 7, 3),
    ("i/b.parquet", 9, 4),
    ("i/c.parquet", 1, 2),
];

/// Photos, the same as loose objects and as rows of files.
struct Photos {
    world: World,
    /// The bytes of each row.
    rows: BTreeMap<RowId, Vec<u8>>,
}

impl Photos {
    fn new() -> Self {
        let mut photos = photos().into_values();
        let (mut objects, mut rows) = (Objects::new(), BTreeMap::new());
        for (object, (key, count, row_group)) in FILES.into_iter().enumerate() {
            let images: Vec<_> = photos.by_ref().take(count).collect();
            let slices: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
            objects.insert(key.to_owned(), Parquet::of_images(&slices, row_group).unwrap());
            for (row, image) in (0..).zip(images) {
                objects.insert(loose_key(RowId { object, row }), image.clone());
                rows.insert(RowId { object, row }, image);
            }
        }
        Self {
            world: World::with_objects(objects),
            rows,
        }
    }

    /// A reader of the rows, with a seed.
    fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        self.world.reader(pipeline).prefix("i/").batch_size(4).seed(3)
    }

    /// The values of loose objects, by the rows that have the same bytes.
    fn loose_values(&self, inner: &str, mode: Mode) -> BTreeMap<RowId, Vec<u8>> {
        let keys: Vec<_> = self.rows.keys().map(|id| loose_key(*id)).collect();
        let builder = self.world.reader(inner).keys(keys).mode(mode);
        let rows = super::world::read_rows(builder);
        let values = rows.into_iter().map(|row| elements(row.value.unwrap()));
        self.rows.keys().copied().zip(values).collect()
    }

    /// The values that the pipeline computes from the bytes of each row as a sample with the id of the row.
    fn sample_values(&self, inner: &str, epoch: u32) -> BTreeMap<RowId, Vec<u8>> {
        let pipeline = Pipeline::parse(inner).unwrap();
        let value = |(id, bytes): (&RowId, &Vec<u8>)| {
            let sample_id = format!("{}\0{}", FILES[id.object].0, id.row);
            let context = Context::new(sample_id.as_bytes()).with_randomness(3, epoch);
            let value = pipeline.run(0..pipeline.len(), Sample::Bytes(bytes.clone().into()), &context);
            (*id, elements(value.unwrap()))
        };
        self.rows.iter().map(value).collect()
    }
}

fn loose_key(id: RowId) -> String {
    format!("loose/{}-{:02}", id.object, id.row)
}

fn elements(value: Sample) -> Vec<u8> {
    match value {
        Sample::Tensor(tensor) => tensor.data().to_vec(),
        other => panic!("found {other:?}"),
    }
}

/// The values of rows by their sources.
fn values(batches: &[TableBatch]) -> BTreeMap<RowId, Vec<u8>> {
    let value = |rows: &RecordBatch, row: usize| {
        let error = rows.column_by_name("image_error").unwrap().as_string::<i32>();
        assert!(error.is_null(row), "{}", error.value(row));
        let value = rows
            .column_by_name("image")
            .unwrap()
            .as_fixed_size_list()
            .value(row);
        value.as_primitive::<Float32Type>().values().inner().to_vec()
    };
    let mut found = BTreeMap::new();
    for batch in batches {
        for (row, id) in batch.ids.iter().enumerate() {
            assert!(
                found.insert(*id, value(&batch.rows, row)).is_none(),
                "{id:?} twice"
            );
        }
    }
    found
}

fn read_values(builder: PushdownReaderBuilder) -> BTreeMap<RowId, Vec<u8>> {
    run(async { values(&read_all(builder.build_table().await.unwrap()).await) })
}

/// The pipeline over the column, whole and cut at each stage inside of it.
fn pipelines(inner: &str) -> Vec<String> {
    let steps = Pipeline::parse(inner).unwrap().len();
    let select = "select(row_number=at)";
    let cut = (1..steps).map(|stage| {
        format!("{select} | each(image: {inner}, until={stage}) | each(image: {inner}, from={stage})")
    });
    cut.chain([format!("{select} | each(image: {inner})")]).collect()
}

/// For every split, and for every stage at which values may be handed over inside of `each`.
#[test]
fn image_rows_equal_loose_objects_at_every_split() {
    let photos = Photos::new();
    let loose = photos.loose_values(DETERMINISTIC, Mode::Plain);
    assert_eq!(photos.loose_values(DETERMINISTIC, Mode::Pushdown), loose);
    let pipelines = pipelines(DETERMINISTIC);
    for pipeline in &pipelines {
        for split in [Split::At(0), Split::At(1), Split::At(2), Split::Full] {
            assert_eq!(
                read_values(photos.reader(pipeline).split(split)),
                loose,
                "{pipeline} at {split}"
            );
        }
    }
    for mode in [Mode::Auto, Mode::Pushdown, Mode::Plain] {
        let pipeline = pipelines.last().unwrap();
        assert_eq!(read_values(photos.reader(pipeline).mode(mode)), loose, "{mode:?}");
    }
}

/// A row draws by the key of its object and its number, as a sample of a shard does by the key and its member.
#[test]
fn random_steps_draw_by_the_id_of_the_row() {
    let photos = Photos::new();
    let mut by_epoch = Vec::new();
    for epoch in [0, 1] {
        let expected = photos.sample_values(RANDOM, epoch);
        for pipeline in pipelines(RANDOM) {
            for split in [Split::At(0), Split::At(2)] {
                let builder = photos.reader(&pipeline).epoch(epoch).split(split);
                assert_eq!(read_values(builder), expected, "{pipeline} at {split}");
            }
        }
        by_epoch.push(expected);
    }
    assert_ne!(by_epoch[0], by_epoch[1]);
}

/// Two ranks read a batch each, and three other ranks with other batches the rest, at another split.
#[test]
fn image_rows_are_the_same_after_a_resume_in_another_world() {
    let photos = Photos::new();
    let pipeline = format!("select(row_number=at) | each(image: {RANDOM})");
    let expected = photos.sample_values(RANDOM, 0);
    run(async {
        let (mut read, mut state) = (Vec::new(), Vec::<RowsRead>::new());
        for rank in 0..2 {
            let builder = photos
                .reader(&pipeline)
                .rank(Rank {
                    index: rank,
                    world: 2,
                })
                .batch_size(3);
            let mut reader = builder.split(Split::Full).build_table().await.unwrap();
            read.push(reader.try_next().await.unwrap().unwrap());
            state = reader.rows_read_after(1);
        }
        for rank in 0..3 {
            let builder = photos
                .reader(&pipeline)
                .rank(Rank {
                    index: rank,
                    world: 3,
                })
                .rows_read(state.clone());
            let reader = builder
                .batch_size(2)
                .split(Split::At(0))
                .build_table()
                .await
                .unwrap();
            read.extend(read_all(reader).await);
        }
        assert_eq!(values(&read), expected);
    });
}

/// An image that grows in its last step is handed over before it: floats have four times as many bytes as pixels.
#[test]
fn the_stage_with_the_fewest_bytes_inside_of_each_is_chosen() {
    let photos = Photos::new();
    let pipeline = "select(columns=[image]) | each(image: decode | resize(16, 16) | to_float)";
    let stage = |builder: PushdownReaderBuilder| {
        let reader = run(builder.build_table()).unwrap();
        (reader.row_stage().steps, reader.row_stage().inner)
    };
    assert_eq!(stage(photos.reader(pipeline)), (1, 2));
    assert_eq!(stage(photos.reader(pipeline).mode(Mode::Plain)), (0, 0));
    // A gateway that does not know parts of `each` gets whole steps.
    let (relay, _) = features_relay(photos.world.gateway.listen(), "families").unwrap();
    let older = reader(&format!("http://{}", relay.address()), pipeline).prefix("i/");
    assert_eq!(stage(older), (2, 0));
}

/// At a store, and at a gateway whose values differ, everything runs on this host.
#[test]
fn auto_reads_rows_plainly_without_a_compatible_gateway() {
    let photos = Photos::new();
    let loose = photos.loose_values(DETERMINISTIC, Mode::Plain);
    let pipeline = format!("select(columns=[image]) | each(image: {DETERMINISTIC})");
    let read = |endpoint: &str| {
        let builder = reader(endpoint, &pipeline).prefix("i/").batch_size(4).seed(3);
        read_values(builder.mode(Mode::Auto))
    };
    let store = photos.world.gateway.store().unwrap();
    assert_eq!(read(&format!("http://{store}")), loose);
    let relay = other_engine_relay(photos.world.gateway.listen()).unwrap();
    assert_eq!(read(&format!("http://{}", relay.address())), loose);
}

/// A gateway that has no time to compute rows still forwards them.
#[test]
fn auto_reads_rows_plainly_if_the_gateway_has_no_time() {
    let photos = Photos::new();
    let loose = photos.loose_values(DETERMINISTIC, Mode::Plain);
    let pipeline = format!("select(columns=[image]) | each(image: {DETERMINISTIC})");
    let is_overloaded = Arc::new(AtomicBool::new(true));
    let relay = overloaded_relay(photos.world.gateway.listen(), is_overloaded).unwrap();
    let builder = || {
        let endpoint = format!("http://{}", relay.address());
        let retry = RetryPolicy {
            attempts: 2,
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
        };
        reader(&endpoint, &pipeline)
            .prefix("i/")
            .batch_size(4)
            .seed(3)
            .retry(retry)
    };
    assert_eq!(read_values(builder().mode(Mode::Auto)), loose);
    let error = run(async {
        let reader = builder()
            .mode(Mode::Pushdown)
            .split(Split::Full)
            .build_table()
            .await
            .unwrap();
        reader.try_collect::<Vec<_>>().await.unwrap_err()
    });
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// More rows than the prefetch budget holds, in row groups that are larger than it.
#[test]
fn a_budget_smaller_than_a_row_group_delivers_all_rows() {
    let photos = Photos::new();
    let loose = photos.loose_values(DETERMINISTIC, Mode::Plain);
    let pipeline = format!("select(columns=[image]) | each(image: {DETERMINISTIC})");
    for split in [Split::At(0), Split::Full] {
        let builder = photos
            .reader(&pipeline)
            .split(split)
            .prefetch_bytes(1)
            .requests(2);
        assert_eq!(read_values(builder), loose, "{split}");
    }
}

/// The gateway lacks memory for one photo. In `auto` this host computes its row group; otherwise the row has the error.
#[test]
fn a_photo_that_is_too_large_for_the_gateway_is_computed_on_this_host() {
    let pixels = Image::new(4000, 3600, vec![128; 4000 * 3600 * 3]).unwrap();
    let encode = Pipeline::parse("decode | encode(jpeg)").unwrap();
    let large = encode
        .run(1..2, Sample::Image(pixels), &Context::new(b""))
        .unwrap();
    let Sample::Bytes(large) = large else {
        panic!("not encoded");
    };
    let mut images: Vec<_> = photos().into_values().take(6).collect();
    images.push(large.to_vec());
    let slices: Vec<&[u8]> = images.iter().map(Vec::as_slice).collect();
    let file = Parquet::of_images(&slices, 3).unwrap();
    // A third of it is for values.
    let flags = ["--memory-budget=120MiB".to_owned()];
    let world = World::with_flags(Objects::from([("i/a.parquet".to_owned(), file)]), &flags);
    let pipeline = "select(columns=[image]) | each(image: decode | resize(16, 16) | to_float)";
    let read = |mode: Mode| {
        let builder = world.reader(pipeline).prefix("i/").mode(mode);
        let batches = run(async { read_all(builder.build_table().await.unwrap()).await });
        let columns = |name: &str| -> Vec<_> {
            let column = |batch: &TableBatch| Arc::clone(batch.rows.column_by_name(name).unwrap());
            batches.iter().map(column).collect()
        };
        (columns("image"), columns("image_error"))
    };
    let plain = read(Mode::Plain);
    assert!(plain.1.iter().all(|errors| errors.null_count() == errors.len()));
    assert_eq!(read(Mode::Auto), plain);
    let errors: Vec<_> = read(Mode::Pushdown).1;
    let errors = errors
        .iter()
        .flat_map(|errors| errors.as_string::<i32>().iter().flatten());
    let errors: Vec<_> = errors.collect();
    assert!(
        matches!(errors[..], [error] if error.starts_with("the value takes too much memory")),
        "{errors:?}"
    );
}
