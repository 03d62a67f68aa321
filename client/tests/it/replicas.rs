//! Several gateways behind one name: samples are placed on them, and the others take over from one that is lost.

mod caches;
mod changes;
mod losses;
mod membership;
mod moments;
mod versions;

use std::{fmt::Write as _, fs, net::SocketAddr, path::PathBuf};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    reader::{Batch, Mode, PushdownReader, PushdownReaderBuilder, Rank, Row},
    store::{Credentials, ReplicaReport, RetryPolicy, Store, StoreBuilder},
};
use pushdown_testkit::{Gateway, Replica, find_gateway};

use super::world::{
    ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, assert_same_values, into_rows, many_photos, pushed,
    read_rows, run,
};

const PIPELINE: &str = "decode | resize(32, 32) | to_tensor";
/// A name that only the hosts file has.
const NAME: &str = "gateway.internal";

/// A name, and gateways at 127.0.0.2, 127.0.0.3 and so on, all on one port.
struct Replicas {
    /// All that can be started.
    specs: Vec<Replica>,
    gateways: Vec<Option<Gateway>>,
    flags: Vec<String>,
    hosts_file: PathBuf,
    world: World,
}

impl Replicas {
    /// Starts `count` replicas. One more can be started later.
    fn new(count: usize, objects: Objects) -> Self {
        Self::with_flags(count, objects, &[])
    }

    /// The same with further flags of each gateway. `FOLDER` in them stands for the folder of that gateway.
    fn with_flags(count: usize, objects: Objects, flags: &[&str]) -> Self {
        let world = World::with_objects(objects);
        let specs = Replica::list(u8::try_from(count + 1).unwrap()).unwrap();
        let mut replicas = Self {
            gateways: specs.iter().map(|_| None).collect(),
            specs,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            hosts_file: world.folder().join("hosts"),
            world,
        };
        let numbers: Vec<usize> = (0..count).collect();
        for number in &numbers {
            replicas.start(*number);
        }
        replicas.name(&numbers);
        replicas
    }

    fn start(&mut self, number: usize) {
        let folder = self.world.folder().join(format!("replica-{number}"));
        let flags = self.flags.iter();
        let mut flags: Vec<String> = flags
            .map(|flag| flag.replace("FOLDER", &folder.display().to_string()))
            .collect();
        flags.push(format!("--allow-store=http://{}", self.store()));
        let gateway = self.specs[number].launch(&find_gateway().unwrap(), flags);
        self.gateways[number] = Some(gateway.unwrap());
    }

    /// Gives the name the addresses of these gateways.
    fn name(&self, numbers: &[usize]) {
        let mut text = String::new();
        for number in numbers {
            writeln!(text, "{} {NAME}", self.specs[*number].listen.ip()).unwrap();
        }
        fs::write(&self.hosts_file, text).unwrap();
    }

    fn url(&self) -> String {
        format!("http://{NAME}:{}", self.specs[0].listen.port())
    }

    fn store(&self) -> SocketAddr {
        self.world.gateway.store().unwrap()
    }

    fn gateway(&self, number: usize) -> &Gateway {
        self.gateways[number].as_ref().unwrap()
    }

    fn kill(&mut self, number: usize) {
        self.gateways[number] = None;
    }

    fn store_through(&self, gateway: &str) -> StoreBuilder {
        Store::builder()
            .endpoint(format!("http://{}", self.store()))
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
            .retry(RetryPolicy::NEVER)
            .hosts_file(&self.hosts_file)
            .gateway(gateway)
    }

    fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        PushdownReader::builder()
            .store(self.store_through(&self.url()))
            .bucket(BUCKET)
            .pipeline(pipeline)
            .mode(Mode::Pushdown)
            .batch_size(32)
    }

    /// The epoch as it is without a gateway.
    fn expected(&self) -> Vec<Row> {
        let reader = self.world.reader(PIPELINE).mode(Mode::Plain).seed(5);
        read_rows(reader.batch_size(32))
    }
}

/// Samples that each replica has delivered.
fn delivered(replicas: &[ReplicaReport]) -> Vec<u64> {
    replicas.iter().map(|replica| replica.samples).collect()
}

#[test]
fn all_replicas_deliver_samples_and_each_delivers_its_part() {
    const SAMPLES: usize = 384;
    let replicas = Replicas::new(3, many_photos(SAMPLES));
    let expected = replicas.expected();
    run(async {
        let reader = replicas.reader(PIPELINE).seed(5);
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        assert_eq!(pushed(&rows), SAMPLES);
        let reports = reader.monitor().replicas();
        let delivered = delivered(&reports);
        assert_eq!(delivered.iter().sum::<u64>(), SAMPLES as u64);
        // At most 110 % of a third, and what was placed while little was in flight.
        assert!(
            delivered.iter().all(|samples| (90..170).contains(samples)),
            "{delivered:?}"
        );
        for report in &reports {
            assert_eq!(
                (report.state, report.cores.is_some()),
                ("serving", true),
                "{report:?}"
            );
            assert!(
                report.address.starts_with("http://gateway.internal:"),
                "{report:?}"
            );
        }
    });
}

/// A sample goes to the same replica in each epoch and for each rank, so that a result cache has its values.
#[test]
fn ranks_and_epochs_place_samples_alike() {
    const SAMPLES: usize = 192;
    let replicas = Replicas::with_flags(3, many_photos(SAMPLES), &["--cache-memory=64MiB"]);
    let mut hits = [0, 0];
    run(async {
        for epoch in 0..2 {
            for rank in 0..2 {
                let reader = replicas.reader(PIPELINE).seed(5).epoch(epoch).rank(Rank {
                    index: rank,
                    world: 2,
                });
                let mut reader = reader.build().await.unwrap();
                let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                assert_eq!(pushed(&into_rows(batches)), SAMPLES / 2);
                hits[epoch as usize] += reader.stats().gateway_cache_hits;
            }
        }
    });
    assert_eq!(hits[0], 0, "each sample was read once");
    // A few are at their second choices.
    assert!(
        hits[1] * 100 >= SAMPLES as u64 * 90,
        "{} of {SAMPLES} samples were cached",
        hits[1]
    );
}

/// Each replica learns its part of the cores that the reader could use.
#[test]
fn replicas_know_the_demand_of_their_readers() {
    // With one thread the gateways do not have the CPUs of this host, as they would not in the field.
    let replicas = Replicas::with_flags(2, many_photos(256), &["--threads=1"]);
    run(async {
        let reader = replicas.reader(PIPELINE).mode(Mode::Auto).max_expand(100.0);
        let mut reader = reader.build().await.unwrap();
        let _batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
    });
    let demand = [0, 1].map(|number| replicas.gateway(number).metric("pushdown_demand_cores").unwrap());
    assert!(demand.iter().all(|cores| *cores > 0.0), "{demand:?}");
}

/// With few samples in flight, fewer replicas: the same ones for all ranks.
#[test]
fn a_reader_with_few_samples_in_flight_uses_fewer_replicas() {
    let replicas = Replicas::new(3, many_photos(96));
    run(async {
        let mut used = Vec::new();
        for rank in 0..2 {
            // 64 samples are enough for two.
            let reader = replicas.reader(PIPELINE).batch_size(8).requests(8).rank(Rank {
                index: rank,
                world: 2,
            });
            let mut reader = reader.build().await.unwrap();
            let _batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            let delivered = delivered(&reader.monitor().replicas());
            let of_rank: Vec<bool> = delivered.iter().map(|samples| *samples > 0).collect();
            assert_eq!(
                of_rank.iter().filter(|is_used| **is_used).count(),
                2,
                "{delivered:?}"
            );
            used.push(of_rank);
        }
        assert_eq!(used[0], used[1]);
    });
}
