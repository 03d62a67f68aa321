//! Work that nobody waits for any more.

use std::time::Duration;

use anyhow::{Result, ensure};
use pushdown_testkit::{Payload, Raw, eventually};

use super::{Lab, SHORT, photo};

/// A progressive JPEG of 8,000 x 4,000 pixels with as many scans as are allowed, 78, and no data: about a second of CPU time.
fn slow_photo() -> Vec<u8> {
    let segment = |marker: u8, body: &[u8]| {
        let length = u16::try_from(body.len() + 2).unwrap_or(u16::MAX);
        [&[0xff, marker][..], &length.to_be_bytes(), body].concat()
    };
    // Tables with one code each: no difference (DC), and 16,384 blocks without coefficients (AC).
    let codes = |class: u8, symbol: u8| segment(0xc4, &[&[class, 1][..], &[0; 15], &[symbol]].concat());
    [
        b"\xff\xd8".to_vec(),
        segment(0xdb, &[&[0][..], &[1; 64]].concat()),
        segment(0xc2, b"\x08\x0f\xa0\x1f\x40\x03\x01\x11\0\x02\x11\0\x03\x11\0"),
        codes(0, 0),
        codes(0x10, 0xe0),
        segment(0xda, b"\x03\x01\0\x02\0\x03\0\0\0\0"),
        segment(0xda, b"\x01\x01\0\x01\x3f\x10").repeat(77),
        b"\xff\xd9".to_vec(),
    ]
    .concat()
}

/// The CPU's one thread decodes in 78 passes; the client leaves during one of the first.
#[test]
fn a_decode_ends_soon_after_its_client_leaves() -> Result<()> {
    let lab = Lab::new(&["--threads", "1"])?;
    lab.put("slow.jpg", slow_photo())?;
    lab.put("cat.jpg", photo(96, 64, "jpeg"))?;
    let cpu_seconds = || lab.gateway.metric("process_cpu_seconds_total");
    let before = cpu_seconds()?;
    let whole = lab.get("slow.jpg", SHORT, &[])?;
    ensure!(whole.status == 200, "{whole:?}");
    let cost = cpu_seconds()? - before;

    let before = cpu_seconds()?;
    let mut abandoned = Raw::connect(lab.address())?;
    let request = lab
        .request("GET", "slow.jpg")
        .header("x-pushdown-pipeline", SHORT);
    abandoned.write(&lab.keys.sign(request, Payload::Signed)?.head())?;
    eventually("the decode to start", Duration::from_secs(20), || {
        Ok((cpu_seconds()? - before > cost / 8.0).then_some(()))
    })?;
    drop(abandoned);
    // It waits for the thread.
    let next = lab.get("cat.jpg", SHORT, &[])?;
    ensure!(next.status == 200, "{next:?}");
    let spent = cpu_seconds()? - before;
    ensure!(spent < 0.7 * cost, "{spent} s of {cost} s");
    Ok(())
}
