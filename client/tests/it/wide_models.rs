//! Models whose values inside have more bytes than the photos, in `auto`: where a plan may cut them, and what travels.

use std::num::NonZeroUsize;

use futures::TryStreamExt as _;
use pushdown::{Kind, Pipeline};
use pushdown_client::{Mode, PushdownReaderBuilder, Row};
use pushdown_testkit::model_folder;
use tempfile::TempDir;

use super::{
    models::PREPARED,
    world::{Objects, World, photos, run},
};

/// A gateway with a model, and the photos whose sizes are in this range in turns, so many together.
fn world(models: &TempDir, sizes: std::ops::Range<usize>, count: usize) -> World {
    let some = photos()
        .into_iter()
        .filter(|(_, bytes)| sizes.contains(&bytes.len()));
    let some: Vec<_> = some.collect();
    let object = |index: usize| {
        let (name, bytes) = &some[index % some.len()];
        (format!("{index:03}-{name}"), bytes.clone())
    };
    let objects: Objects = (0..count).map(object).collect();
    let flags = [
        format!("--models={}", models.path().display()),
        "--threads=1".to_owned(),
        // A look at a large model takes seconds, and more of them beside other tests.
        "--queue-wait=2m".to_owned(),
    ];
    World::with_flags(objects, &flags)
}

/// Reads an epoch, of which no value came with more bytes than its object has: the pipeline as it was cut, and the rows.
fn read_no_more_than_is_stored(world: &World, reader: PushdownReaderBuilder) -> (Pipeline, Vec<Row>) {
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
            let stages = pipeline.stages(&Kind::of_object(Some(stored), object)).unwrap();
            let came = stages[usize::from(row.stage)].bytes();
            assert!(
                came.is_some_and(|came| came <= stored),
                "{}: {came:?} of {stored} bytes, stage {}",
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

/// With a thread on each side and weights on both the layers of a photo could be shared out, were it not for what would travel.
#[test]
fn a_model_is_not_cut_where_its_values_are_larger_than_the_objects() {
    let models = model_folder(&["tiny/wide_inside"]).unwrap();
    let world = world(&models, 5_000..12_000, 96);
    let pipeline = "decode | resize(64, 64) | to_float | model(wide_inside) | cast(f16)";
    let reader = world.reader(pipeline).models(models.path()).batch_size(8);
    let (pipeline, rows) = read_no_more_than_is_stored(&world, reader.threads(NonZeroUsize::MIN));
    // 32 and 16 KiB: cut where it is smaller than its input.
    let inside: Vec<_> = pipeline.kinds()[4..6].iter().map(Kind::bytes).collect();
    assert_eq!(inside, [Some(32 << 10), Some(16 << 10)]);
    assert_eq!(pipeline.len(), 7);
    assert!(rows.iter().all(|row| [0, 6, 7].contains(&row.stage)));
}

/// Behind the first layers of VGG-19 a photo has 13 MB. Its weights, of 575 MB, stay where they are.
#[test]
fn of_vgg19_no_more_comes_than_is_stored() {
    let models = model_folder(&["vgg19"]).unwrap();
    // Large enough together to tell how fast the link is.
    let world = world(&models, 12_000..50_000, 8);
    let reader = world.reader(&format!("{PREPARED} | model(vgg19) | cast(f16)"));
    let cache = world.folder().join("weights");
    let (pipeline, rows) = read_no_more_than_is_stored(&world, reader.cache(&cache).batch_size(2));
    assert!(pipeline.len() > 6 + 2, "it is cut inside, too: {pipeline}");
    let pushed = rows.iter().filter(|row| row.stage > 0).count();
    assert!(pushed > 0, "some came from behind the model");
}

/// Each place that a plan may cut a model at is one more thing to learn the costs of.
#[test]
fn a_model_is_cut_in_at_most_twelve_places() {
    let models = model_folder(&["tiny/falling"]).unwrap();
    let world = world(&models, 5_000..12_000, 4);
    let pipeline = "decode | resize(4, 4) | to_float | model(falling) | cast(f16)";
    let reader = world.reader(pipeline).models(models.path());
    let (pipeline, _) = read_no_more_than_is_stored(&world, reader);
    // Of fifteen at which it gets smaller.
    assert_eq!(pipeline.len(), 5 + 12);
}
