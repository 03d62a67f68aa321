//! Models whose weights are in files beside them: fetched file by file, and run on either side.

use std::{collections::BTreeSet, fs, path::Path};

use pushdown_client::{Mode, OnError, Row, Split};
use pushdown_testkit::{distance, model_folder};

use super::{
    models::floats,
    world::{World, photos, rows},
};

const GREY: &str = "decode | resize(28, 28) | grayscale | to_float | normalize(mean=0.1307, std=0.3081)";

fn ends_in(name: &str, extension: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == extension)
}

fn assert_close(found: &[Row], expected: &[Row], how: &str) {
    assert_eq!(found.len(), expected.len(), "{how}");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.key, expected.key);
        let far = distance(&floats(found), &floats(expected));
        assert!(far <= 1e-5, "{how}, {}: {far}", found.key);
    }
}

#[test]
fn files_are_fetched_by_their_digests_and_layers_run_on_either_side() {
    let models = model_folder(&["tiny/digits", "tiny/external"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let world = World::with_flags(photos().into_iter().take(5).collect(), &flags);
    let cache = world.folder().join("weights");
    let reader = |text: &str| world.reader(&format!("{GREY} | {text}")).cache(&cache);
    let pushed = rows(reader("model(external)").split(Split::Full));
    assert!(!cache.exists(), "nothing is fetched where no layers run here");
    let cut = "model(external, until=cut:2) | model(external, from=cut:2)";
    for stage in 0..=7 {
        let split = rows(reader(cut).split(Split::At(stage)));
        assert!(split.iter().all(|row| row.stage == stage));
        assert_close(&split, &pushed, &format!("cut at {stage}"));
    }
    let plain = rows(reader("model(external)").mode(Mode::Plain));
    assert_close(&plain, &pushed, "plain");
    let of_folder = rows(reader("model(external)").models(models.path()).mode(Mode::Plain));
    assert_close(&of_folder, &pushed, "from a folder");

    let names = || -> BTreeSet<String> {
        let files = fs::read_dir(&cache).unwrap();
        files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let kept = names();
    assert_eq!(kept.len(), 2, "{kept:?}");
    let data = fs::read(models.path().join("external.onnx.data")).unwrap();
    let own = kept.iter().find(|name| ends_in(name, "data")).unwrap();
    let model = kept.iter().find(|name| ends_in(name, "onnx")).unwrap();
    assert!(fs::read(cache.join(own)).unwrap() == data);
    // What was kept and has changed since is fetched again: that file alone.
    fs::write(cache.join(own), b"broken").unwrap();
    assert_close(
        &rows(reader("model(external)").mode(Mode::Plain)),
        &pushed,
        "fetched again",
    );
    assert!(fs::read(cache.join(own)).unwrap() == data);
    fs::remove_file(cache.join(model)).unwrap();
    assert_close(
        &rows(reader("model(external)").mode(Mode::Plain)),
        &pushed,
        "fetched again",
    );
    assert_eq!(names(), kept);
    // A model with its weights inside is one file as before.
    assert_close(
        &rows(reader("model(digits)").mode(Mode::Plain)),
        &pushed,
        "weights within",
    );
    assert_eq!(names().len(), 3);
}

/// Weights that were replaced at the gateway are not those that it has described.
#[test]
fn a_file_with_another_digest_is_refused() {
    let models = model_folder(&["tiny/external"]).unwrap();
    let flags = [format!("--models={}", models.path().display())];
    let world = World::with_flags(photos().into_iter().take(2).collect(), &flags);
    let cache = world.folder().join("weights");
    let reader = || world.reader(&format!("{GREY} | model(external)")).cache(&cache);
    // It has been looked at.
    rows(reader().split(Split::Full));
    let file = models.path().join("external.onnx.data");
    let mut data = fs::read(&file).unwrap();
    data[17] ^= 1;
    fs::write(&file, data).unwrap();
    let failed = rows(reader().mode(Mode::Plain).on_error(OnError::SkipAndReport));
    assert_eq!(failed.len(), 2);
    for row in failed {
        let failure = row.value.unwrap_err().to_string();
        assert!(
            failure.contains("the file `external.onnx.data` of its weights has the digest"),
            "{failure}"
        );
    }
    let kept = cache.exists() && fs::read_dir(&cache).unwrap().count() > 0;
    assert!(!kept, "nothing of it is kept");
}
