//! Law 1: the split never changes the values.

use pushdown::Pipeline;
use pushdown_client::reader::{Mode, Split};

use super::world::{Objects, World, photos, read_rows};

const PIPELINES: [&str; 6] = [
    "decode | resize(short=40) | center_crop(32) | to_float | normalize(imagenet) | cast(f16)",
    "decode | random_resized_crop(33, seed=9) | flip_h(0.5) | color_jitter(brightness=0.4, hue=0.1) | to_tensor",
    "decode | resize(36, 34, filter=bicubic) | to_float | quantize(int8) | dequantize | cast(bf16)",
    "decode | resize(long=40) | encode(jpeg, quality=80)",
    "decode | random_crop(32) | to_float | layout(hwc)",
    "decode | resize(30, 30, filter=nearest) | encode(png) | decode | to_float | quantize(int8)",
];

/// Samples of several formats, some with unusual keys. Some may not suit the pipeline.
fn world() -> World {
    let mut objects: Objects = photos().into_iter().step_by(3).collect();
    let photo = objects.values().next().unwrap().clone();
    objects.insert("odd/a b+c \u{e9}.jpg".to_owned(), photo);
    World::with_objects(objects)
}

#[test]
fn plain_and_every_split_agree_bit_for_bit() {
    check_splits(PIPELINES.into_iter().step_by(2));
}

#[test]
#[ignore = "every pipeline: make test-full"]
fn plain_and_every_split_of_every_pipeline_agree_bit_for_bit() {
    check_splits(PIPELINES);
}

fn check_splits(pipelines: impl IntoIterator<Item = &'static str>) {
    let world = world();
    for pipeline in pipelines {
        let steps = Pipeline::parse(pipeline).unwrap().len();
        let reader = || {
            world
                .reader(pipeline)
                .seed(4)
                .epoch(2)
                .on_error(pushdown_client::reader::OnError::Report)
        };
        let plain = read_rows(reader().mode(Mode::Plain));
        assert_eq!(plain.len(), world.objects.len());
        for row in &plain {
            let expected = world.expected(pipeline, &row.key, Some(4), 2);
            // Values are too long to print.
            assert!(row.value == expected, "{pipeline}: {}", row.key);
        }
        let splits = (0..=steps).map(|stage| Split::At(u8::try_from(stage).unwrap()));
        for split in splits.chain([Split::Full, Split::Smallest]) {
            let pushed = read_rows(reader().split(split));
            assert_eq!(pushed.len(), plain.len());
            for (pushed, plain) in pushed.iter().zip(&plain) {
                assert_eq!(
                    (pushed.index, pushed.position, &pushed.key),
                    (plain.index, plain.position, &plain.key)
                );
                assert!(
                    pushed.value == plain.value,
                    "{pipeline} cut at {split}: {}",
                    plain.key
                );
                if let (Split::At(stage), Ok(_)) = (split, &pushed.value) {
                    assert_eq!(pushed.stage, stage, "{}", plain.key);
                }
            }
        }
    }
}

#[test]
fn random_draws_depend_on_the_epoch_but_not_on_the_order() {
    let world = World::with_photos(6);
    let pipeline = "decode | random_resized_crop(32) | to_float";
    let by_key = |epoch, shuffle| {
        let mut rows = read_rows(world.reader(pipeline).seed(4).epoch(epoch).shuffle(shuffle));
        rows.sort_by_key(|row| row.index);
        rows.into_iter().map(|row| row.value.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(by_key(0, true), by_key(0, false));
    assert_ne!(by_key(0, true), by_key(1, true));
}
