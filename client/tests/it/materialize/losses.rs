//! Runs that lose their client, their gateway, or their rights: the next run ends with the bytes of an undisturbed one.

use std::{sync::Once, time::Duration};

use pushdown_testkit::{Gateway, Keys, Payload, Replica, Request, Weed, features_relay, find_gateway};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;

/// Moments of each kind of loss in `.ci/run`, and in the full tests.
const FEW_MOMENTS: usize = 1;
const MANY_MOMENTS: usize = 20;
const SAMPLES: usize = 60;
/// Values that take some time.
const SLOW_PIPELINE: &str = "decode | resize(400, 400) | resize(64, 64) | encode(png)";

/// A store, and a gateway without an upstream beside it.
struct Lab {
    world: World,
    spec: Replica,
    gateway: Option<Gateway>,
    store: Store,
}

impl Lab {
    fn new(objects: Objects) -> Self {
        let world = World::with_objects(objects);
        let spec = Replica::list(1).unwrap().remove(0);
        let endpoint = format!("http://{}", world.gateway.store().unwrap());
        let gateway = format!("http://{}", spec.listen);
        let store = run(settings(&endpoint).gateway(gateway).build()).unwrap();
        let mut lab = Self {
            world,
            spec,
            gateway: None,
            store,
        };
        lab.start();
        lab
    }

    fn start(&mut self) {
        let flags = vec![format!(
            "--allow-store=http://{}",
            self.world.gateway.store().unwrap()
        )];
        self.gateway = Some(self.spec.launch(&find_gateway().unwrap(), flags).unwrap());
    }

    fn job(&self, target: &str) -> Materialize {
        job(&self.store, SLOW_PIPELINE, PartFormat::Wds, target).label_folders()
    }

    /// A run that is disturbed after this time, and one after it.
    async fn disturbed(&mut self, moment: Duration, target: &str, loses_gateway: bool) {
        let running = tokio::spawn(self.job(target).run());
        tokio::time::sleep(moment).await;
        if loses_gateway {
            self.gateway = None;
            // The run ends with an error, or was faster.
            drop(running.await.unwrap());
            self.start();
        } else {
            running.abort();
            drop(running.await);
        }
        self.job(target).run().await.unwrap();
    }
}

fn disturb(moments: usize, loses_gateway: bool) {
    let mut lab = Lab::new(classified(SAMPLES));
    let undisturbed = done(lab.job("undisturbed/"));
    assert_eq!(undisturbed.parts, 12);
    let expected = objects_under(&lab.store, "undisturbed/");
    // This host makes the same bytes.
    done(lab.job("local/").local());
    assert!(
        objects_under(&lab.store, "local/") == expected,
        "this host makes other bytes"
    );
    let mut random = StdRng::seed_from_u64(11);
    for number in 0..moments {
        let longest = undisturbed.seconds * 1.1;
        let moment = Duration::from_secs_f64(random.random_range(0.0..longest));
        let target = format!("disturbed-{number}/");
        run(lab.disturbed(moment, &target, loses_gateway));
        let found = objects_under(&lab.store, &target);
        assert!(found == expected, "{moment:?}: {:?}", found.keys());
    }
}

#[test]
fn a_run_without_its_client_goes_on() {
    disturb(FEW_MOMENTS, false);
}

#[test]
fn a_run_without_its_gateway_goes_on() {
    disturb(FEW_MOMENTS, true);
}

#[test]
#[ignore = "a minute"]
fn runs_go_on_after_losses_at_random_moments() {
    disturb(MANY_MOMENTS, false);
    disturb(MANY_MOMENTS, true);
}

/// Two replicas of a gateway, of which one states these versions.
fn two_replicas(world: &World, versions: &str) -> (Store, Vec<Option<Gateway>>) {
    let mut specs = Replica::list(2).unwrap();
    specs[1].stated_versions = versions.to_owned();
    let endpoint = format!("http://{}", world.gateway.store().unwrap());
    let urls: Vec<String> = specs
        .iter()
        .map(|spec| format!("http://{}", spec.listen))
        .collect();
    let launch = |spec: &Replica| {
        Some(
            spec.launch(&find_gateway().unwrap(), [format!("--allow-store={endpoint}")])
                .unwrap(),
        )
    };
    let gateways = specs.iter().map(launch).collect();
    let store = run(settings(&endpoint).gateway(urls.join(",")).build()).unwrap();
    (store, gateways)
}

/// The others make the parts of a replica that is lost, within the same run.
#[test]
fn another_replica_makes_the_parts_of_a_lost_one() {
    let world = World::with_objects(classified(SAMPLES));
    let (store, mut gateways) = two_replicas(&world, "");
    let job = |target: &str| job(&store, SLOW_PIPELINE, PartFormat::Wds, target);
    done(job("undisturbed/"));
    let counted = job("disturbed/");
    let written = run(async {
        let running = tokio::spawn(counted.run());
        tokio::time::sleep(Duration::from_millis(200)).await;
        gateways[0] = None;
        running.await.unwrap().unwrap()
    });
    assert_eq!((written.samples, written.parts), (60, 12));
    assert_eq!(
        objects_under(&store, "disturbed/"),
        objects_under(&store, "undisturbed/")
    );
}

/// A replica that computes other values than the recipe says makes no parts; if no other one is left, the run says so.
#[test]
fn parts_are_made_by_one_engine() {
    let world = World::with_objects(classified(20));
    let (store, mut gateways) = two_replicas(&world, "resample=99");
    let target = |name: &str| job(&store, PIPELINE, PartFormat::Wds, name);
    // The recipe of this host: one of both gateways has its engine.
    done(target("expected/").local());
    let expected = objects_under(&store, "expected/");
    for name in ["out/", "rest/"] {
        world.put(&format!("{name}_recipe.json"), &expected["_recipe.json"]);
    }
    assert_eq!(done(target("out/")).parts_written, 4);
    assert_eq!(objects_under(&store, "out/"), expected);
    gateways[0] = None;
    let error = refused(target("rest/"));
    assert!(
        error.to_string().contains("resample=99") || error.is_retryable(),
        "{error}"
    );
    assert_eq!(objects_under(&store, "rest/").len(), 1);
}

/// At a store that ignores conditions, another run may replace the recipe: the one that has lost leaves none of its parts.
#[test]
fn a_run_that_has_lost_its_target_leaves_nothing() {
    let lab = Lab::new(classified(SAMPLES));
    done(job(&lab.store, PIPELINE, PartFormat::Wds, "other/").local());
    let other = objects_under(&lab.store, "other/")
        .remove("_recipe.json")
        .unwrap();
    let error = run(async {
        let running = tokio::spawn(lab.job("out/").run());
        while lab
            .store
            .get(BUCKET, "out/_recipe.json", &Limits::default())
            .await
            .is_err()
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // As another run does.
        let mut recipe = lab.store.upload(BUCKET, "out/_recipe.json");
        recipe.write(&other).await.unwrap();
        recipe.finish().await.unwrap();
        running.await.unwrap().unwrap_err()
    });
    assert!(error.to_string().contains("expected the pipeline"), "{error}");
    let left = objects_under(&lab.store, "out/");
    assert_eq!(left.keys().collect::<Vec<_>>(), ["_recipe.json"]);
}

/// A store that is no gateway, and one that is older.
#[test]
fn parts_need_a_gateway_that_can_make_them() {
    let world = World::with_objects(classified(3));
    let endpoint = format!("http://{}", world.gateway.store().unwrap());
    let plain = run(settings(&endpoint).build()).unwrap();
    let error = refused(job(&plain, PIPELINE, PartFormat::Wds, "out/"));
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    assert!(error.to_string().contains("--local"), "{error}");
    let (older, _) = features_relay(world.gateway.listen(), "cache, deliver, families").unwrap();
    let old = run(settings(&format!("http://{}", older.address())).build()).unwrap();
    let error = refused(job(&old, PIPELINE, PartFormat::Wds, "out/"));
    assert_eq!(error.kind(), ErrorKind::NotAGateway, "{error}");
    assert!(error.to_string().contains("the feature `parts`"), "{error}");
    // Without a gateway this host can.
    assert_eq!(
        done(job(&plain, PIPELINE, PartFormat::Wds, "out/").local()).samples,
        3
    );
}

/// The text of the store is the error, and the run goes on once its cause is gone.
#[test]
fn a_target_that_cannot_be_written_is_named() {
    let lab = Lab::new(classified(6));
    let elsewhere =
        Materialize::new(lab.store.clone(), BUCKET, SOURCE, PIPELINE, PartFormat::Wds).to("missing", "out/");
    let error = run(elsewhere.run()).unwrap_err();
    assert!(
        error.to_string().contains("NoSuchBucket") && error.to_string().contains("missing"),
        "{error}"
    );
}

/// A store that is soon full, beside the one of the data set, and a gateway that may use both.
struct SmallTarget {
    weed: Arc<Weed>,
    keys: Keys,
    source: Store,
    target: Store,
    _world: World,
    _gateway: Gateway,
}

impl SmallTarget {
    fn new() -> Self {
        let world = World::with_objects(classified(SAMPLES));
        let keys = Keys::new("target", "secret-of-the-target");
        let weed = Weed::launch_small(&keys).unwrap();
        let endpoint = format!("http://{}", world.gateway.store().unwrap());
        let small = format!("http://{}", weed.address());
        let spec = Replica::list(1).unwrap().remove(0);
        let flags = [&endpoint, &small].map(|store| format!("--allow-store={store}"));
        let gateway = spec.launch(&find_gateway().unwrap(), flags).unwrap();
        let gateway_url = format!("http://{}", spec.listen);
        let target = settings(&small).credentials(Credentials::new(&keys.access, &keys.secret));
        Self {
            source: run(settings(&endpoint).gateway(&gateway_url).build()).unwrap(),
            target: run(target.gateway(&gateway_url).build()).unwrap(),
            weed: Arc::new(weed),
            keys,
            _world: world,
            _gateway: gateway,
        }
    }

    fn send(&self, method: &str, path: &str, body: &[u8]) -> u16 {
        send(&self.weed, &self.keys, method, path, body)
    }

    /// Deletes a bucket with all of its objects.
    fn delete_bucket(&self, bucket: &str) {
        let objects = run(self.target.list_objects(bucket, "")).unwrap();
        for object in objects.iter() {
            assert_eq!(
                self.send("DELETE", &format!("/{bucket}/{}", object.key), b""),
                204
            );
        }
        assert_eq!(self.send("DELETE", &format!("/{bucket}"), b""), 204);
    }
}

/// Writes objects into a bucket until one is refused.
fn fill(weed: &Weed, keys: &Keys, bucket: &str) {
    let content = vec![7; 300_000];
    let mut paths = (0..).map(|number| format!("/{bucket}/filling/{number}"));
    paths.find(|path| send(weed, keys, "PUT", path, &content) != 200);
}

fn send(weed: &Weed, keys: &Keys, method: &str, path: &str, body: &[u8]) -> u16 {
    let request = Request::new(method, path)
        .header("Host", &weed.address().to_string())
        .body(body);
    let signed = keys.sign(request, Payload::Signed).unwrap();
    signed.send(weed.address()).unwrap().status
}

/// A real store that is full in mid-run: the object is named, what is in the target stays, and the run goes on once there is room.
#[test]
fn a_full_target_is_named_and_the_run_goes_on() {
    let small = SmallTarget::new();
    done(job(&small.source, PIPELINE, PartFormat::Wds, "expected/"));
    let expected = objects_under(&small.source, "expected/");
    for (bucket, is_local) in [("by-gateway", false), ("by-host", true)] {
        let job = || {
            let job = job(&small.source, PIPELINE, PartFormat::Wds, "out/")
                .to(bucket, "out/")
                .target_store(small.target.clone());
            if is_local { job.local() } else { job }
        };
        assert_eq!(small.send("PUT", &format!("/{bucket}"), b""), 200);
        let parts = expected.iter().filter(|(name, _)| name.starts_with("part-"));
        let before = parts.take(3).chain(expected.get_key_value("_recipe.json"));
        let before: BTreeMap<_, _> = before
            .map(|(name, content)| (name.clone(), content.clone()))
            .collect();
        for (name, content) in &before {
            assert_eq!(small.send("PUT", &format!("/{bucket}/out/{name}"), content), 200);
        }
        assert_eq!(small.send("PUT", "/spare", b""), 200);
        fill(&small.weed, &small.keys, "spare");
        let (weed, keys, once) = (Arc::clone(&small.weed), small.keys.clone(), Once::new());
        let fill = move |_| once.call_once(|| fill(&weed, &keys, bucket));
        let error = refused(job().on_progress(fill)).to_string();
        assert!(
            error.contains(&format!("s3://{bucket}/out/part-0")) && error.contains("InternalError"),
            "{error}"
        );
        assert!(objects_in(&small.target, bucket, "out/") == before);
        small.delete_bucket("spare");
        assert_eq!(done(job()).parts_written, 9);
        assert!(objects_in(&small.target, bucket, "out/") == expected);
        small.delete_bucket(bucket);
    }
}
