//! The region of a bucket, named by a store whose host names none.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use pushdown_testkit::{RealStore, ScriptedOrigin, region_relay};

use super::*;

const REGION: &str = "lab-1";

/// A store that accepts signatures for [`REGION`] alone, the number of refused ones, and a gateway beside it. Readers sign for another region.
fn store_in_a_region(world: &World) -> (ScriptedOrigin, Arc<AtomicUsize>, Lab) {
    let (relay, refused) = region_relay(world.gateway.store().unwrap(), REGION).unwrap();
    let lab = Lab::launch(None, format!("http://{}", relay.address()), &[]);
    (relay, refused, lab)
}

#[test]
fn a_reader_learns_the_region_once() {
    let world = World::with_photos(6);
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    let keys: Vec<&String> = world.objects.keys().collect();
    for mode in MODES {
        for is_listed in [true, false] {
            let (_relay, refused, lab) = store_in_a_region(&world);
            let reader = lab.reader("decode").mode(mode);
            let (rows, ..) = read(if is_listed { reader } else { reader.keys(&keys) }).unwrap();
            assert_same_values(&rows, &expected);
            assert_eq!(refused.load(SeqCst), 1, "{mode:?} {is_listed}");
        }
    }
}

/// Without a gateway each of the first GETs learns it from its own answer.
#[test]
fn a_store_alone_teaches_its_region_as_well() {
    let world = World::with_photos(6);
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    let keys: Vec<&String> = world.objects.keys().collect();
    let (relay, refused, lab) = store_in_a_region(&world);
    let store = lab.store_through(&format!("http://{}", relay.address()));
    for mode in [Mode::Auto, Mode::Plain] {
        refused.store(0, SeqCst);
        let reader = lab.reader("decode").store(store.clone()).keys(&keys);
        let (rows, _, found) = read(reader.mode(mode)).unwrap();
        assert_same_values(&rows, &expected);
        assert_eq!(found, Mode::Plain);
        let refused = refused.load(SeqCst);
        // A request for the features of a gateway has no signature.
        assert!((1..=keys.len() + 1).contains(&refused), "{mode:?}: {refused}");
    }
}

#[test]
fn single_requests_learn_the_region() {
    let world = World::with_photos(2);
    let (key, photo) = world.objects.first_key_value().unwrap();
    let pipeline = Pipeline::parse("decode | resize(8, 8)").unwrap();
    let limits = Limits::default();
    let request = ValueRequest {
        pipeline: &pipeline,
        split: Split::Full,
        seed: None,
        epoch: None,
        accept: None,
    };
    for name in ["get", "value", "list", "upload"] {
        let (_relay, refused, lab) = store_in_a_region(&world);
        run(async {
            let store = lab.store().await;
            for _ in 0..2 {
                match name {
                    "get" => assert!(store.get(BUCKET, key, &limits).await.unwrap() == *photo),
                    "value" => {
                        let value = store.get_value(BUCKET, key, &request, &limits).await.unwrap();
                        assert_eq!(value.stage, 2);
                    }
                    "list" => assert_eq!(store.list_objects(BUCKET, "").await.unwrap().len(), 2),
                    _ => {
                        let mut upload = store.upload(BUCKET, key);
                        upload.write(photo).await.unwrap();
                        upload.finish().await.unwrap();
                    }
                }
            }
        });
        assert_eq!(refused.load(SeqCst), 1, "{name}");
    }
}

#[cfg(feature = "tables")]
#[test]
fn rows_of_several_objects_are_signed_for_the_region_of_their_bucket() {
    use pushdown_testkit::Parquet;

    let table = Parquet {
        rows: 10,
        noise: 1,
        row_group: 5,
    };
    let table = table.write().unwrap();
    let keys = ["t/0.parquet", "t/1.parquet"];
    let world = World::with_objects(keys.map(|key| (key.to_owned(), table.clone())).into());
    let (_relay, refused, lab) = store_in_a_region(&world);
    let select = Pipeline::parse("select(columns=[n])").unwrap();
    run(async {
        let store = lab.store().await;
        let keys = keys.map(Into::into).to_vec();
        let tables = store.tables(BUCKET, keys, pushdown::MergeRule::default(), &Limits::default());
        let request = ValueRequest {
            pipeline: &select,
            split: Split::Full,
            seed: None,
            epoch: Some(0),
            accept: None,
        };
        let mut value = tables.stream(&request).await.unwrap();
        let mut bytes = 0;
        while let Some(piece) = value.next().await.unwrap() {
            bytes += piece.len();
        }
        assert!(bytes > 0);
    });
    assert_eq!(refused.load(SeqCst), 1);
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn garage_teaches_its_region() {
    let garage = RealStore::garage().unwrap();
    garage.put(&format!("/{BUCKET}"), "").unwrap();
    let photos: Objects = photos().into_iter().take(6).collect();
    for (key, photo) in &photos {
        garage.put(&format!("/{BUCKET}/{key}"), photo.clone()).unwrap();
    }
    let lab = Lab::launch(None, format!("http://{}", garage.address().unwrap()), &[]);
    let world = World::with_objects(photos);
    let expected = read_rows(world.reader("decode").mode(Mode::Plain));
    let keys: Vec<&String> = world.objects.keys().collect();
    let store = lab
        .store_through(&lab.gateway_url())
        .credentials(Credentials::new(&garage.owner.access, &garage.owner.secret))
        .region("elsewhere");
    for mode in MODES {
        for is_listed in [true, false] {
            let reader = lab.reader("decode").store(store.clone()).mode(mode);
            let (rows, ..) = read(if is_listed { reader } else { reader.keys(&keys) }).unwrap();
            assert_same_values(&rows, &expected);
        }
    }
}
