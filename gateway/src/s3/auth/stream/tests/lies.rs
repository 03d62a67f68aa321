//! Bodies that differ from their head: each is refused, and the store gets no whole body.

use pushdown_testkit::ChunkedBody;

use super::*;

/// Sends a body whole, in single bytes, and cut once at each place, with and without a content length.
fn assert_refused(upload: &Upload, expected: &str) {
    assert_eq!(upload.expected(), None, "no lie");
    let length = upload.body.len();
    let mut all_cuts = vec![Vec::new(), (0..length).collect::<Vec<_>>()];
    all_cuts.extend((0..=length).map(|cut| vec![cut]));
    for cuts in all_cuts {
        for has_content_length in [true, false] {
            let (output, verdict) = upload.send(&cuts, has_content_length);
            assert_eq!(verdict, Err(expected), "{:?} {cuts:?}", upload.mode);
            assert!(
                !upload.is_committed(&output),
                "{:?} {cuts:?}: {output:?}",
                upload.mode
            );
        }
    }
}

/// A request in which the first occurrence of `from` in the body is replaced.
fn replaced(mode: Mode, from: &str, to: &str) -> Upload {
    let mut upload = Upload::new(mode, &[b"first-chunk", b"second"]);
    let found = upload
        .body
        .windows(from.len())
        .position(|window| window == from.as_bytes());
    let at = found.unwrap_or_else(|| panic!("{mode:?}: no {from:?}"));
    upload.body.splice(at..at + from.len(), to.bytes());
    upload
}

fn with_decoded_length(mode: Mode, length: &str) -> Upload {
    let mut upload = Upload::new(mode, &[b"first-chunk", b"second"]);
    set(&mut upload.headers, "x-amz-decoded-content-length", length);
    upload
}

#[test]
fn a_wrong_last_byte() {
    assert_refused(
        &replaced(Mode::Hash, "second", "seconD"),
        "XAmzContentSHA256Mismatch",
    );
    for mode in [Mode::SignedChunks, Mode::SignedChunksTrailer] {
        assert_refused(&replaced(mode, "second", "seconD"), "SignatureDoesNotMatch");
        assert_refused(&replaced(mode, "first", "First"), "SignatureDoesNotMatch");
    }
}

#[test]
fn a_wrong_hash() {
    let mut upload = Upload::new(Mode::Hash, &[b"first-chunk"]);
    upload.hash[31] ^= 1;
    assert_refused(&upload, "XAmzContentSHA256Mismatch");
}

#[test]
fn a_missing_end() {
    let hash = Upload {
        body: b"first-chun".to_vec(),
        ..Upload::new(Mode::Hash, &[b"first-chunk"])
    };
    assert_refused(&hash, "XAmzContentSHA256Mismatch");
    for mode in [
        Mode::UnsignedTrailer,
        Mode::SignedChunks,
        Mode::SignedChunksTrailer,
    ] {
        let whole = Upload::new(mode, &[b"first-chunk", b"second"]);
        for length in 0..whole.body.len() {
            let mut upload = whole.clone();
            upload.body.truncate(length);
            let (output, verdict) = upload.send(&[], true);
            assert_eq!(verdict, Err("IncompleteBody"), "{mode:?} {length}");
            assert!(!upload.is_committed(&output), "{mode:?} {length}: {output:?}");
        }
    }
}

#[test]
fn a_missing_last_chunk() {
    for mode in [
        Mode::UnsignedTrailer,
        Mode::SignedChunks,
        Mode::SignedChunksTrailer,
    ] {
        let mut upload = Upload::new(mode, &[b"first-chunk", b"second"]);
        let end = upload
            .body
            .windows(8)
            .position(|window| window == b"second\r\n")
            .unwrap()
            + 8;
        upload.body.truncate(end);
        assert_refused(&upload, "IncompleteBody");
        // All chunks but the last one, and the final chunk of the whole body.
        let start = if mode.is_signed() { "\r\n6;" } else { "\r\n6\r\n" };
        let mut upload = Upload::new(mode, &[b"first-chunk", b"second"]);
        let start = upload
            .body
            .windows(start.len())
            .position(|window| window == start.as_bytes())
            .unwrap();
        upload.body.drain(start + 2..end);
        assert_refused(&upload, "IncompleteBody");
    }
}

#[test]
fn a_wrong_signature() {
    for mode in [Mode::SignedChunks, Mode::SignedChunksTrailer] {
        let whole = Upload::new(mode, &[b"first-chunk", b"second"]);
        let fields = whole.body.windows(10).enumerate();
        let ends: Vec<_> = fields
            .filter(|(_, window)| *window == b"signature=" || *window == b"signature:")
            .map(|(at, _)| at + 10)
            .collect();
        assert_eq!(ends.len(), if mode.has_trailers() { 4 } else { 3 });
        for at in ends {
            let mut upload = whole.clone();
            upload.body[at] = if upload.body[at] == b'0' { b'1' } else { b'0' };
            assert_refused(&upload, "SignatureDoesNotMatch");
        }
    }
}

#[test]
fn a_wrong_length() {
    for mode in [
        Mode::UnsignedTrailer,
        Mode::SignedChunks,
        Mode::SignedChunksTrailer,
    ] {
        for length in ["0", "16", "18", "18446744073709551615"] {
            assert_refused(&with_decoded_length(mode, length), "IncompleteBody");
        }
    }
    let huge = replaced(Mode::UnsignedTrailer, "b\r\n", "fffffffffffffff0\r\n");
    assert_refused(&huge, "IncompleteBody");
}

#[test]
fn wrong_trailers() {
    let crc = "x-amz-checksum-crc32:AAAAAA==\r\n";
    for mode in [Mode::UnsignedTrailer, Mode::SignedChunksTrailer] {
        for to in [
            "",
            "x-amz-checksum-crc32:\r\n",
            "x-amz-checksum-crc32c:AAAAAA==\r\n",
            "x-amz-checksum-crc32:AAAAAA==\r\nx-amz-checksum-crc32:AAAAAA==\r\n",
            "x-amz-checksum-crc32:AAAAAA==\r\nx-amz-acl:public-read\r\n",
        ] {
            assert_refused(&replaced(mode, crc, to), "MalformedTrailerError");
        }
        let long = format!("x-amz-checksum-crc32:{}\r\n", "A".repeat(16 << 10));
        let (output, verdict) = replaced(mode, crc, &long).send(&[], true);
        assert_eq!(verdict, Err("MalformedTrailerError"));
        assert!(ChunkedBody::parse(&output, false).is_none());
    }
    let other = replaced(Mode::SignedChunksTrailer, "AAAAAA==", "AAAAAB==");
    assert_refused(&other, "SignatureDoesNotMatch");
    let unsigned = replaced(
        Mode::SignedChunksTrailer,
        "x-amz-trailer-signature",
        "x-amz-trailer-signaturf",
    );
    assert_refused(&unsigned, "MalformedTrailerError");
}

#[test]
fn wrong_framing() {
    for (from, to) in [
        ("b\r\n", "b \r\n"),
        ("b\r\n", "b\n"),
        ("b\r\n", "0x0b\r\n"),
        ("b\r\n", "b;a=b\r\n"),
        ("b\r\n", "0000000000000000b\r\n"),
        ("chunk\r\n", "chunk\n"),
        ("chunk\r\n", "chunk"),
        ("chunk\r\n", "chunk\r\n\r\n"),
        ("chunk\r\n", "chunkk\r\n"),
    ] {
        assert_refused(&replaced(Mode::UnsignedTrailer, from, to), "IncompleteBody");
    }
    for mode in [
        Mode::UnsignedTrailer,
        Mode::SignedChunks,
        Mode::SignedChunksTrailer,
    ] {
        let mut upload = Upload::new(mode, &[b"first-chunk", b"second"]);
        upload.body.extend(b"\r\n");
        assert_refused(&upload, "IncompleteBody");
    }
    let unsigned = Upload {
        mode: Mode::SignedChunks,
        ..Upload::new(Mode::UnsignedTrailer, &[b"first-chunk"])
    };
    let unsigned = Upload {
        headers: with_decoded_length(Mode::SignedChunks, "11").headers,
        ..unsigned
    };
    assert_refused(&unsigned, "IncompleteBody");
}
