//! What re-sign mode adds to a request: verification, the decision, and the signature for the store.

#![expect(clippy::unwrap_used, reason = "a failure to set up is a bug in the benchmark")]

use std::{hint::black_box, time::SystemTime};

use criterion::{Criterion, criterion_group, criterion_main};
use http::{HeaderValue, Request, request::Parts};
use pushdown_gateway::{
    access::{Grants, Keys, Needs},
    origin::{SignedPayload, Signer, StoreIdentity},
    s3::{action::Operation, auth::Verifier},
};
use pushdown_testkit::{Keys as CallerKeys, Payload, Request as Raw};

const ACCESS_KEY: &str = "PDBENCHMARKBENCH01";
const SECRET: &str = "a-secret-for-the-benchmark";

/// A signed GET as SDKs send it.
fn signed_get() -> Parts {
    let target = "/photos/train/n01440764/photo_00000042.jpeg?x-id=GetObject";
    let request = Raw::new("GET", target)
        .header("Host", "gateway.example:9900")
        .header("x-amz-checksum-mode", "ENABLED");
    let signed = CallerKeys::new(ACCESS_KEY, SECRET)
        .sign(request, Payload::Signed)
        .unwrap();
    let builder = signed
        .headers
        .iter()
        .fold(Request::get(&signed.target), |builder, (name, value)| {
            builder.header(name, value)
        });
    builder.body(()).unwrap().into_parts().0
}

fn requests(criterion: &mut Criterion) {
    let keys = Keys::for_test(&[(ACCESS_KEY, SECRET)]);
    let regions = vec!["us-east-1".to_owned()];
    let verifier = Verifier::new(regions.clone(), Vec::new(), Vec::new());
    let signer = Signer::new(keys.clone(), &regions[0], StoreIdentity::from_environment());
    let (request, host) = (signed_get(), HeaderValue::from_static("store.example:9000"));
    let verify = || verifier.verify(&request, &keys, SystemTime::now()).unwrap();
    let resign = || {
        let verified = verify();
        let address = verified.address();
        let operation = Operation::new(&request.method, address, verified.query(), &request.headers);
        let allowed = Grants::decide(verified.key(), operation.accesses(), &Needs::default()).unwrap();
        let signing = signer.signing(allowed, verified.secret().clone(), SignedPayload::Empty);
        let mut parts = Request::get("http://store.example:9000/photos/train/n01440764/photo_00000042.jpeg")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        let identity = signing.identity().unwrap();
        signing
            .sign(&mut parts, host.clone(), &regions[0], &identity)
            .unwrap();
        parts
    };
    let mut group = criterion.benchmark_group("re-sign");
    group.bench_function("verify", |bencher| bencher.iter(|| black_box(verify())));
    group.bench_function("verify, decide and sign", |bencher| {
        bencher.iter(|| black_box(resign()));
    });
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
