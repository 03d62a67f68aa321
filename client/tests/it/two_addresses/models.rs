//! Models of a gateway beside the store: it describes them, runs them, and hands out their weights.

use std::fs;

use pushdown_testkit::{distance, model_folder};

use super::*;
use crate::it::models::floats;

const PIPELINE: &str =
    "decode | resize(28, 28) | grayscale | to_float | normalize(mean=0.1307, std=0.3081) | model(digits)";

#[test]
fn models_and_their_weights_come_from_the_gateway() {
    let models = model_folder(&["tiny/digits"]).unwrap();
    let flag = format!("--models={}", models.path().display());
    let world = World::with_flags(
        photos().into_iter().take(5).collect(),
        std::slice::from_ref(&flag),
    );
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Pushdown));
    let store = format!("http://{}", world.gateway.store().unwrap());
    for lab in [
        Lab::launch(None, store, &[flag.as_str()]),
        Lab::virtual_hosts(&world, &[flag.as_str()]),
    ] {
        let cache = tempfile::tempdir().unwrap();
        // Next to the list of models.
        let weights = || fs::read_dir(cache.path()).unwrap().count() - 1;
        for (mode, split, files) in [
            (Mode::Pushdown, Split::Full, 0),
            (Mode::Pushdown, Split::At(4), 1),
            (Mode::Plain, Split::Full, 1),
        ] {
            let reader = lab.reader(PIPELINE).model_cache(cache.path());
            let (rows, stats, _) = read(reader.mode(mode).split(split)).unwrap();
            assert_eq!(rows.len(), expected.len());
            for (row, expected) in rows.iter().zip(&expected) {
                assert_eq!(row.key, expected.key);
                let difference = distance(&floats(row), &floats(expected));
                assert!(difference <= 1e-5, "{mode:?}, {}: {difference}", row.key);
            }
            assert_eq!(stats.errors, 0);
            assert_eq!(weights(), files, "{mode:?} {split:?}");
        }
    }
}
