//! The disk of the result cache: restarts, damage, and full or missing disks. At worst a value is computed again.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, CacheHints, CacheStatus};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, eventually, signed_by};

use super::{PIPELINE, expected, launch, origin, photo, pixels};

const OBJECTS: usize = 40;

fn path(index: usize) -> String {
    format!("/photos/{index:03}.jpg")
}

fn store() -> Result<(PolicyStore, Vec<u8>)> {
    let store = PolicyStore::start()?;
    let photo = photo(600, 400, "jpeg");
    (0..OBJECTS).for_each(|index| store.put(&path(index), &format!("\"{index}\""), photo.clone()));
    let value = pixels(expected(&photo, PIPELINE));
    Ok((store, value))
}

fn gateway(store: &PolicyStore, folder: &Path) -> Result<Gateway> {
    launch(
        store,
        &[
            &format!("--cache-dir={}", folder.display()),
            "--cache-disk=256MiB",
        ],
    )
}

fn get(gateway: &Gateway, index: usize, pipeline: &str) -> Result<Response> {
    let request = Request::new("GET", &path(index))
        .header("Host", "store")
        .header("x-pushdown-pipeline", pipeline)
        .header("Accept", "application/octet-stream");
    let answer = signed_by(request, "first", GOOD_SIGNATURE).send(gateway.listen())?;
    ensure!(answer.status == 200, "{}", answer.text());
    Ok(answer)
}

/// Reads all objects, checks their values, and returns how many came from the disk.
fn read_all(gateway: &Gateway, value: &[u8]) -> Result<usize> {
    let mut hits = 0;
    for index in 0..OBJECTS {
        let answer = get(gateway, index, PIPELINE)?;
        ensure!(answer.body == value, "{index}");
        hits += usize::from(origin(&answer)? == "disk");
    }
    Ok(hits)
}

/// Values are written in the background.
fn read_until_cached(gateway: &Gateway, value: &[u8]) -> Result<usize> {
    eventually("values are on the disk", Duration::from_secs(30), || {
        let hits = read_all(gateway, value)?;
        Ok((hits > 0).then_some(hits))
    })
}

#[test]
fn values_are_found_again_after_a_restart() -> Result<()> {
    let ((store, value), folder) = (store()?, tempfile::tempdir()?);
    let mut first = gateway(&store, folder.path())?;
    read_until_cached(&first, &value)?;
    let cached = read_all(&first, &value)?;
    first.terminate()?;
    first.wait(Duration::from_secs(30))?;
    let second = gateway(&store, folder.path())?;
    let found = read_all(&second, &value)?;
    ensure!(found >= cached / 2, "{found} of {cached} values found again");
    Ok(())
}

/// The state of the only data set.
fn set_status(gateway: &Gateway) -> Result<serde_json::Value> {
    let status: serde_json::Value = serde_json::from_slice(&gateway.page("/status.json")?.body)?;
    ensure!(
        status["cache"]["sets"].as_array().map(Vec::len) == Some(1),
        "{status}"
    );
    Ok(status["cache"]["sets"][0].clone())
}

/// Reads all objects, and returns how many values came from the disk.
fn count_hits(gateway: &Gateway, pipeline: &str) -> Result<usize> {
    let mut hits = 0;
    for index in 0..OBJECTS {
        hits += usize::from(origin(&get(gateway, index, pipeline)?)? == "disk");
    }
    Ok(hits)
}

/// Values of half of the disk. The values of another set would fill all of it, over those of the first one, if these counted for
/// nobody until they are asked for.
#[test]
fn values_of_an_earlier_run_have_their_quota_at_once() -> Result<()> {
    let pipelines = ["decode | resize(short=850)", "decode | resize(short=851)"];
    let ((store, _), folder) = (store()?, tempfile::tempdir()?);
    let mut first = gateway(&store, folder.path())?;
    eventually("all values are on the disk", Duration::from_mins(1), || {
        Ok((count_hits(&first, pipelines[0])? == OBJECTS).then_some(()))
    })?;
    let before = set_status(&first)?;
    first.terminate()?;
    first.wait(Duration::from_secs(30))?;
    let second = gateway(&store, folder.path())?;
    let status = set_status(&second)?;
    for field in [
        "set",
        "tenants",
        "objects",
        "memory_bytes",
        "disk_bytes",
        "requests",
    ] {
        assert_eq!(status[field], before[field], "{field}");
    }
    assert_eq!(status["cached_ratio"], 1.0, "{status}");
    count_hits(&second, pipelines[1])?;
    assert_eq!(count_hits(&second, pipelines[0])?, OBJECTS);
    Ok(())
}

/// The file with the quotas is lost: the hits say what the set needs.
#[test]
fn values_of_an_earlier_run_without_quotas_count_when_they_are_used() -> Result<()> {
    // So many steps that a hit is cheaper on a slow machine, too.
    let pipeline = "decode | resize(short=1500) | resize(short=64) | center_crop(48)";
    let ((store, _), folder) = (store()?, tempfile::tempdir()?);
    let mut first = gateway(&store, folder.path())?;
    eventually("all values are on the disk", Duration::from_mins(1), || {
        Ok((count_hits(&first, pipeline)? == OBJECTS).then_some(()))
    })?;
    first.terminate()?;
    first.wait(Duration::from_secs(30))?;
    fs::remove_file(folder.path().join("shares.json"))?;
    let second = gateway(&store, folder.path())?;
    assert_eq!(count_hits(&second, pipeline)?, OBJECTS);
    let status = set_status(&second)?;
    ensure!(status["disk_bytes"].as_f64() > Some(0.0), "{status}");
    ensure!(status["saved_seconds"].as_f64() > Some(0.0), "{status}");
    Ok(())
}

/// A gateway that is killed leaves the quotas of about a second before.
#[test]
fn a_killed_gateway_leaves_its_quotas() -> Result<()> {
    let ((store, value), folder) = (store()?, tempfile::tempdir()?);
    let first = gateway(&store, folder.path())?;
    read_until_cached(&first, &value)?;
    eventually("the quotas are saved", Duration::from_secs(30), || {
        let saved = fs::read_to_string(folder.path().join("shares.json")).unwrap_or_default();
        Ok(saved
            .contains(&format!("\"total_requests\":{}", set_status(&first)?["requests"]))
            .then_some(()))
    })?;
    let before = set_status(&first)?;
    drop(first);
    let second = gateway(&store, folder.path())?;
    assert_eq!(set_status(&second)?["disk_bytes"], before["disk_bytes"]);
    Ok(())
}

#[test]
fn damaged_values_are_computed_again() -> Result<()> {
    let ((store, value), folder) = (store()?, tempfile::tempdir()?);
    let mut first = gateway(&store, folder.path())?;
    read_until_cached(&first, &value)?;
    first.terminate()?;
    first.wait(Duration::from_secs(30))?;
    let mut damaged = 0;
    for entry in fs::read_dir(folder.path())? {
        let path = entry?.path();
        let mut bytes = fs::read(&path)?;
        // Some entries of some kilobytes each, and not the index before them.
        for at in (10_000..bytes.len()).step_by(20_011) {
            if bytes[at] != 0 {
                bytes[at] ^= 0x10;
                damaged += 1;
            }
        }
        fs::write(&path, bytes)?;
    }
    ensure!(damaged > 0);
    let second = gateway(&store, folder.path())?;
    let found = read_all(&second, &value)?;
    ensure!(
        (1..OBJECTS).contains(&found),
        "{found} of {OBJECTS} values found again, {damaged} bytes damaged"
    );
    Ok(())
}

/// SIGKILL in the middle of writing.
#[test]
fn a_killed_gateway_serves_right_values_afterwards() -> Result<()> {
    let ((store, value), folder) = (store()?, tempfile::tempdir()?);
    for _ in 0..3 {
        let gateway = gateway(&store, folder.path())?;
        // The last values are still being written.
        read_until_cached(&gateway, &value)?;
        drop(gateway);
    }
    let gateway = gateway(&store, folder.path())?;
    let found = read_all(&gateway, &value)?;
    ensure!(found > 0, "no value was found again");
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error_at_start() -> Result<()> {
    let (store, parent) = (PolicyStore::start()?, tempfile::tempdir()?);
    let within = |name: &str| parent.path().join(name);
    fs::write(within("file"), "")?;
    fs::create_dir_all(within("open/to/all"))?;
    fs::set_permissions(within("open/to/all"), Permissions::from_mode(0o777))?;
    fs::create_dir(within("target"))?;
    symlink(within("target"), within("link"))?;
    fs::create_dir(within("planted"))?;
    symlink(within("file"), within("planted/foyer-storage-direct-fs-00000000"))?;
    for (folder, fault) in [
        ("file/cache", "file/cache: "),
        ("file", "expected a folder, found a file"),
        ("open/to/all", "invalid mode: expected 0700, found 0777"),
        ("link", "expected a folder, found a symbolic link"),
        (
            "planted",
            "found a symbolic link, foyer-storage-direct-fs-00000000",
        ),
    ] {
        let error = launch(
            &store,
            &[
                &format!("--cache-dir={}", within(folder).display()),
                "--cache-disk=256MiB",
            ],
        );
        let error = error.err().context("the gateway started")?.to_string();
        ensure!(
            error.contains("cannot open the folder of the result cache") && error.contains(fault),
            "{folder}: {error}"
        );
    }
    ensure!(
        fs::read_to_string(within("file"))?.is_empty() && fs::read_dir(within("target"))?.next().is_none()
    );
    Ok(())
}

/// After a restart the gateway knows values, but not their objects: rows wait for their memory, and none fails.
#[test]
fn rows_continue_from_values_of_objects_that_are_unknown_after_a_restart() -> Result<()> {
    let text = "decode | resize(short=256) | random_crop(224)";
    let (store, photo) = (PolicyStore::start()?, photo(600, 400, "jpeg"));
    (0..OBJECTS).for_each(|index| store.put(&path(index), &format!("\"{index}\""), photo.clone()));
    let folder = tempfile::tempdir()?;
    let flags = [
        &format!("--cache-dir={}", folder.path().display()),
        "--cache-disk=256MiB",
        "--memory-budget=256MiB",
        "--queue-wait=60s",
    ];
    let mut first = launch(&store, &flags)?;
    eventually("values are on the disk", Duration::from_secs(30), || {
        let prefixes = rows(&first, text)?;
        Ok((prefixes > OBJECTS / 2).then_some(()))
    })?;
    first.terminate()?;
    first.wait(Duration::from_secs(30))?;
    let second = launch(&store, &flags)?;
    let prefixes = thread::scope(|scope| {
        let jobs: Vec<_> = (0..4).map(|_| scope.spawn(|| rows(&second, text))).collect();
        let prefixes = jobs
            .into_iter()
            .map(|job| job.join().ok().context("a job panicked")?);
        prefixes.sum::<Result<usize>>()
    })?;
    ensure!(prefixes > OBJECTS, "{prefixes} rows from the cache");
    Ok(())
}

/// Reads all objects as rows of one batch. Returns how many continued from a cached value.
fn rows(gateway: &Gateway, pipeline: &str) -> Result<usize> {
    let presign = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=first%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host";
    let samples = (0..OBJECTS).map(|index| BatchSample {
        etag: Some(format!("\"{index}\"")),
        ..BatchSample::new(path(index), GOOD_SIGNATURE)
    });
    let mut request = BatchRequest::new(pipeline.parse()?, presign, samples.collect());
    (request.seed, request.epoch) = (Some(1), Some(0));
    request.cache = Some(CacheHints {
        epochs: 9,
        samples: OBJECTS as u64,
    });
    let answer = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", "store")
        .body(serde_json::to_vec(&request)?)
        .send(gateway.listen())?;
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.into())?;
    reader.finish()?;
    ensure!(rows.len() == OBJECTS, "{} rows", rows.len());
    let mut prefixes = 0;
    for row in rows {
        row.value?;
        prefixes += usize::from(row.cache == CacheStatus::Prefix);
    }
    Ok(prefixes)
}
