//! Bodies that are not what was signed. The answer names the lie, and the store has the old object, or none.

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Payload};

use super::bodies::{Lab, bytes};
use super::{BUCKET, error_of};

const OLD: &[u8] = b"the old object";
/// Length of the bodies: nine chunks, the last one of 0x1171 bytes.
const LENGTH: usize = 70_001;

/// Changes the encoded body of a signed request. `None` if there is nothing to change.
type Change = fn(&mut [u8]) -> Option<()>;

/// A body that is not what was signed, and its answer.
struct Lie {
    name: &'static str,
    payload: Payload,
    change: Change,
    status: u16,
    /// Empty if only the store can tell, by a code of its own.
    code: &'static str,
}

const LIES: [Lie; 16] = [
    Lie {
        name: "another last byte",
        payload: Payload::Signed,
        change: |body| {
            let end = body.len();
            change_before(body, end)
        },
        status: 400,
        code: "XAmzContentSHA256Mismatch",
    },
    Lie {
        name: "another body",
        payload: Payload::Signed,
        change: |body| {
            body.fill(7);
            Some(())
        },
        status: 400,
        code: "XAmzContentSHA256Mismatch",
    },
    chunk_lie("another last byte", Payload::Chunks, change_last_byte),
    chunk_lie("another last byte", Payload::ChunksAndTrailer, change_last_byte),
    chunk_lie("another first byte", Payload::Chunks, change_first_byte),
    chunk_lie("another first byte", Payload::ChunksAndTrailer, change_first_byte),
    chunk_lie("another signature of the final chunk", Payload::Chunks, |body| {
        change_digit(body, ";chunk-signature=")
    }),
    chunk_lie(
        "another signature of the final chunk",
        Payload::ChunksAndTrailer,
        |body| change_digit(body, ";chunk-signature="),
    ),
    chunk_lie("another trailer", Payload::ChunksAndTrailer, change_trailer),
    chunk_lie(
        "another signature of the trailer",
        Payload::ChunksAndTrailer,
        |body| change_digit(body, "x-amz-trailer-signature:"),
    ),
    Lie {
        name: "another trailer",
        payload: Payload::Trailer,
        change: change_trailer,
        status: 400,
        code: "",
    },
    trailer_name_lie(Payload::ChunksAndTrailer),
    trailer_name_lie(Payload::Trailer),
    cut_lie(Payload::Chunks),
    cut_lie(Payload::ChunksAndTrailer),
    cut_lie(Payload::Trailer),
];

/// A lie that breaks the signature of a chunk or of the trailer.
const fn chunk_lie(name: &'static str, payload: Payload, change: Change) -> Lie {
    Lie {
        name,
        payload,
        change,
        status: 403,
        code: "SignatureDoesNotMatch",
    }
}

const fn trailer_name_lie(payload: Payload) -> Lie {
    Lie {
        name: "a trailer that the head does not declare",
        payload,
        change: |body| {
            let end = end_of(body, "x-amz-checksum-crc32:")?;
            *body.get_mut(end - 2)? = b'3';
            Some(())
        },
        status: 400,
        code: "MalformedTrailerError",
    }
}

/// The last chunk declares more bytes than follow.
const fn cut_lie(payload: Payload) -> Lie {
    Lie {
        name: "a body cut short within its last chunk",
        payload,
        change: |body| {
            let end = end_of(body, "\r\n1171")?;
            body.get_mut(end - 4..end)?.copy_from_slice(b"ffff");
            Some(())
        },
        status: 400,
        code: "IncompleteBody",
    }
}

/// The position after the last occurrence of `mark`.
fn end_of(body: &[u8], mark: &str) -> Option<usize> {
    let start = body
        .windows(mark.len())
        .rposition(|window| window == mark.as_bytes())?;
    Some(start + mark.len())
}

/// Changes the byte before `end`.
fn change_before(body: &mut [u8], end: usize) -> Option<()> {
    *body.get_mut(end.checked_sub(1)?)? ^= 1;
    Some(())
}

/// Changes the last byte of data in a chunked body.
fn change_last_byte(body: &mut [u8]) -> Option<()> {
    let mark = "\r\n0;chunk-signature=";
    let end = end_of(body, mark)?;
    change_before(body, end - mark.len())
}

/// Changes the first byte of data in a body of signed chunks: its first line ends with 64 digits, CR and LF.
fn change_first_byte(body: &mut [u8]) -> Option<()> {
    let start = "2000;chunk-signature=".len() + 66;
    change_before(body, start + 1)
}

fn change_trailer(body: &mut [u8]) -> Option<()> {
    change_digit(body, "x-amz-checksum-crc32:")
}

/// Replaces the first digit after `mark`, of a number in hex or base64.
fn change_digit(body: &mut [u8], mark: &str) -> Option<()> {
    let at = end_of(body, mark)?;
    let digit = body.get_mut(at)?;
    *digit = if *digit == b'0' { b'1' } else { b'0' };
    Some(())
}

#[test]
fn the_embedded_store_commits_no_lie() -> Result<()> {
    check(Backend::Embedded)
}

#[test]
fn seaweedfs_commits_no_lie() -> Result<()> {
    check(Backend::SeaweedFs)
}

fn check(backend: Backend) -> Result<()> {
    let Some(lab) = Lab::start(backend)? else {
        return Ok(());
    };
    let mut targets = Vec::new();
    for (index, lie) in LIES.iter().enumerate() {
        // The embedded store compares checksums only after it has committed.
        if lie.code.is_empty() && backend == Backend::Embedded {
            continue;
        }
        for old in [Some(OLD), None] {
            let target = format!("{BUCKET}/{index}/{}", old.is_some());
            check_lie(&lab, lie, &target, old)
                .with_context(|| format!("{}, {:?}, {target}", lie.name, lie.payload))?;
            targets.push((target, old));
        }
    }
    let target = format!("{BUCKET}/short");
    lab.direct.store(&target, OLD)?;
    check_short_body(&lab, &target).context("a body shorter than the signed one")?;
    targets.push((target, Some(OLD)));
    // A store could commit late.
    for (target, old) in targets {
        lab.check_object(&target, old)?;
    }
    Ok(())
}

fn check_lie(lab: &Lab, lie: &Lie, target: &str, old: Option<&[u8]>) -> Result<()> {
    if let Some(old) = old {
        lab.direct.store(target, old)?;
    }
    let mut request = lab.upload(target, lie.payload, LENGTH)?;
    (lie.change)(&mut request.body).context("found nothing to change")?;
    let answer = request.send(lab.through.address)?;
    let (status, code) = error_of(&answer);
    let has_code = if lie.code.is_empty() {
        !code.is_empty()
    } else {
        code == lie.code
    };
    ensure!(
        status == lie.status && has_code,
        "expected {} {:?}, found {status} {}",
        lie.status,
        lie.code,
        answer.text()
    );
    lab.check_object(target, old)
}

/// The signed hash is that of a longer body, whose beginning is sent with the right length.
fn check_short_body(lab: &Lab, target: &str) -> Result<()> {
    let length = LENGTH - 1;
    let mut request = lab
        .through
        .request("PUT", target)
        .header("Content-Length", &length.to_string());
    request.body = bytes(LENGTH);
    let mut request = lab.through.keys.sign(request, Payload::Signed)?;
    request.body.truncate(length);
    let answer = request.send(lab.through.address)?;
    let expected = (400, "XAmzContentSHA256Mismatch".to_owned());
    ensure!(error_of(&answer) == expected, "{answer:?}");
    lab.check_object(target, Some(OLD))
}
