//! Models that run at the gateway, on the host, and split between both.

use std::fs;

use futures::TryStreamExt as _;
use half::f16;
use pushdown::Sample;
use pushdown_client::reader::{Compression, Mode, OnError, PushdownReaderBuilder, Row, Split};
use pushdown_testkit::{distance, model_folder};
use tempfile::TempDir;

use super::world::{Objects, World, photos, read_rows, run};

pub(super) const PREPARATION: &str = "decode | resize(224, 224) | to_float | normalize(imagenet)";

pub(super) fn world() -> (World, TempDir) {
    let models = model_folder(&["squeezenet"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let large = photos().into_iter().filter(|(_, bytes)| bytes.len() > 5_000);
    let objects: Objects = large.take(6).collect();
    assert_eq!(objects.len(), 6);
    (World::with_flags(objects, &flags), models)
}

pub(super) fn floats(row: &Row) -> Vec<f32> {
    match &row.value {
        Ok(Sample::Tensor(tensor)) => {
            let (words, _) = tensor.data().as_chunks::<4>();
            words.iter().map(|word| f32::from_le_bytes(*word)).collect()
        }
        other => panic!("{}: {other:?}", row.key),
    }
}

fn halves(row: &Row) -> Vec<f32> {
    match &row.value {
        Ok(Sample::Tensor(tensor)) => {
            let (words, _) = tensor.data().as_chunks::<2>();
            words
                .iter()
                .map(|word| f16::from_le_bytes(*word).to_f32())
                .collect()
        }
        other => panic!("{}: {other:?}", row.key),
    }
}

/// Law 1 for models: values agree within `1e-5` of the largest element.
fn assert_close(found: &[Row], expected: &[Row], how: &str) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.key, expected.key);
        let difference = distance(&floats(found), &floats(expected));
        assert!(difference <= 1e-5, "{how}, {}: {difference}", found.key);
    }
}

#[test]
fn a_model_has_the_same_result_on_either_tier() {
    let (world, models) = world();
    let folder = world.folder().join("weights");
    let reader = |pipeline: &str| -> PushdownReaderBuilder { world.reader(pipeline).model_cache(&folder) };
    let whole = format!("{PREPARATION} | model(squeezenet, until=cut:14)");
    let cut = format!(
        "{PREPARATION} | model(squeezenet, until=cut:6) | model(squeezenet, from=cut:6, until=cut:14)"
    );

    let pushed = read_rows(reader(&whole).split(Split::Full));
    assert!(
        !folder.exists(),
        "no weights are fetched if the host runs no model"
    );
    let plain = read_rows(reader(&whole).mode(Mode::Plain));
    assert_close(&plain, &pushed, "plain");
    let cached: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    let [cached] = cached.as_slice() else {
        panic!("expected one cached file: {cached:?}")
    };
    assert_eq!(
        fs::read(cached).unwrap(),
        fs::read(models.path().join("squeezenet.onnx")).unwrap()
    );

    for stage in 0..=6 {
        let split = read_rows(reader(&cut).split(Split::At(stage)));
        assert!(split.iter().all(|row| row.stage == stage));
        assert_close(&split, &pushed, &format!("cut at {stage}"));
    }
    let from_folder = read_rows(world.reader(&whole).models(models.path()).mode(Mode::Plain));
    assert_close(&from_folder, &pushed, "from a folder");
    // A cached file that has changed is fetched again.
    fs::write(cached, b"broken").unwrap();
    assert_close(
        &read_rows(reader(&whole).mode(Mode::Plain)),
        &pushed,
        "fetched again",
    );
}

/// Many features are zero after a rectifier, so they compress well.
#[test]
fn compressed_answers_have_the_same_values_in_fewer_bytes() {
    let (world, models) = world();
    let pipeline = format!("{PREPARATION} | model(squeezenet, until=cut:6)");
    let read = |compression| {
        let reader = world.reader(&pipeline).models(models.path()).split(Split::Full);
        run(async {
            let mut reader = reader.compression(compression).build().await.unwrap();
            let mut rows = Vec::new();
            while let Some(batch) = reader.try_next().await.unwrap() {
                rows.extend(batch.rows().to_vec());
            }
            (rows, reader.stats())
        })
    };
    let (plain, uncompressed) = read(Compression::None);
    let (packed, compressed) = read(Compression::Lz4);
    for (packed, plain) in packed.iter().zip(&plain) {
        assert_eq!((&packed.key, &packed.value), (&plain.key, &plain.value));
    }
    assert_eq!(packed.len(), plain.len());
    assert_eq!(compressed.value_bytes, uncompressed.value_bytes);
    assert!(
        compressed.wire_bytes_down < uncompressed.wire_bytes_down * 9 / 10,
        "{} of {} bytes",
        compressed.wire_bytes_down,
        uncompressed.wire_bytes_down
    );
}

/// A broken object among the measured ones is read and reported like any other.
#[test]
fn a_plan_survives_broken_objects() {
    let photo = photos().into_values().max_by_key(Vec::len).unwrap();
    let mut objects: Objects = (0..59)
        .map(|index| (format!("{index:03}.jpg"), photo.clone()))
        .collect();
    objects.insert("!first.jpg".to_owned(), b"no photo".to_vec());
    let world = World::with_objects(objects);
    let reader = world.reader("decode | resize(8, 8) | to_tensor").mode(Mode::Auto);
    let rows = read_rows(reader.on_error(OnError::Report));
    assert_eq!(rows.len(), 60);
    for row in rows {
        assert_eq!(row.value.is_ok(), row.key.as_ref() != "!first.jpg", "{}", row.key);
    }
}

#[test]
fn unknown_models_are_refused() {
    let (world, _models) = world();
    let build_error = |pipeline: &str| run(world.reader(pipeline).build()).unwrap_err().to_string();
    let endpoint = world.endpoint();
    let unknown = build_error(&format!("{PREPARATION} | model(resnet)"));
    let expected = format!("expected one of those that {endpoint} serves: squeezenet");
    assert!(unknown.ends_with(&expected), "{unknown}");
    let without_models = World::with_photos(1);
    let error = run(without_models
        .reader(&format!("{PREPARATION} | model(resnet)"))
        .build())
    .unwrap_err();
    assert!(error.to_string().contains("unknown model `resnet`"), "{error}");
}

/// The data set has small and large objects. For any plan every sample is read once, has the value of plain reading, and transfers
/// at most the stored bytes.
#[test]
fn auto_returns_the_values_of_plain_reading() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let photos: Vec<_> = photos().into_iter().collect();
    let objects: Objects = (0..60)
        .map(|index| {
            let (name, bytes) = &photos[index % photos.len()];
            (format!("{index:03}-{name}"), bytes.clone())
        })
        .collect();
    let stored: usize = objects.values().map(Vec::len).sum();
    let world = World::with_flags(objects, &flags);
    let folder = world.folder().join("weights");
    for pipeline in [
        "decode | resize(short=40) | center_crop(32) | to_float | cast(f16)".to_owned(),
        format!("{PREPARATION} | model(squeezenet) | cast(f16)"),
    ] {
        let reader = |mode: Mode| {
            world
                .reader(&pipeline)
                .model_cache(&folder)
                .mode(mode)
                .batch_size(16)
        };
        let plain = read_rows(reader(Mode::Plain));
        let (auto, stats) = run(async {
            let mut reader = reader(Mode::Auto).build().await.unwrap();
            let mut found = Vec::new();
            while let Some(batch) = reader.try_next().await.unwrap() {
                found.extend(batch.into_rows());
            }
            (found, reader.stats())
        });
        assert_eq!(auto.len(), plain.len());
        for (auto, plain) in auto.iter().zip(&plain) {
            assert_eq!((auto.index, &auto.key), (plain.index, &plain.key));
            let (found, expected) = (halves(auto), halves(plain));
            let largest = expected
                .iter()
                .fold(0_f32, |largest, element| largest.max(element.abs()));
            for (found, expected) in found.iter().zip(&expected) {
                // The tolerance of law 1 plus one step of f16.
                let difference = (found - expected).abs();
                assert!(
                    difference <= 1e-5 * largest + expected.abs() / 1024.0,
                    "{}: {found} {expected}",
                    auto.key
                );
            }
        }
        assert!(
            stats.value_bytes <= stored as u64,
            "{} of {stored}",
            stats.value_bytes
        );
        if !pipeline.contains("model") {
            assert!(
                auto.iter()
                    .zip(&plain)
                    .all(|(auto, plain)| auto.value == plain.value),
                "values differ"
            );
        }
    }
}
