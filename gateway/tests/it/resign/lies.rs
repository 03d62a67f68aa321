//! Bodies that are not what was signed. The answer names the lie, and the store has the old object, or none.

mod table;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Payload, RealStore, Response};

use super::bodies::{Lab, bytes};
use super::{BUCKET, binary, error_of};
use table::{LIES, Lie};

const OLD: &[u8] = b"the old object";
/// Length of the bodies: nine chunks, the last one of 0x1171 bytes.
const BODY_BYTES: usize = 70_001;
/// Length of a body whose beginning the stores have on disk before its end arrives: they store parts of 4 to 8 MiB.
const LONG_BODY_BYTES: usize = (17 << 20) + 1;

/// What a store does with a checksum in a trailer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trailers {
    /// It compares the checksum before it commits the object.
    Checked,
    /// It compares the checksum after it has committed the object.
    CheckedLate,
    /// It refuses each upload with a trailer.
    Refused,
}

#[test]
fn the_embedded_store_commits_no_lie() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    check(RealStore::embedded(binary())?, Trailers::CheckedLate)
}

#[test]
fn seaweedfs_commits_no_lie() -> Result<()> {
    if !Backend::SeaweedFs.is_enabled()? {
        return Ok(());
    }
    check(RealStore::seaweedfs()?, Trailers::Checked)
}

#[test]
#[ignore = "JuiceFS is not installed by default: make test-full"]
fn juicefs_commits_no_lie() -> Result<()> {
    check(RealStore::juicefs()?, Trailers::Refused)
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn ceph_commits_no_lie() -> Result<()> {
    check(RealStore::ceph()?, Trailers::Refused)
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn garage_commits_no_lie() -> Result<()> {
    check(RealStore::garage()?, Trailers::Checked)
}

fn check(store: RealStore, trailers: Trailers) -> Result<()> {
    let lab = Lab::new(store)?;
    let mut targets = Vec::new();
    for (index, lie) in LIES.iter().enumerate() {
        if lie.code.is_empty() && trailers == Trailers::CheckedLate {
            continue;
        }
        for old in [Some(OLD), None] {
            let target = format!("{BUCKET}/{index}/{}", old.is_some());
            let place = format!("{}, {:?}, {target}", lie.name, lie.payload);
            let answer = send(&lab, lie, BODY_BYTES, &target, old).context(place.clone())?;
            ensure!(
                is_expected(lie, &answer),
                "{place}: expected {} {:?}, found {} {}",
                lie.status,
                lie.code,
                answer.status,
                answer.text()
            );
            targets.push((target, old));
        }
    }
    let target = format!("{BUCKET}/long");
    let answer = send(&lab, &LIES[0], LONG_BODY_BYTES, &target, Some(OLD))?;
    ensure!(is_expected(&LIES[0], &answer), "a long body: {}", answer.text());
    targets.push((target, Some(OLD)));
    let target = format!("{BUCKET}/short");
    lab.direct.store(&target, OLD)?;
    check_short_body(&lab, &target).context("a body shorter than the signed one")?;
    targets.push((target, Some(OLD)));
    // A store could commit late.
    for (target, old) in targets {
        lab.check_object(&target, old)?;
    }
    check_trailers(&lab, trailers)
}

/// Sends a body that is not what was signed, and checks that the store has the old object, or none.
fn send(lab: &Lab, lie: &Lie, length: usize, target: &str, old: Option<&[u8]>) -> Result<Response> {
    if let Some(old) = old {
        lab.direct.store(target, old)?;
    }
    let mut request = lab.upload(target, lie.payload, length)?;
    (lie.change)(&mut request.body).context("found nothing to change")?;
    let answer = request.send(lab.through.address)?;
    lab.check_object(target, old)?;
    Ok(answer)
}

fn is_expected(lie: &Lie, answer: &Response) -> bool {
    let (status, code) = error_of(answer);
    let has_code = if lie.code.is_empty() {
        !code.is_empty()
    } else {
        code == lie.code
    };
    status == lie.status && has_code
}

/// Whether the store takes an upload with the trailer that was signed.
fn check_trailers(lab: &Lab, trailers: Trailers) -> Result<()> {
    let target = format!("{BUCKET}/trailer");
    let answer = lab
        .upload(&target, Payload::Trailer, BODY_BYTES)?
        .send(lab.through.address)?;
    let expected = if trailers == Trailers::Refused { 400 } else { 200 };
    ensure!(
        answer.status == expected,
        "a trailer as signed: expected {expected}, found {answer:?}"
    );
    let stored = bytes(BODY_BYTES);
    lab.check_object(&target, Some(&stored[..]).filter(|_| expected == 200))
}

/// The signed hash is that of a longer body, whose beginning is sent with the right length.
fn check_short_body(lab: &Lab, target: &str) -> Result<()> {
    let length = BODY_BYTES - 1;
    let mut request = lab
        .through
        .request("PUT", target)
        .header("Content-Length", &length.to_string());
    request.body = bytes(BODY_BYTES);
    let mut request = lab.through.keys.sign(request, Payload::Signed)?;
    request.body.truncate(length);
    let answer = request.send(lab.through.address)?;
    let expected = (400, "XAmzContentSHA256Mismatch".to_owned());
    ensure!(error_of(&answer) == expected, "{answer:?}");
    lab.check_object(target, Some(OLD))
}
