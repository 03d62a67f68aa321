//! Admission: memory is bounded, overload is 503, and idle clients lose their memory permits.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pushdown_testkit::{Payload, Raw, Request};

use super::{Lab, SHORT, photo};

const MIB: u64 = 1 << 20;

#[test]
fn many_large_photos_stay_within_the_memory_budget() -> Result<()> {
    let lab = Lab::new(&["--memory-budget=256MiB", "--queue-wait=60s"])?;
    lab.put("large.jpg", photo(4000, 3000, "jpeg"))?;
    let answers: Vec<Result<u16>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..200)
            .map(|_| scope.spawn(|| Ok(lab.get("large.jpg", SHORT, &[])?.status)))
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let mut served = 0;
    for answer in answers {
        match answer? {
            200 => served += 1,
            503 => {}
            status => panic!("{status}"),
        }
    }
    assert!(served > 0);
    let peak = lab.gateway.peak_memory()?;
    assert!(peak < (256 + 150) * MIB, "{} MiB", peak / MIB);
    assert!(
        lab.gateway.metric("pushdown_memory_reserved_bytes")?.abs() < 1.0,
        "all permits are released"
    );
    Ok(())
}

#[test]
fn overload_is_503_slow_down() -> Result<()> {
    let lab = Lab::new(&[
        "--memory-budget=32MiB",
        "--queue-wait=200ms",
        "--send-stall-timeout=20s",
    ])?;
    lab.put("photo.png", photo(400, 400, "png"))?;
    // 12 MB of pixels: the socket buffers take a part of them, and the memory stays in use until the rest is sent. Each value is
    // another one: equal ones would share their memory.
    let large = |width: usize| format!("decode | resize({width}, 2000)");
    let mut clients = Vec::new();
    for width in [2000, 2001] {
        let mut client = Raw::connect(lab.address())?;
        let request = lab
            .request("GET", "photo.png")
            .header("x-pushdown-pipeline", &large(width));
        client.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
        clients.push(client);
    }
    let answer = clients[0].head()?;
    let deadline = Instant::now() + Duration::from_secs(20);
    for width in 2002.. {
        let answer = lab.get("photo.png", &large(width), &[])?;
        if answer.status == 503 {
            assert_eq!(answer.element("Code").as_deref(), Some("SlowDown"));
            assert!(answer.header("retry-after").is_some());
            let version = Request::new("GET", "/_pushdown/v1/version").header("Host", "gateway");
            assert_eq!(
                version.send(lab.address())?.status,
                200,
                "the version needs no memory"
            );
            break;
        }
        ensure!(Instant::now() < deadline, "never overloaded: {}", answer.status);
    }
    assert_eq!(answer.status, 200);
    Ok(())
}

#[test]
fn a_client_that_reads_nothing_loses_its_memory_permit() -> Result<()> {
    let lab = Lab::new(&["--send-stall-timeout=1s"])?;
    lab.put("photo.png", photo(400, 400, "png"))?;
    let mut client = Raw::connect(lab.address())?;
    let request = lab
        .request("GET", "photo.png")
        .header("x-pushdown-pipeline", "decode | resize(4000, 4000)");
    client.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
    let mut answer = client.begin("GET")?;
    assert_eq!(answer.head.status, 200);
    assert!(lab.gateway.metric("pushdown_memory_reserved_bytes")? > 0.0);
    let deadline = Instant::now() + Duration::from_secs(30);
    // One byte now and then does not open the TCP window, so it does not count as progress.
    while lab.gateway.metric("pushdown_memory_reserved_bytes")? > 0.0 {
        ensure!(Instant::now() < deadline, "the permit is still in use");
        answer.read_exact(1).ok();
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
