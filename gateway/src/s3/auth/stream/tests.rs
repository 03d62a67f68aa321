mod cuts;
mod examples;
mod lies;
mod pieces;
mod upload;

use std::collections::VecDeque;

use bytes::Bytes;
use futures::executor::block_on;
use http::HeaderMap;
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt as _, StreamBody};
use sha2::{Digest as _, Sha256};

use super::{StreamError, VerifyingBody};
use crate::body::BoxError;
use crate::s3::auth::PayloadMode;
use pieces::{Pieces, code};
use upload::{Mode, Upload, set};

#[test]
fn the_head_must_declare_chunked_bodies() {
    for mode in Mode::ALL {
        let mut upload = Upload::new(mode, &[b"abc"]);
        upload.headers.remove("x-amz-decoded-content-length");
        let is_chunked = mode.is_signed() || mode.has_trailers();
        let expected = if is_chunked {
            Err("MissingContentLength")
        } else {
            Ok(())
        };
        assert_eq!(upload.send(&[], true).1, expected, "{mode:?}");
    }
    let mut upload = Upload::new(Mode::SignedChunks, &[b"abc"]);
    set(&mut upload.headers, "x-amz-trailer", "x-amz-checksum-crc32");
    assert_eq!(upload.send(&[], true).1, Err("MalformedTrailerError"));
}

#[test]
fn signed_chunks_require_a_seed() {
    let upload = Upload::new(Mode::SignedChunks, &[b"abc"]);
    let body = StreamBody::new(futures::stream::empty::<Result<Frame<Bytes>, BoxError>>());
    let refused = VerifyingBody::new(body, PayloadMode::SignedChunks, None, &upload.headers);
    assert!(matches!(refused, Err(StreamError::SignatureMismatch)));
}

#[test]
fn an_error_of_the_client_ends_the_body() {
    let frames = [
        Ok(Frame::data(Bytes::from_static(b"ab"))),
        Err(BoxError::from("connection reset")),
    ];
    let body = StreamBody::new(futures::stream::iter(frames));
    let headers = HeaderMap::new();
    let mut body = VerifyingBody::new(
        body,
        PayloadMode::Hash(Sha256::digest(b"ab").into()),
        None,
        &headers,
    )
    .unwrap();
    block_on(async {
        let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(&data[..], b"a");
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(matches!(error, StreamError::Client(_)), "{error}");
        assert!(body.frame().await.is_none());
    });
}

#[test]
fn an_empty_body_is_verified_before_its_head_is_sent() {
    let verify = |upload: &Upload| {
        let pieces = Pieces {
            left: VecDeque::from([Bytes::copy_from_slice(&upload.body)]),
            content_length: Some(upload.body.len() as u64),
            has_ended: false,
        };
        let body = upload.verify(pieces).unwrap();
        assert!(!body.is_end_stream());
        let content_length = body.content_length();
        let verdict = block_on(body.verify_empty()).map_err(|error| code(&error));
        (content_length, verdict)
    };
    for mode in [Mode::Hash, Mode::Unsigned, Mode::SignedChunks] {
        assert_eq!(verify(&Upload::new(mode, &[])), (Some(0), Ok(())), "{mode:?}");
        let full = verify(&Upload::new(mode, &[b"abc"]));
        assert_eq!(full, (Some(3), Err("IncompleteBody")), "{mode:?}");
    }
    let mut hash = Upload::new(Mode::Hash, &[]);
    hash.hash[0] ^= 1;
    assert_eq!(verify(&hash), (Some(0), Err("XAmzContentSHA256Mismatch")));
    let mut chunks = Upload::new(Mode::SignedChunks, &[]);
    let digit = chunks.body.iter().rposition(u8::is_ascii_hexdigit).unwrap();
    chunks.body[digit] = if chunks.body[digit] == b'0' { b'1' } else { b'0' };
    assert_eq!(verify(&chunks), (Some(0), Err("SignatureDoesNotMatch")));
}
