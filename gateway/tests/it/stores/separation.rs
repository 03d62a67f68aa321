//! Two stores are two stores: nothing that a caller claims merges their objects. Tenants by bucket.

use anyhow::{Result, ensure};

use super::*;

#[test]
fn equal_paths_at_two_stores_are_two_objects() -> Result<()> {
    let stores = [PolicyStore::start()?, PolicyStore::start()?];
    let objects = [photo(400, 300, "jpeg"), photo(300, 400, "jpeg")];
    let mut flags = vec![MEMORY.to_owned()];
    for (store, object) in stores.iter().zip(&objects) {
        // The same ETag, as a store could choose it to get another one's values.
        store.put("/photos/1.jpg", "\"1\"", object.clone());
        flags.push(format!("--allow-store=http://{}", store.address()));
    }
    let gateway = Gateway::launch(binary(), flags)?;
    let target = format!("/photos/1.jpg?{}", signed_query("first"));
    for expected_origin in ["computed", "memory", "memory"] {
        for (store, object) in stores.iter().zip(&objects) {
            let stated = format!("http://{}", store.address());
            let answer = get(&gateway, &target, PIPELINE)
                .header(STORE, &stated)
                .send(gateway.listen())?;
            ensure!(answer.status == 200, "{}", answer.text());
            assert_eq!(answer.body, pixels(expected(object, PIPELINE)));
            assert_eq!(origin(&answer)?, expected_origin);
        }
    }
    Ok(())
}

/// The gateway's host is the same for all stores, and no part of an address.
#[test]
fn the_host_of_the_gateway_does_not_matter() -> Result<()> {
    let lab = StoresLab::new(Style::Path, &[MEMORY])?;
    lab.put(KEY, "\"1\"", photo(400, 300, "jpeg"));
    lab.get(KEY, PIPELINE)?;
    for host in ["ingress.example", "127.0.0.1:1"] {
        let mut request = lab.request("first", KEY, PIPELINE);
        for (name, value) in &mut request.headers {
            if name == "Host" {
                host.clone_into(value);
            }
        }
        let answer = request.send(lab.gateway.listen())?;
        assert_eq!((answer.status, origin(&answer)?), (200, "memory"), "{host}");
    }
    Ok(())
}

#[test]
fn buckets_can_be_tenants() -> Result<()> {
    let lab = StoresLab::new(
        Style::Path,
        &[MEMORY, "--cache-scope=tenant", "--tenant-by=bucket"],
    )?;
    lab.put(KEY, "\"1\"", photo(400, 300, "jpeg"));
    lab.get(KEY, PIPELINE)?;
    // Another session of the same job has another access key.
    let answer = lab.request("second", KEY, PIPELINE).send(lab.gateway.listen())?;
    assert_eq!((answer.status, origin(&answer)?), (200, "memory"));
    let rows = lab.rows(&lab.batch("third", &[KEY], PIPELINE)?)?;
    ensure!(rows.iter().all(|row| row.cache.is_hit()), "{rows:?}");
    let mut batch = lab.batch("first", &[KEY, KEY], PIPELINE)?;
    batch.samples[1].path = "/audio/1.jpg".to_owned();
    let answer = lab.post(&batch)?;
    assert_eq!(answer.status, 400);
    ensure!(
        answer.text().contains("expected samples of one bucket"),
        "{}",
        answer.text()
    );
    Ok(())
}

/// The CPUs are shared by tenants: each has its part while another one has a batch in flight.
#[test]
fn buckets_of_two_stores_are_two_tenants() -> Result<()> {
    let stores = [PolicyStore::start()?, PolicyStore::start()?];
    let mut flags = vec!["--tenant-by=bucket".to_owned(), "--threads=2".to_owned()];
    for store in &stores {
        store.put("/photos/1.jpg", "\"1\"", photo(400, 300, "jpeg"));
        flags.push(format!("--allow-store=http://{}", store.address()));
    }
    let gateway = Gateway::launch(binary(), flags)?;
    let batch = |store: &PolicyStore| -> Result<Response> {
        let samples = vec![BatchSample::new("/photos/1.jpg", GOOD_SIGNATURE)];
        let mut batch = BatchRequest::new(PIPELINE.parse()?, presign("first"), samples);
        batch.store = Some(format!("http://{}", store.address()).parse()?);
        post(&gateway, &batch)
    };
    assert_eq!(batch(&stores[0])?.header("x-pushdown-cores"), Some("2.00"));
    stores[0].set_stalled(true);
    std::thread::scope(|scope| {
        let stalled = scope.spawn(|| batch(&stores[0]));
        stores[0].wait_until(|sent| sent.objects == 2)?;
        let other = batch(&stores[1])?;
        stores[0].set_stalled(false);
        assert_eq!(other.header("x-pushdown-cores"), Some("1.00"));
        let stalled = stalled.join().ok().context("a batch panicked")??;
        ensure!(rows(&stalled)?.iter().all(|row| row.value.is_ok()));
        Ok(())
    })
}

#[test]
fn access_keys_are_tenants_by_default() -> Result<()> {
    let lab = StoresLab::new(Style::VirtualHost, &[MEMORY, "--cache-scope=tenant"])?;
    lab.put(KEY, "\"1\"", photo(400, 300, "jpeg"));
    lab.get(KEY, PIPELINE)?;
    for (access_key, expected) in [("second", "computed"), ("first", "memory")] {
        let answer = lab
            .request(access_key, KEY, PIPELINE)
            .send(lab.gateway.listen())?;
        assert_eq!((answer.status, origin(&answer)?), (200, expected));
    }
    Ok(())
}
