//! Any bytes as the body of an upload in `aws-chunked` framing: however it is cut, the gateway accepts what a plain reading of the whole
//! accepts, and sends the same bytes to the store. Of a body that it refuses, the store gets no end.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::executor::block_on;
use futures::stream;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown_gateway::testing::{self, ChunkSeed, PayloadMode, Verifier, VerifyingBody};
use pushdown_testkit::{ChunkedBody, Keys, Payload, Request};

const MODES: [PayloadMode; 3] = [
    PayloadMode::UnsignedTrailer,
    PayloadMode::SignedChunks,
    PayloadMode::SignedChunksTrailer,
];

const ACCESS_KEY: &str = "FUZZEDACCESSKEY1";
const SECRET_KEY: &str = "a secret of this target";

/// The name of the only trailer.
const TRAILER: &str = "x-amz-checksum-crc32";

/// The keys, the signature of a head, and what its verification returns for the chunks.
static HEAD: LazyLock<(Keys, String, ChunkSeed)> = LazyLock::new(|| match sign_head() {
    Some(head) => head,
    None => panic!("cannot sign a request"),
});

/// Checks a body. The first four bytes choose the mode, the size of pieces, and a byte to change. For signed modes, unsigned framing
/// is signed before the change: no input would have a correct signature otherwise.
pub fn chunked(input: &[u8]) {
    let Some((&[mode, piece_bytes, at, change], body)) = input.split_first_chunk::<4>() else {
        return;
    };
    let mode = MODES[usize::from(mode) % MODES.len()];
    let mut body = body.to_vec();
    if mode.has_signed_chunks()
        && let Some(unsigned) = ChunkedBody::parse(&body, false)
    {
        body = sign(unsigned).encode();
        let at = usize::from(at) * body.len() / 256;
        body[at] ^= change;
    }
    let parsed = ChunkedBody::parse(&body, mode.has_signed_chunks());
    let trailers: &[&str] = if mode == PayloadMode::SignedChunks {
        &[]
    } else {
        &[TRAILER]
    };
    let length = parsed.as_ref().map_or(0, |parsed| parsed.data().len() as u64);
    // Some bodies have another length than their head declares.
    let decoded_bytes = length + u64::from(at == u8::MAX);
    let accepted = parsed
        .filter(|parsed| parsed.matches(decoded_bytes, trailers))
        .filter(|parsed| !mode.has_signed_chunks() || sign(parsed.clone()) == *parsed);
    let expected = accepted.map(|parsed| match mode {
        PayloadMode::SignedChunks => parsed.data(),
        PayloadMode::SignedChunksTrailer => {
            let data = parsed.data();
            let chunks: Vec<_> = data.chunks(64 << 10).collect();
            ChunkedBody::unsigned(&chunks, parsed.trailers).encode()
        }
        _ => body.clone(),
    });
    let headers = head(decoded_bytes, trailers);
    let pieces = body.chunks(usize::from(piece_bytes).max(1));
    let (output, is_accepted) = verify(mode, &headers, pieces);
    let Some(expected) = expected else {
        assert!(!is_accepted, "{mode:?}: accepted {output:?}");
        let has_end = match mode {
            PayloadMode::SignedChunks => decoded_bytes > 0 && output.len() as u64 >= decoded_bytes,
            _ => ChunkedBody::parse(&output, false).is_some(),
        };
        assert!(!has_end, "{mode:?}: refused, but {output:?} was sent");
        return;
    };
    assert!(
        is_accepted && output == expected,
        "{mode:?}: expected {expected:?}, found {output:?}, accepted: {is_accepted}"
    );
}

/// What is sent to the store, and whether the body is accepted.
fn verify<'a>(
    mode: PayloadMode,
    headers: &HeaderMap,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> (Vec<u8>, bool) {
    let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(piece))));
    let body = StreamBody::new(stream::iter(frames));
    let seed = mode.has_signed_chunks().then(|| HEAD.2.clone());
    let Ok(mut body) = VerifyingBody::new(body, mode, seed, headers) else {
        panic!("the head is correct");
    };
    let mut output = Vec::new();
    block_on(async {
        loop {
            match body.frame().await {
                Some(Ok(frame)) => output.extend(frame.into_data().unwrap_or_default()),
                Some(Err(_)) => return (output, false),
                None => return (output, true),
            }
        }
    })
}

/// The headers that declare a body.
fn head(decoded_bytes: u64, trailers: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-decoded-content-length", HeaderValue::from(decoded_bytes));
    if !trailers.is_empty() {
        headers.insert("x-amz-trailer", HeaderValue::from_static(TRAILER));
    }
    headers
}

fn sign(body: ChunkedBody) -> ChunkedBody {
    let (keys, signature, _) = &*HEAD;
    match keys.sign_chunks(body, signature) {
        Ok(signed) => signed,
        Err(error) => panic!("cannot sign chunks: {error:#}"),
    }
}

fn sign_head() -> Option<(Keys, String, ChunkSeed)> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_hours(380_376);
    let keys = Keys::new(ACCESS_KEY, SECRET_KEY).with_time(time);
    let request = Request::new("PUT", "/bucket/key").header("host", "gateway");
    let signed = keys.sign(request, Payload::Chunks).ok()?;
    let mut request = http::Request::put("/bucket/key");
    let mut signature = None;
    for (name, value) in &signed.headers {
        request = request.header(name, value);
        signature = signature.or_else(|| value.split_once("Signature=").map(|(_, digits)| digits));
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    let verifier = Verifier::new(vec!["us-east-1".to_owned()], Vec::new(), Vec::new());
    let known = testing::Keys::for_test(&[(ACCESS_KEY, SECRET_KEY)]);
    let verified = verifier
        .verify(&parts, verifier.address(&parts), &known, time)
        .ok()?;
    Some((keys, signature?.to_owned(), verified.chunk_seed()?.clone()))
}
