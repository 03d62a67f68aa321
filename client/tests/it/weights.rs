//! Weights of models, fetched in the background.

use std::{fs, path::Path};

use futures::TryStreamExt as _;
use pushdown_client::reader::{Mode, Row};
use pushdown_testkit::{gated_relay, model_folder};

use super::{
    models::PREPARATION,
    world::{Objects, World, photos, read_rows, reader, run},
};

const SAMPLES: usize = 400;

/// A gateway with this folder of models and one thread, and objects made of a few photos.
fn world(models: &Path) -> World {
    let small = photos()
        .into_iter()
        .filter(|(_, bytes)| (5_000..12_000).contains(&bytes.len()));
    let small: Vec<_> = small.collect();
    let object = |index: usize| {
        let (name, bytes) = &small[index % small.len()];
        (format!("{index:03}-{name}"), bytes.clone())
    };
    let objects: Objects = (0..SAMPLES).map(object).collect();
    let flags = [format!("--models={}", models.display()), "--threads=1".to_owned()];
    World::with_flags(objects, &flags)
}

/// With one thread at the gateway and a fast link, a plan runs the model on this host too.
#[test]
fn weights_are_fetched_once_in_the_background() {
    let models = model_folder(&["squeezenet"]).unwrap();
    let world = world(models.path());
    let (relay, gate) = gated_relay(world.gateway.listen()).unwrap();
    let endpoint = format!("http://{}", relay.address());
    let pipeline = format!("{PREPARATION} | model(squeezenet) | cast(f16)");
    let cache = world.folder().join("weights");
    let auto = || {
        let reader = reader(&endpoint, &pipeline).model_cache(&cache);
        reader.mode(Mode::Auto).batch_size(8)
    };
    run(async {
        let mut reader = auto().build().await.unwrap();
        let after_model = reader.pipeline().len() - 1;
        let mut rows: Vec<Row> = Vec::new();
        while gate.requests() == 0 {
            let batch = reader.try_next().await.unwrap();
            rows.extend(
                batch
                    .expect("the epoch ends before the weights are requested")
                    .into_rows(),
            );
        }
        for _ in 0..8 {
            rows.extend(reader.try_next().await.unwrap().unwrap().into_rows());
        }
        assert!(!cache.exists(), "the weights are not cached yet");
        assert!(
            rows.iter()
                .all(|row| usize::from(row.stage) >= after_model && row.value.is_ok())
        );
        gate.open();
        let mut later: Vec<Row> = Vec::new();
        while let Some(batch) = reader.try_next().await.unwrap() {
            later.extend(batch.into_rows());
        }
        assert_eq!(rows.len() + later.len(), SAMPLES);
        assert!(
            later.iter().any(|row| usize::from(row.stage) < after_model),
            "expected samples whose model runs on the host"
        );
        assert!(later.iter().all(|row| row.value.is_ok()));
    });
    assert_eq!(gate.requests(), 1);
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 1);
    assert_eq!(read_rows(auto()).len(), SAMPLES);
    assert_eq!(gate.requests(), 1, "cached weights are not requested again");
}
