//! Models with weights in external files: each file is fetched, and the models run on either tier.

use std::{collections::BTreeSet, fs, path::Path};

use pushdown_client::reader::{Mode, OnError, Row, Split};
use pushdown_testkit::{distance, model_folder};

use super::{
    models::floats,
    world::{World, photos, read_rows},
};

const GREY: &str = "decode | resize(28, 28) | grayscale | to_float | normalize(mean=0.1307, std=0.3081)";

fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == extension)
}

fn assert_close(found: &[Row], expected: &[Row], how: &str) {
    assert_eq!(found.len(), expected.len(), "{how}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.key, expected.key);
        let difference = distance(&floats(found), &floats(expected));
        assert!(difference <= 1e-5, "{how}, {}: {difference}", found.key);
    }
}

#[test]
fn files_are_fetched_by_digest_and_models_run_on_either_tier() {
    let models = model_folder(&["tiny/digits", "tiny/external"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let world = World::with_flags(photos().into_iter().take(5).collect(), &flags);
    let cache = world.folder().join("weights");
    let reader = |text: &str| world.reader(&format!("{GREY} | {text}")).model_cache(&cache);
    let pushed = read_rows(reader("model(external)").split(Split::Full));
    assert!(!cache.exists(), "nothing is fetched if the host runs no model");
    let cut = "model(external, until=cut:2) | model(external, from=cut:2)";
    for stage in 0..=7 {
        let split = read_rows(reader(cut).split(Split::At(stage)));
        assert!(split.iter().all(|row| row.stage == stage));
        assert_close(&split, &pushed, &format!("cut at {stage}"));
    }
    let plain = read_rows(reader("model(external)").mode(Mode::Plain));
    assert_close(&plain, &pushed, "plain");
    let from_folder = read_rows(reader("model(external)").models(models.path()).mode(Mode::Plain));
    assert_close(&from_folder, &pushed, "from a folder");

    let names = || -> BTreeSet<String> {
        let files = fs::read_dir(&cache).unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let cached = names();
    assert_eq!(cached.len(), 2, "{cached:?}");
    let data = fs::read(models.path().join("external.onnx.data")).unwrap();
    let data_file = cached.iter().find(|name| has_extension(name, "data")).unwrap();
    let model = cached.iter().find(|name| has_extension(name, "onnx")).unwrap();
    assert!(fs::read(cache.join(data_file)).unwrap() == data);
    // A cached file that has changed is fetched again, and only that file.
    fs::write(cache.join(data_file), b"broken").unwrap();
    assert_close(
        &read_rows(reader("model(external)").mode(Mode::Plain)),
        &pushed,
        "fetched again",
    );
    assert!(fs::read(cache.join(data_file)).unwrap() == data);
    fs::remove_file(cache.join(model)).unwrap();
    assert_close(
        &read_rows(reader("model(external)").mode(Mode::Plain)),
        &pushed,
        "fetched again",
    );
    assert_eq!(names(), cached);
    // A model with embedded weights is one file.
    assert_close(
        &read_rows(reader("model(digits)").mode(Mode::Plain)),
        &pushed,
        "embedded weights",
    );
    assert_eq!(names().len(), 3);
}

/// The gateway described the model before its weights were replaced.
#[test]
fn a_file_with_another_digest_is_refused() {
    let models = model_folder(&["tiny/external"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let world = World::with_flags(photos().into_iter().take(2).collect(), &flags);
    let cache = world.folder().join("weights");
    let reader = || {
        world
            .reader(&format!("{GREY} | model(external)"))
            .model_cache(&cache)
    };
    // After this read the gateway has described the model.
    read_rows(reader().split(Split::Full));
    let file = models.path().join("external.onnx.data");
    let mut data = fs::read(&file).unwrap();
    data[17] ^= 1;
    fs::write(&file, data).unwrap();
    let failed = read_rows(reader().mode(Mode::Plain).on_error(OnError::Report));
    assert_eq!(failed.len(), 2);
    for row in failed {
        let failure = row.value.unwrap_err().to_string();
        assert!(
            failure.contains("the data file `external.onnx.data` has the digest"),
            "{failure}"
        );
    }
    let cached = cache.exists() && fs::read_dir(&cache).unwrap().count() > 0;
    assert!(!cached, "the file is not cached");
}
