//! Invalid input gets a clear error, and callers without permission get no data.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use pushdown_testkit::{Keys, Payload, Response};

use super::{Lab, SHORT, photo};

fn code(answer: &Response) -> (u16, String) {
    (answer.status, answer.element("Code").unwrap_or_default())
}

#[test]
fn errors_in_a_pipeline_name_the_position() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(20, 20, "jpeg"))?;
    let long = format!("decode | resize(8, 8, filter={})", "x".repeat(17_000));
    for (pipeline, message) in [
        ("decode | rezise(8, 8)", "at 10: found the unknown step `rezise`"),
        ("decode | resize(8", "at 18: found the end"),
        ("resize(8, 8)", "at 1: `resize` takes Image"),
        ("decode | resize(8, big)", "at 20: "),
        ("decode | flip_h", "at 10: `flip_h` is random"),
        (&long, "16384"),
    ] {
        let answer = lab.get("cat.jpg", pipeline, &[])?;
        assert_eq!(
            code(&answer),
            (400, "InvalidPipeline".to_owned()),
            "{pipeline:.40}: {}",
            answer.text()
        );
        let text = answer.element("Message").unwrap_or_default();
        assert!(text.contains(message), "{text}");
    }
    let answer = lab.get("cat.jpg", "decode |", &[])?;
    assert_eq!(answer.element("Resource").as_deref(), Some("/photos/cat.jpg"));
    assert_eq!(
        answer.element("RequestId").as_deref(),
        answer.header("x-amz-request-id")
    );
    Ok(())
}

#[test]
fn undecodable_objects_are_422_and_decompression_bombs_are_refused_early() -> Result<()> {
    let lab = Lab::new(&["--memory-budget=64MiB"])?;
    let whole = photo(200, 150, "jpeg");
    let mut png_bomb = photo(8, 8, "png");
    png_bomb[16..24].copy_from_slice(&[0, 1, 0x86, 0xa0, 0, 1, 0x86, 0xa0]);
    // The checksum of the header is corrected, so that only the size is wrong.
    let checksum = crc32(&png_bomb[12..29]);
    png_bomb[29..33].copy_from_slice(&checksum.to_be_bytes());
    let mut jpeg_bomb = whole.clone();
    let frame = jpeg_bomb
        .windows(2)
        .position(|marker| marker == [0xff, 0xc0])
        .unwrap();
    jpeg_bomb[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
    for (name, object) in [
        ("truncated", whole[..whole.len() / 2].to_vec()),
        ("foreign", b"%PDF-1.7 no photo at all".to_vec()),
        ("empty", Vec::new()),
        ("png-bomb", png_bomb),
        ("jpeg-bomb", jpeg_bomb),
    ] {
        lab.put(name, object)?;
        let answer = lab.get(name, SHORT, &[])?;
        assert_eq!(
            code(&answer),
            (422, "UndecodableObject".to_owned()),
            "{name}: {}",
            answer.text()
        );
    }
    assert!(lab.gateway.peak_memory()? < 128 << 20);
    Ok(())
}

/// CRC-32 as in PNG, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            }
        })
    })
}

#[test]
fn sizes_over_their_limits_are_413() -> Result<()> {
    let lab = Lab::new(&[
        "--max-object-bytes=16KiB",
        "--max-output-bytes=1MiB",
        "--memory-budget=16MiB",
    ])?;
    lab.put("small.png", photo(32, 32, "png"))?;
    lab.put("large.png", photo(300, 300, "png"))?;
    let too_large = (413, "EntityTooLarge".to_owned());
    assert_eq!(code(&lab.get("large.png", SHORT, &[])?), too_large, "the object");
    assert_eq!(
        code(&lab.get("small.png", "decode | resize(1000, 1000)", &[])?),
        too_large,
        "the output"
    );
    assert_eq!(
        code(&lab.get("small.png", "decode | resize(5000, 5000) | resize(8, 8)", &[])?),
        too_large,
        "the budget"
    );
    assert_eq!(
        code(&lab.get("small.png", "decode | resize(60000, 60000) | resize(8, 8)", &[])?),
        too_large,
        "pixels"
    );
    assert_eq!(lab.get("small.png", "decode | resize(8, 8)", &[])?.status, 200);
    Ok(())
}

#[test]
fn no_answer_without_authorization_by_the_store() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(64, 64, "jpeg"))?;
    assert_eq!(
        lab.get("cat.jpg", SHORT, &[])?.status,
        200,
        "this result could be cached"
    );
    let pipeline = |request: pushdown_testkit::Request| request.header("x-pushdown-pipeline", SHORT);
    let anonymous = pipeline(lab.request("GET", "cat.jpg"));
    let wrong = Keys::new("pushdowntestkey", "wrong")
        .sign(pipeline(lab.request("GET", "cat.jpg")), Payload::Signed)?;
    let unknown =
        Keys::new("nobody", "none").sign(pipeline(lab.request("GET", "cat.jpg")), Payload::Signed)?;
    let expired = lab.keys.with_time(SystemTime::now() - Duration::from_hours(2));
    let expired = expired.presign(pipeline(lab.request("GET", "cat.jpg")), Duration::from_mins(1))?;
    for (name, request) in [
        ("anonymous", anonymous),
        ("wrong", wrong),
        ("unknown", unknown),
        ("expired", expired),
    ] {
        let through = request.send(lab.address())?;
        assert_eq!(through.status, 403, "{name}: {}", through.text());
        assert_eq!(through.header("x-pushdown-stage"), None);
        // The store itself refuses the request.
        let store = lab.gateway.store().unwrap();
        let plain = lab.request("GET", "cat.jpg").send(store)?;
        assert_eq!(plain.status, 403);
    }
    assert_eq!(
        code(&lab.get("missing.jpg", SHORT, &[])?),
        (404, "NoSuchKey".to_owned())
    );
    Ok(())
}

#[test]
fn a_pipeline_is_accepted_only_for_the_content_of_an_object() -> Result<()> {
    let lab = Lab::new(&[])?;
    lab.put("cat.jpg", photo(64, 64, "jpeg"))?;
    let invalid = (400, "InvalidRequest".to_owned());
    assert_eq!(code(&lab.send("PUT", "cat.jpg", SHORT, &[])?), invalid);
    assert_eq!(code(&lab.get("", SHORT, &[])?), invalid, "a bucket");
    assert_eq!(code(&lab.get("cat.jpg?tagging", SHORT, &[])?), invalid);
    assert_eq!(
        code(&lab.get("cat.jpg", SHORT, &[("x-pushdown-pipeline", "decode")])?),
        invalid,
        "two pipelines"
    );
    let request = lab
        .request("GET", "cat.jpg")
        .header("x-pushdown-pipeline", SHORT)
        .header("range", "bytes=0-9");
    let signed_range = lab.keys.sign(request, Payload::Signed)?.send(lab.address())?;
    assert_eq!(code(&signed_range), invalid);
    assert!(
        signed_range.text().contains("unsigned"),
        "{}",
        signed_range.text()
    );
    Ok(())
}
