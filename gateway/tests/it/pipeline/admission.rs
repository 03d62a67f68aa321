//! Memory is bounded, overload is 503, and nobody holds a permit by doing nothing.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use pushdown_testkit::{Payload, Raw};

use super::{Lab, SHORT, photo};

const MIB: u64 = 1 << 20;

#[test]
fn a_crowd_of_large_photos_stays_within_the_budget() -> Result<()> {
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
        lab.gateway.metric("pushdown_permits_in_use_bytes")?.abs() < 1.0,
        "all permits are back"
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
    // 12 MB of pixels: sent only as far as the sockets' buffers reach, and held until then.
    let large = "decode | resize(2000, 2000)";
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = Raw::connect(lab.address())?;
        let request = lab
            .request("GET", "photo.png")
            .header("x-pushdown-pipeline", large);
        client.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
        held.push(client);
    }
    let answer = held[0].head()?;
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = lab.get("photo.png", large, &[])?;
        if answer.status == 503 {
            assert_eq!(answer.element("Code").as_deref(), Some("SlowDown"));
            assert!(answer.header("retry-after").is_some());
            break;
        }
        ensure!(
            Instant::now() < deadline,
            "never overloaded: {answer:?}",
            answer = answer.status
        );
    }
    assert_eq!(answer.status, 200);
    Ok(())
}

#[test]
fn a_client_that_takes_nothing_loses_its_permit() -> Result<()> {
    let lab = Lab::new(&["--send-stall-timeout=1s"])?;
    lab.put("photo.png", photo(400, 400, "png"))?;
    let mut client = Raw::connect(lab.address())?;
    let request = lab
        .request("GET", "photo.png")
        .header("x-pushdown-pipeline", "decode | resize(4000, 4000)");
    client.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
    let mut answer = client.begin("GET")?;
    assert_eq!(answer.head.status, 200);
    assert!(lab.gateway.metric("pushdown_permits_in_use_bytes")? > 0.0);
    let deadline = Instant::now() + Duration::from_secs(30);
    // A byte now and then is no progress that the sockets' windows pass on.
    while lab.gateway.metric("pushdown_permits_in_use_bytes")? > 0.0 {
        ensure!(Instant::now() < deadline, "the permit is still held");
        answer.read_exact(1).ok();
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
