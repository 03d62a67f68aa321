//! What re-sign mode adds to a request: verification, the decision, and the signature for the store; and to an upload: the
//! verification of its body.

#![expect(clippy::unwrap_used, reason = "a failure to set up is a bug in the benchmark")]

use std::{convert::Infallible, hint::black_box, time::SystemTime};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::{executor::block_on, stream};
use http::{HeaderMap, HeaderValue, Request, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use pushdown_gateway::testing::{
    ChunkSeed, Grants, Keys, Needs, Operation, PayloadMode, SignedPayload, Signer, StoreIdentity, Verifier,
    VerifyingBody,
};
use pushdown_testkit::{ChunkedBody, Keys as CallerKeys, Payload, Request as Raw};
use sha2::{Digest as _, Sha256};

const ACCESS_KEY: &str = "PDBENCHMARKBENCH01";
const REGION: &str = "us-east-1";
const SECRET: &str = "a-secret-for-the-benchmark";
/// Bytes of a body.
const BODY_BYTES: usize = 1 << 20;
/// Bytes of a signed chunk, as SDKs send them, and of a piece that arrives at once.
const CHUNK_BYTES: usize = 64 << 10;

/// The head of a signed request.
fn parts(signed: &Raw) -> Parts {
    let builder = Request::builder()
        .method(signed.method.as_str())
        .uri(&signed.target);
    let builder = signed
        .headers
        .iter()
        .fold(builder, |builder, (name, value)| builder.header(name, value));
    builder.body(()).unwrap().into_parts().0
}

/// A signed GET as SDKs send it.
fn signed_get() -> Parts {
    let target = "/photos/train/n01440764/photo_00000042.jpeg?x-id=GetObject";
    let request = Raw::new("GET", target)
        .header("Host", "gateway.example:9900")
        .header("x-amz-checksum-mode", "ENABLED");
    let signed = CallerKeys::new(ACCESS_KEY, SECRET)
        .sign(request, Payload::Signed)
        .unwrap();
    parts(&signed)
}

/// A verifier, and the only key that it knows.
fn verifier() -> (Verifier, Keys) {
    let verifier = Verifier::new(vec![REGION.to_owned()], Vec::new(), Vec::new());
    (verifier, Keys::for_test(&[(ACCESS_KEY, SECRET)]))
}

fn requests(criterion: &mut Criterion) {
    let (verifier, keys) = verifier();
    let signer = Signer::new(keys.clone(), REGION, StoreIdentity::from_environment());
    let (request, host) = (signed_get(), HeaderValue::from_static("store.example:9000"));
    let verify = || {
        let address = verifier.address(&request);
        verifier
            .verify(&request, address, &keys, SystemTime::now())
            .unwrap()
    };
    let resign = || {
        let verified = verify();
        let address = verified.address();
        let operation = Operation::new(&request.method, address, verified.query(), &request.headers);
        let allowed = Grants::decide(verified.caller(), operation.accesses(), &Needs::default()).unwrap();
        let signing = signer.signing(allowed, address, SignedPayload::Empty);
        let mut parts = Request::get("http://store.example:9000/photos/train/n01440764/photo_00000042.jpeg")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let identity = signing.identity().unwrap();
        signing.sign(&mut parts, host.clone(), REGION, &identity).unwrap();
        parts
    };
    let mut group = criterion.benchmark_group("re-sign");
    group.bench_function("verify", |bencher| bencher.iter(|| black_box(verify())));
    group.bench_function("verify, decide and sign", |bencher| {
        bencher.iter(|| black_box(resign()));
    });
    group.finish();
}

/// A body, and what its head says about it.
struct Upload {
    mode: PayloadMode,
    seed: Option<ChunkSeed>,
    headers: HeaderMap,
    pieces: Vec<Bytes>,
}

impl Upload {
    /// A body whose bytes are sent as they are.
    fn plain(mode: PayloadMode, data: &[u8]) -> Self {
        Self {
            mode,
            seed: None,
            headers: HeaderMap::new(),
            pieces: pieces(data),
        }
    }

    /// A body of signed chunks.
    fn signed_chunks(data: &[u8]) -> Self {
        let keys = CallerKeys::new(ACCESS_KEY, SECRET).with_time(SystemTime::now());
        let request = Raw::new("PUT", "/photos/a").header("Host", "gateway.example:9900");
        let head = keys.sign(request, Payload::Chunks).unwrap();
        let authorization = head
            .headers
            .iter()
            .find_map(|(_, value)| value.split_once("Signature="));
        let (_, signature) = authorization.unwrap();
        let chunks: Vec<_> = data.chunks(CHUNK_BYTES).collect();
        let body = ChunkedBody::unsigned(&chunks, Vec::new());
        let body = keys.sign_chunks(body, signature).unwrap().encode();
        let (verifier, known) = verifier();
        let head = parts(&head);
        let address = verifier.address(&head);
        let verified = verifier
            .verify(&head, address, &known, SystemTime::now())
            .unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("x-amz-decoded-content-length", HeaderValue::from(data.len()));
        Self {
            mode: PayloadMode::SignedChunks,
            seed: verified.chunk_seed().cloned(),
            headers,
            pieces: pieces(&body),
        }
    }

    /// Reads the body to its end as the store does, and returns the number of bytes that the store gets.
    fn verify(&self) -> usize {
        let frames = self.pieces.clone().into_iter();
        let frames = frames.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        let body = StreamBody::new(stream::iter(frames));
        let mut body = VerifyingBody::new(body, self.mode, self.seed.clone(), &self.headers).unwrap();
        block_on(async {
            let mut sent_bytes = 0;
            while let Some(frame) = body.frame().await {
                sent_bytes += frame.unwrap().data_ref().map_or(0, Bytes::len);
            }
            sent_bytes
        })
    }
}

fn pieces(body: &[u8]) -> Vec<Bytes> {
    body.chunks(CHUNK_BYTES).map(Bytes::copy_from_slice).collect()
}

fn bodies(criterion: &mut Criterion) {
    let data: Vec<u8> = (0..=250).cycle().take(BODY_BYTES).collect();
    let hash = Sha256::digest(&data).into();
    let uploads = [
        ("hash", Upload::plain(PayloadMode::Hash(hash), &data)),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", Upload::signed_chunks(&data)),
        ("UNSIGNED-PAYLOAD", Upload::plain(PayloadMode::Unsigned, &data)),
    ];
    let mut group = criterion.benchmark_group("re-sign bodies of 1 MiB");
    group.throughput(Throughput::Bytes(BODY_BYTES as u64));
    for (name, upload) in uploads {
        assert_eq!(upload.verify(), BODY_BYTES, "{name}");
        group.bench_function(name, |bencher| bencher.iter(|| black_box(upload.verify())));
    }
    group.finish();
}

criterion_group!(benches, requests, bodies);
criterion_main!(benches);
