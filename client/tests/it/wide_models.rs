//! Models with intermediate values larger than the photos, in mode `auto`: where a plan may split them, and what is transferred.

use std::num::NonZeroUsize;

use futures::TryStreamExt as _;
use pushdown::{Kind, Pipeline};
use pushdown_client::reader::{Mode, PushdownReaderBuilder, Row};
use pushdown_testkit::model_folder;
use tempfile::TempDir;

use super::{
    models::PREPARATION,
    world::{Objects, World, photos, run},
};

/// A gateway with these models, and `count` objects made of the photos whose sizes in bytes are in this range.
fn world(models: &TempDir, sizes: std::ops::Range<usize>, count: usize) -> World {
    let selected = photos()
        .into_iter()
        .filter(|(_, bytes)| sizes.contains(&bytes.len()));
    let selected: Vec<_> = selected.collect();
    let object = |index: usize| {
        let (name, bytes) = &selected[index % selected.len()];
        (format!("{index:03}-{name}"), bytes.clone())
    };
    let objects: Objects = (0..count).map(object).collect();
    let flags = [
        format!("--models={}", models.path().display()),
        "--threads=1".to_owned(),
        // The check of a large model takes seconds, and longer when other tests run.
        "--queue-wait=2m".to_owned(),
    ];
    World::with_flags(objects, &flags)
}

/// Reads an epoch and asserts that no value has more bytes than its object. Returns the split pipeline and the rows.
fn read_at_most_the_stored_bytes(world: &World, reader: PushdownReaderBuilder) -> (Pipeline, Vec<Row>) {
    run(async {
        let mut reader = reader.mode(Mode::Auto).build().await.unwrap();
        let mut rows: Vec<Row> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            rows.extend(batch.into_rows());
        }
        assert_eq!((reader.mode(), rows.len()), (Mode::Auto, world.objects.len()));
        let pipeline = reader.pipeline().clone();
        for row in &rows {
            assert!(row.value.is_ok(), "{}: {:?}", row.key, row.value.as_ref().err());
            let object = &world.objects[&*row.key];
            let stored = object.len() as u64;
            let stages = pipeline
                .kinds_for(&Kind::of_object(Some(stored), object))
                .unwrap();
            let value_bytes = stages[usize::from(row.stage)].bytes();
            assert!(
                value_bytes.is_some_and(|value_bytes| value_bytes <= stored),
                "{}: {value_bytes:?} of {stored} bytes, stage {}",
                row.key,
                row.stage
            );
        }
        let stored: usize = world.objects.values().map(Vec::len).sum();
        let stats = reader.stats();
        assert!(
            stats.value_bytes <= stored as u64,
            "{} of {stored}",
            stats.value_bytes
        );
        (pipeline, rows)
    })
}

/// Both tiers have one thread and the weights: a plan could split the model, but its intermediate values are too large to transfer.
#[test]
fn a_model_is_not_cut_where_its_values_are_larger_than_the_objects() {
    let models = model_folder(&["tiny/wide_inside"]).unwrap();
    let world = world(&models, 5_000..12_000, 96);
    let pipeline = "decode | resize(64, 64) | to_float | model(wide_inside) | cast(f16)";
    let reader = world.reader(pipeline).models(models.path()).batch_size(8);
    let (pipeline, rows) = read_at_most_the_stored_bytes(&world, reader.threads(NonZeroUsize::MIN));
    // The model is cut only where its values are smaller than its input, at 32 and 16 KiB.
    let inside: Vec<_> = pipeline.kinds()[4..6].iter().map(Kind::bytes).collect();
    assert_eq!(inside, [Some(32 << 10), Some(16 << 10)]);
    assert_eq!(pipeline.len(), 7);
    assert!(rows.iter().all(|row| [0, 6, 7].contains(&row.stage)));
}

/// After the first layers of VGG-19 the value of a photo has 13 MB. The weights of 575 MB stay at the gateway.
#[test]
#[ignore = "a model of 575 MB: make test-full"]
fn vgg19_transfers_at_most_the_stored_bytes() {
    let models = model_folder(&["vgg19"]).unwrap();
    // Together the photos are large enough to measure the link rate.
    let world = world(&models, 12_000..50_000, 8);
    let reader = world.reader(&format!("{PREPARATION} | model(vgg19) | cast(f16)"));
    let cache = world.folder().join("weights");
    let (pipeline, rows) = read_at_most_the_stored_bytes(&world, reader.model_cache(&cache).batch_size(2));
    assert!(
        pipeline.len() > 6 + 2,
        "expected cuts inside the model: {pipeline}"
    );
    let pushed = rows.iter().filter(|row| row.stage > 0).count();
    assert!(pushed > 0, "expected samples that the gateway computed");
}

/// The number of cuts is limited, because the costs of each cut have to be measured.
#[test]
fn a_model_is_cut_in_at_most_twelve_places() {
    let models = model_folder(&["tiny/falling"]).unwrap();
    let world = world(&models, 5_000..12_000, 4);
    let pipeline = "decode | resize(4, 4) | to_float | model(falling) | cast(f16)";
    let reader = world.reader(pipeline).models(models.path());
    let (pipeline, _) = read_at_most_the_stored_bytes(&world, reader);
    // The values of the model get smaller at fifteen places.
    assert_eq!(pipeline.len(), 5 + 12);
}
