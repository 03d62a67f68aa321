//! Result caches of replicas: each has its part of the data set.

use super::*;

const SAMPLES: usize = 384;
/// The least that a cache on disk may have, for each of three replicas.
const DISK_MIB: usize = 3 * 128;

/// Replicas with this space together, each with a folder of its own.
fn replicas(count: usize) -> Replicas {
    let disk = format!("--cache-disk={}MiB", DISK_MIB / count);
    let flags = [disk.as_str(), "--cache-dir=FOLDER"];
    Replicas::with_flags(count, many_photos(SAMPLES), &flags)
}

/// Hits of the result caches in an epoch.
async fn hits_of_epoch(replicas: &Replicas, epoch: u32) -> u64 {
    let reader = replicas.reader(PIPELINE).seed(5).epoch(epoch);
    let mut reader = reader.build().await.unwrap();
    let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
    assert_eq!(pushed(&rows), SAMPLES);
    reader.stats().gateway_cache_hits
}

#[test]
#[ignore = "three epochs of many photos by each of six gateways"]
fn three_replicas_have_the_hits_of_one_with_their_space() {
    let hits = |count: usize| {
        let replicas = replicas(count);
        run(async {
            // A busy disk may be behind after the first epoch.
            hits_of_epoch(&replicas, 0).await;
            hits_of_epoch(&replicas, 1).await;
            hits_of_epoch(&replicas, 2).await
        })
    };
    let (one, three) = (hits(1), hits(3));
    assert!(
        one > 0 && three * 100 >= one * 95,
        "{three} hits of three replicas, {one} of one"
    );
}

/// Values that are computed again after one of three replicas was replaced by one with an empty cache.
fn computed_after_replacement(id: Option<&str>) -> u64 {
    let mut replicas = replicas(3);
    run(async {
        hits_of_epoch(&replicas, 0).await;
        hits_of_epoch(&replicas, 1).await;
        replicas.kill(1);
        fs::remove_dir_all(replicas.world.folder().join("replica-1")).unwrap();
        if let Some(id) = id {
            id.clone_into(&mut replicas.specs[1].id);
        }
        replicas.start(1);
        SAMPLES as u64 - hits_of_epoch(&replicas, 2).await
    })
}

#[test]
fn a_replica_that_returns_with_its_id_computes_its_part_again() {
    let computed = computed_after_replacement(None);
    assert!(
        computed * 300 <= SAMPLES as u64 * 110,
        "{computed} of {SAMPLES} computed again"
    );
}

#[test]
#[ignore = "as long as its neighbour, which tests the same by an old id"]
fn a_replica_with_a_new_id_moves_samples_of_the_others() {
    let computed = computed_after_replacement(Some("another"));
    assert!(
        computed * 100 <= SAMPLES as u64 * 55,
        "{computed} of {SAMPLES} computed again"
    );
}
