mod corpus;
mod oracle;
mod refusals;
mod vectors;

use std::time::{Duration, UNIX_EPOCH};

use http::Request;
use pushdown_testkit as testkit;

use super::*;

const ACCESS_KEY: &str = "TESTTRAINER00001";
const SECRET: &str = "one-secret-of-a-test";
const HOST: &str = "bucket.s3.test:9000";

/// When requests are signed and verified: 2023-11-14T22:13:20Z.
fn signing_time() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

/// The oracle: `aws-sigv4`, without normalization and double encoding.
fn signer() -> testkit::Keys {
    testkit::Keys::new(ACCESS_KEY, SECRET).with_time(signing_time())
}

fn keys() -> Keys {
    Keys::for_test(&[(ACCESS_KEY, SECRET)])
}

fn verifier() -> Verifier {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Verifier::new(
        texts(&["us-east-1", "eu-central-1"]),
        texts(&["s3.test", "s3.amazonaws.com"]),
        Vec::new(),
    )
}

impl Verifier {
    /// Verifies a request, at the address that it was sent to.
    fn verify_sent(&self, head: &Parts, keys: &Keys, now: SystemTime) -> Result<Verified, AuthError> {
        self.verify(head, self.address(head), keys, now)
    }
}

/// The head of a request as the server parses it.
fn parts(request: &testkit::Request) -> Parts {
    let mut builder = Request::builder()
        .method(request.method.as_str())
        .uri(request.target.as_str());
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    builder.body(()).unwrap().into_parts().0
}

fn verify(request: &testkit::Request) -> Result<Verified, AuthError> {
    verifier().verify_sent(&parts(request), &keys(), signing_time())
}

/// Why a request is refused.
fn refusal(request: &testkit::Request) -> AuthError {
    verify(request).expect_err("a refused request")
}

fn get(target: &str) -> testkit::Request {
    testkit::Request::new("GET", target).header("host", HOST)
}

fn signed(request: testkit::Request) -> testkit::Request {
    signer().sign(request, testkit::Payload::Signed).unwrap()
}

fn presigned(request: testkit::Request) -> testkit::Request {
    signer().presign(request, Duration::from_mins(5)).unwrap()
}

/// Replaces all values of a header by one.
fn with_header(request: &testkit::Request, name: &str, value: &str) -> testkit::Request {
    without_header(request, name).header(name, value)
}

fn without_header(request: &testkit::Request, name: &str) -> testkit::Request {
    let mut request = request.clone();
    request
        .headers
        .retain(|(found, _)| !found.eq_ignore_ascii_case(name));
    request
}

fn header<'a>(request: &'a testkit::Request, name: &str) -> &'a str {
    let mut headers = request.headers.iter();
    let found = headers.find(|(found, _)| found.eq_ignore_ascii_case(name));
    &found.unwrap().1
}
