//! Whole data sets as objects of their own: the same bytes whoever makes them, however often a run is stopped.

mod losses;
mod rights;

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use pushdown::Limits;
use pushdown_client::{
    ErrorKind,
    materialize::{
        Estimate, LabelType, LabelValues, Labels, Manifest, Materialize, Materialized, PartFormat,
    },
    store::{Credentials, RetryPolicy, Store, StoreBuilder},
};

use super::shards::ShardWorld;
use super::world::{ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, photos, read_rows, run};

const PIPELINE: &str = "decode | resize(32, 32) | encode(png)";
const SOURCE: &str = "train/";
const PART_SAMPLES: NonZeroU32 = NonZeroU32::new(5).unwrap();

/// Photos in the folders of two classes.
fn classified(count: usize) -> Objects {
    let photos: Vec<_> = photos().into_iter().collect();
    let photos = photos.iter().cycle().take(count).enumerate();
    let keyed = photos.map(|(number, (name, bytes))| {
        let class = if number % 3 == 0 { "cat" } else { "dog" };
        (format!("{SOURCE}{class}/{number:03}.{name}"), bytes.clone())
    });
    keyed.collect()
}

fn settings(endpoint: &str) -> StoreBuilder {
    Store::builder()
        .endpoint(endpoint)
        .region("us-east-1")
        .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
        .retry(RetryPolicy {
            attempts: 3,
            ..RetryPolicy::default()
        })
}

fn store(world: &World) -> Store {
    run(settings(&world.endpoint()).build()).unwrap()
}

fn job(store: &Store, pipeline: &str, format: PartFormat, target: &str) -> Materialize {
    Materialize::new(store.clone(), BUCKET, SOURCE, pipeline, format)
        .to(BUCKET, target)
        .samples_per_part(PART_SAMPLES)
}

fn done(job: Materialize) -> Materialized {
    run(job.run()).unwrap()
}

fn refused(job: Materialize) -> pushdown_client::Error {
    run(job.run()).unwrap_err()
}

/// All objects under a prefix, by their names after it.
fn objects_under(store: &Store, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    objects_in(store, BUCKET, prefix)
}

fn objects_in(store: &Store, bucket: &str, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    run(async {
        let listed = store.list_objects(bucket, prefix).await.unwrap();
        let mut objects = BTreeMap::new();
        for object in listed.iter() {
            let bytes = store.get(bucket, object.key, &Limits::default()).await.unwrap();
            let name = object.key.strip_prefix(prefix).unwrap();
            objects.insert(name.to_owned(), bytes.to_vec());
        }
        objects
    })
}

fn manifest(objects: &BTreeMap<String, Vec<u8>>) -> Manifest {
    serde_json::from_slice(&objects["_manifest.json"]).unwrap()
}

/// The values of the parts are those of a reader of the objects, and so are their names and labels.
#[test]
fn parts_have_the_values_of_a_reader() {
    let world = World::with_objects(classified(12));
    let store = store(&world);
    let written = done(job(&store, PIPELINE, PartFormat::Wds, "small/").label_folders());
    assert_eq!(
        (written.samples, written.parts, written.parts_written),
        (12, 3, 3)
    );
    let expected = read_rows(world.reader(PIPELINE).prefix(SOURCE).seed(1).shuffle(false));
    let target = objects_under(&store, "small/");
    let shards = target.iter().filter(|(name, _)| name.starts_with("part-"));
    let mut members = Vec::new();
    for (_, bytes) in shards {
        let mut walk = pushdown::shard::EntryCursor::walk(pushdown::shard::ShardLimits::default());
        walk.push(bytes.clone().into());
        while let Some(member) = walk.next_member().unwrap() {
            let content = member.range.content();
            let content = usize::try_from(content.start).unwrap()..usize::try_from(content.end).unwrap();
            members.push((member.name, bytes[content].to_vec()));
        }
    }
    assert_eq!(members.len(), 24, "a value and a label each");
    for (row, pair) in expected.iter().zip(members.chunks(2)) {
        let [(value_name, value), (label_name, label)] = pair else {
            panic!("expected a value and a label, found {pair:?}")
        };
        let Ok(pushdown::Sample::Bytes(bytes)) = &row.value else {
            panic!("expected bytes")
        };
        assert_eq!(value, bytes, "{}", row.key);
        let extension = |name: &str| name.rsplit('.').next().map(str::to_owned);
        let extensions = (extension(value_name), extension(label_name));
        assert_eq!(extensions, (Some("png".to_owned()), Some("cls".to_owned())));
        let class = row.key.strip_prefix(SOURCE).unwrap().split('/').next().unwrap();
        assert_eq!(label, if class == "cat" { b"0" } else { b"1" }, "{}", row.key);
        assert!(value_name.starts_with(class), "{value_name}");
    }
    let manifest = manifest(&target);
    assert_eq!(
        (manifest.samples, manifest.errors, manifest.parts.len()),
        (12, 0, 3)
    );
    let names = ["cat", "dog"].map(str::to_owned).to_vec();
    assert_eq!(manifest.recipe.label, Some(LabelType::Class { names }));
    assert_eq!(target.len(), 5, "parts, recipe and manifest: {:?}", target.keys());
}

/// A second run writes nothing, and this host makes the same bytes as a gateway, whatever the format and the values.
#[test]
fn equal_recipes_give_equal_bytes() {
    let world = World::with_objects(classified(11));
    let store = store(&world);
    for (number, (pipeline, format)) in [
        (PIPELINE, PartFormat::Wds),
        (PIPELINE, PartFormat::Parquet),
        (
            "decode | resize(8, 8) | to_float | cast(f16)",
            PartFormat::Parquet,
        ),
        ("decode | resize(8, 8) | to_float", PartFormat::Wds),
        (
            "decode | random_resized_crop(8, 8) | to_tensor",
            PartFormat::Parquet,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let (remote, local) = (format!("remote-{number}/"), format!("local-{number}/"));
        let written = done(job(&store, pipeline, format, &remote).seed(3).label_folders());
        assert_eq!(
            (written.parts_written, written.errors.len()),
            (3, 0),
            "{pipeline}"
        );
        let first = objects_under(&store, &remote);
        let again = done(job(&store, pipeline, format, &remote).seed(3).label_folders());
        assert_eq!(
            (again.samples, again.parts, again.parts_written),
            (11, 3, 0),
            "{pipeline}"
        );
        assert_eq!(objects_under(&store, &remote), first);
        done(
            job(&store, pipeline, format, &local)
                .seed(3)
                .label_folders()
                .local(),
        );
        let by_host = objects_under(&store, &local);
        assert!(
            first == by_host,
            "{pipeline}: {:?} {:?}",
            first.keys(),
            by_host.keys()
        );
    }
}

/// Members of shards come with the members that are their further columns, from a gateway and from this host.
#[test]
fn members_of_shards_give_equal_bytes() {
    let photos: Vec<_> = photos().into_values().collect();
    let shards = ShardWorld::new(&photos, 7);
    let store = store(&shards.world);
    let samples = shards.samples(&["cls", "json"]);
    for format in PartFormat::ALL {
        let job = |target: &str| {
            Materialize::new(store.clone(), BUCKET, "train-", PIPELINE, format)
                .to(BUCKET, format!("{target}-{format}/"))
                .samples_per_part(PART_SAMPLES)
                .objects(samples.clone())
        };
        let written = done(job("remote"));
        assert_eq!(written.samples, photos.len() as u64);
        done(job("local").local());
        let (remote, local) = (format!("remote-{format}/"), format!("local-{format}/"));
        assert!(
            objects_under(&store, &local) == objects_under(&store, &remote),
            "{format}"
        );
        let error = |job: Materialize| {
            let replaced = [shards.shards[0].bytes.as_slice(), &[0; 512]].concat();
            shards.world.put("train-000000.tar", &replaced);
            let error = refused(job).to_string();
            shards.world.put("train-000000.tar", &shards.shards[0].bytes);
            error
        };
        for job in [job("new"), job("new").local()] {
            let error = error(job);
            assert!(
                error.contains("the shard `train-000000.tar` was replaced after it was indexed"),
                "{error}"
            );
        }
    }
}

/// A bad sample is named, and is in no part; a run that finds the part in its target knows it again.
#[test]
fn bad_samples_are_named_by_every_run() {
    let mut objects = classified(9);
    objects.insert(format!("{SOURCE}cat/broken.jpg"), b"no photo".to_vec());
    objects.insert(format!("{SOURCE}dog/000.jpg"), Vec::new());
    let world = World::with_objects(objects);
    let store = store(&world);
    for format in PartFormat::ALL {
        let prefix = format!("{format}/");
        let written = done(job(&store, PIPELINE, format, &prefix));
        let names: Vec<_> = written.errors.iter().map(|bad| bad.name.as_str()).collect();
        assert_eq!(
            (written.samples, names),
            (9, vec!["cat/broken.jpg", "dog/000.jpg"])
        );
        let first = objects_under(&store, &prefix);
        assert_eq!(manifest(&first).errors, 2);
        // As if the client had ended before it wrote the manifest.
        delete(&world, &format!("{prefix}_manifest.json"));
        let again = done(job(&store, PIPELINE, format, &prefix));
        assert_eq!((again.parts_written, &again.errors), (0, &written.errors));
        assert_eq!(objects_under(&store, &prefix), first);
    }
}

/// A shard without members has no place for notes: it is made again.
#[test]
fn a_part_of_bad_samples_alone_is_made_again() {
    let mut objects = classified(5);
    objects.insert(format!("{SOURCE}zebra/broken.jpg"), b"no photo".to_vec());
    let world = World::with_objects(objects);
    let store = store(&world);
    for (format, expected) in [(PartFormat::Wds, 1), (PartFormat::Parquet, 0)] {
        let prefix = format!("{format}/");
        let written = done(job(&store, PIPELINE, format, &prefix));
        assert_eq!((written.samples, written.parts, written.errors.len()), (5, 2, 1));
        let first = objects_under(&store, &prefix);
        delete(&world, &format!("{prefix}_manifest.json"));
        let again = done(job(&store, PIPELINE, format, &prefix));
        assert_eq!(
            (again.parts_written, again.errors.len()),
            (expected, 1),
            "{format}"
        );
        assert_eq!(objects_under(&store, &prefix), first);
    }
}

/// An object that was replaced, and one that is gone, are listed again.
#[test]
fn objects_that_changed_are_listed_again() {
    let world = World::with_objects(classified(10));
    let store = store(&world);
    let listed = run(store.list_objects(BUCKET, SOURCE)).unwrap();
    let (replaced, gone) = (listed.key(1).to_owned(), listed.key(7).to_owned());
    let photo = photos().into_values().next_back().unwrap();
    world.put(&replaced, &photo);
    delete(&world, &gone);
    let written = done(job(&store, PIPELINE, PartFormat::Wds, "old-list/").objects(listed));
    assert_eq!((written.samples, written.vanished), (9, vec![gone]));
    // With a list of now, the first part has the same bytes. The second one has lost its neighbour.
    done(job(&store, PIPELINE, PartFormat::Wds, "new-list/"));
    let (old, new) = (
        objects_under(&store, "old-list/"),
        objects_under(&store, "new-list/"),
    );
    let first = |objects: &BTreeMap<String, Vec<u8>>| {
        objects
            .iter()
            .find(|(name, _)| name.starts_with("part-00000"))
            .unwrap()
            .1
            .clone()
    };
    assert_eq!(first(&old), first(&new));
}

/// New objects need `append`, and are in parts of their own; the parts of objects that are gone stay.
#[test]
fn new_objects_are_appended() {
    let world = World::with_objects(classified(7));
    let store = store(&world);
    let target = || job(&store, PIPELINE, PartFormat::Wds, "out/");
    done(target());
    let first = objects_under(&store, "out/");
    let photo = photos().into_values().next().unwrap();
    for name in ["aardvark", "zebra"] {
        world.put(&format!("{SOURCE}{name}/1.jpg"), &photo);
    }
    let error = refused(target());
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(
        error
            .to_string()
            .contains("2 objects are new, such as `train/aardvark/1.jpg`"),
        "{error}"
    );
    let appended = done(target().append());
    assert_eq!(
        (appended.samples, appended.parts, appended.parts_written),
        (9, 3, 1)
    );
    let second = objects_under(&store, "out/");
    for (name, bytes) in first.iter().filter(|(name, _)| name.starts_with("part-")) {
        assert_eq!(&second[name], bytes, "{name}");
    }
    delete(&world, &format!("{SOURCE}zebra/1.jpg"));
    let kept = done(target());
    assert_eq!(
        (kept.samples, kept.parts_written, kept.vanished),
        (9, 0, vec![format!("{SOURCE}zebra/1.jpg")])
    );
    assert_eq!(objects_under(&store, "out/"), second);
}

/// A target has one recipe, and nothing else.
#[test]
fn other_recipes_and_objects_are_refused() {
    let world = World::with_objects(classified(6));
    let store = store(&world);
    done(job(&store, PIPELINE, PartFormat::Wds, "out/"));
    let before = objects_under(&store, "out/");
    for (job, expected) in [
        (
            job(
                &store,
                "decode | resize(8, 8) | encode(png)",
                PartFormat::Wds,
                "out/",
            ),
            "expected the pipeline",
        ),
        (
            job(&store, PIPELINE, PartFormat::Wds, "out/").label_folders(),
            "expected the labels",
        ),
        (
            job(&store, PIPELINE, PartFormat::Parquet, "out/"),
            "use an empty target",
        ),
        (
            job(&store, PIPELINE, PartFormat::Wds, "train/out/"),
            "is inside of the data set",
        ),
        (
            job(&store, PIPELINE, PartFormat::Wds, ""),
            "is inside of the data set",
        ),
        (
            job(
                &store,
                "decode | random_crop(8, 8) | encode(png)",
                PartFormat::Wds,
                "new/",
            ),
            "set a seed",
        ),
        (job(&store, "decode", PartFormat::Parquet, "new/"), "encode"),
        (
            job(&store, "select(columns=[a])", PartFormat::Parquet, "new/"),
            "table",
        ),
        (
            Materialize::new(store.clone(), BUCKET, SOURCE, PIPELINE, PartFormat::Wds),
            "no target is set",
        ),
        (
            job(&store, PIPELINE, PartFormat::Wds, "new/").samples_per_part(NonZeroU32::new(4097).unwrap()),
            "expected at most 4096",
        ),
        (
            Materialize::new(store.clone(), BUCKET, "none/", PIPELINE, PartFormat::Wds).to(BUCKET, "new/"),
            "no objects found",
        ),
    ] {
        let error = refused(job);
        assert!(
            error.to_string().contains(expected),
            "expected {expected}, found {error}"
        );
    }
    world.put("foreign/notes.txt", b"1");
    let error = refused(job(&store, PIPELINE, PartFormat::Wds, "foreign/"));
    assert!(error.to_string().contains("found `foreign/notes.txt`"), "{error}");
    assert_eq!(objects_under(&store, "out/"), before);
    assert!(objects_under(&store, "new/").is_empty());
}

/// An object with the name of a part that no run has written is named, and stays.
#[test]
fn foreign_parts_are_refused() {
    let world = World::with_objects(classified(6));
    let store = store(&world);
    for format in PartFormat::ALL {
        let prefix = format!("{format}/");
        done(job(&store, PIPELINE, format, &prefix));
        delete(&world, &format!("{prefix}_manifest.json"));
        let mut names = objects_under(&store, &prefix).into_keys();
        let part = names.rfind(|name| name.starts_with("part-")).unwrap();
        for foreign in [b"".as_slice(), b"no part"] {
            world.put(&format!("{prefix}{part}"), foreign);
            let error = refused(job(&store, PIPELINE, format, &prefix));
            let expected = format!("s3://{BUCKET}/{prefix}{part} is no part");
            assert!(error.to_string().contains(&expected), "{error}");
            assert_eq!(objects_under(&store, &prefix)[&part], foreign);
        }
    }
}

/// Of two runs of different recipes that start at once, one has the target.
#[test]
fn one_of_two_recipes_has_the_target() {
    let world = World::with_objects(classified(6));
    let store = store(&world);
    let other = "decode | resize(8, 8) | encode(png)";
    let (first, second) = run(async {
        let first = tokio::spawn(job(&store, PIPELINE, PartFormat::Wds, "out/").run());
        let second = tokio::spawn(job(&store, other, PartFormat::Wds, "out/").run());
        (first.await.unwrap(), second.await.unwrap())
    });
    assert_eq!(
        usize::from(first.is_ok()) + usize::from(second.is_ok()),
        1,
        "{first:?} {second:?}"
    );
    let target = objects_under(&store, "out/");
    let size = if first.is_ok() { "32" } else { "8" };
    let pipeline = manifest(&target).recipe.pipeline;
    assert!(pipeline.contains(size), "{pipeline}");
    // Parts of one recipe alone.
    assert_eq!(target.len(), 4, "{:?}", target.keys());
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::with_objects(classified(12));
    let store = store(&world);
    let estimate = || run(job(&store, PIPELINE, PartFormat::Wds, "out/").estimate()).unwrap();
    let Estimate {
        samples,
        samples_per_part,
        parts,
        parts_done,
        bytes,
        cpu_seconds,
        ..
    } = estimate();
    assert_eq!((samples, samples_per_part, parts, parts_done), (12, 5, 3, 0));
    assert!(cpu_seconds > 0.0);
    assert!(objects_under(&store, "out/").is_empty());
    let written = done(job(&store, PIPELINE, PartFormat::Wds, "out/"));
    assert!(
        bytes > written.bytes / 4 && bytes < written.bytes * 4,
        "{bytes} {}",
        written.bytes
    );
    assert_eq!(estimate().parts_done, 3);
}

#[test]
fn progress_ends_at_all_samples() {
    let world = World::with_objects(classified(12));
    let store = store(&world);
    let (samples, parts) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (last_samples, last_parts) = (Arc::clone(&samples), Arc::clone(&parts));
    let observed = job(&store, PIPELINE, PartFormat::Wds, "out/").on_progress(move |progress| {
        assert_eq!((progress.samples, progress.parts), (12, 3));
        assert!(progress.samples_done <= 12);
        last_samples.fetch_max(progress.samples_done, SeqCst);
        last_parts.fetch_max(progress.parts_done, SeqCst);
    });
    done(observed);
    assert_eq!((samples.load(SeqCst), parts.load(SeqCst)), (12, 3));
}

/// Labels of every type come with the objects that are given.
#[test]
fn labels_are_checked() {
    let world = World::with_objects(classified(4));
    let store = store(&world);
    let objects = run(store.list_objects(BUCKET, SOURCE)).unwrap();
    let labels = Labels::new(LabelType::Float, LabelValues::Float(vec![0.5; 4])).unwrap();
    let labelled = |labels: Labels, target: &str| {
        job(&store, PIPELINE, PartFormat::Parquet, target)
            .objects(objects.clone())
            .labels(labels)
    };
    assert_eq!(done(labelled(labels, "out/")).samples, 4);
    let short = Labels::new(LabelType::Int, LabelValues::Int(vec![1; 3])).unwrap();
    assert!(
        refused(labelled(short, "new/"))
            .to_string()
            .contains("expected 4, one for each object, found 3")
    );
    let wrong = Labels::new(LabelType::Text, LabelValues::Int(vec![1]));
    assert!(wrong.unwrap_err().to_string().contains("expected a text"));
}

fn delete(world: &World, key: &str) {
    let listen = world.gateway.listen();
    let target = format!("/{BUCKET}/{key}");
    let request = pushdown_testkit::Request::new("DELETE", &target).header("Host", &listen.to_string());
    let keys = pushdown_testkit::Keys::new(ACCESS_KEY, SECRET_KEY);
    let answer = keys
        .sign(request, pushdown_testkit::Payload::Signed)
        .unwrap()
        .send(listen)
        .unwrap();
    assert!(answer.status < 300, "{key}: {}", answer.text());
}
