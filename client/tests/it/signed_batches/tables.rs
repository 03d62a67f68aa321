//! Several objects as one table.

use std::sync::Arc;

use pushdown::{Limits, MergeRule, Pipeline, wire::Split};
use pushdown_client::store::{Credentials, Store, ValueRequest};
use pushdown_testkit::{RelayAction, ScriptedOrigin, faulty_relay, features_relay};

use super::{READER, Resigning, signed_posts};
use crate::it::world::{ACCESS_KEY, BUCKET, SECRET_KEY, World, run};

fn world() -> World {
    let objects = [("a.csv", "x\n1\n"), ("b.csv", "x\n2\n")];
    let objects = objects.map(|(key, rows)| (key.to_owned(), rows.as_bytes().to_vec()));
    World::with_objects(objects.into())
}

/// Reads all objects as one table through a relay, twice.
fn read_twice(world: &World, relay: &ScriptedOrigin, (access_key, secret): (&str, &str)) {
    let pipeline = Pipeline::parse("select()").unwrap();
    run(async {
        let builder = Store::builder()
            .endpoint(format!("http://{}", relay.address()))
            .region("us-east-1")
            .credentials(Credentials::new(access_key, secret));
        let store = builder.build().await.unwrap();
        let keys: Vec<Arc<str>> = world.objects.keys().map(|key| key.as_str().into()).collect();
        let tables = store.tables(BUCKET, keys, MergeRule::default(), &Limits::default());
        for _ in 0..2 {
            let request = ValueRequest {
                pipeline: &pipeline,
                split: Split::Full,
                seed: None,
                epoch: None,
                accept: Some("text/csv"),
            };
            let mut stream = tables.stream(&request).await.unwrap();
            let mut rows = Vec::new();
            while let Some(bytes) = stream.next().await.unwrap() {
                rows.extend(bytes);
            }
            assert_eq!(String::from_utf8(rows).unwrap(), "x\n1\n2\n");
        }
    });
}

#[test]
fn tables_of_several_objects_are_signed_as_a_whole() {
    let world = world();
    let resigning = Resigning::launch(&world, READER);
    let features = "families, signed-batches";
    let (relay, _) = features_relay(resigning.gateway.listen(), features).unwrap();
    read_twice(&world, &relay, READER);
    assert_eq!(signed_posts(&relay), [false, true]);
}

/// The first answer lists signed batches. The gateway that answers then forwards signatures.
#[test]
fn a_replaced_gateway_gets_presigned_objects_again() {
    let world = world();
    let relay = faulty_relay(world.gateway.listen(), |earlier| match earlier {
        0 => RelayAction::OtherFeatures("families, signed-batches"),
        _ => RelayAction::Forward,
    })
    .unwrap();
    read_twice(&world, &relay, (ACCESS_KEY, SECRET_KEY));
    assert_eq!(signed_posts(&relay), [false, true, false]);
}
