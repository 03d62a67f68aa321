//! The oracle is `aws-sigv4`: what it signs is accepted, and nothing else.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A request before it is signed, and what it should mean.
#[derive(Debug, Clone)]
struct Case {
    request: testkit::Request,
    key: String,
    parameters: usize,
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// Any key, query and headers: spaces, slashes, dots, percent signs and other alphabets, repeated headers, empty values.
fn case() -> impl Strategy<Value = Case> {
    let method = prop::sample::select(vec!["GET", "PUT", "HEAD", "DELETE", "POST"]);
    let parameters = prop::collection::btree_map("[a-z][ -~é]{0,6}", "[ -~é]{0,8}", 0..4);
    let header = ("x-amz-meta-[a-c]", "[ -~]{0,12}");
    (
        method,
        "[ -~é日]{1,24}",
        parameters.prop_map(Vec::from_iter).prop_shuffle(),
        prop::collection::vec(header, 0..4),
    )
        .prop_map(|(method, key, parameters, headers)| {
            let segments: Vec<_> = key.split('/').map(encode).collect();
            let pairs: Vec<_> = parameters
                .iter()
                .map(|(name, value)| match value.as_str() {
                    "" => encode(name),
                    value => format!("{}={}", encode(name), encode(value)),
                })
                .collect();
            let question = if pairs.is_empty() { "" } else { "?" };
            let target = format!("/{}{question}{}", segments.join("/"), pairs.join("&"));
            let mut request = testkit::Request::new(method, &target).header("host", HOST);
            request.headers.extend(headers);
            Case {
                request,
                key,
                parameters: parameters.len(),
            }
        })
}

fn payload() -> impl Strategy<Value = testkit::Payload> {
    use testkit::Payload::{Chunks, ChunksAndTrailer, Signed, Trailer, Unsigned};
    prop::sample::select(vec![Signed, Unsigned, Chunks, ChunksAndTrailer, Trailer])
}

fn expected_mode(payload: testkit::Payload, body: &[u8]) -> PayloadMode {
    match payload {
        testkit::Payload::Signed => PayloadMode::Hash(<Sha256 as sha2::Digest>::digest(body).into()),
        testkit::Payload::Unsigned => PayloadMode::Unsigned,
        testkit::Payload::Chunks => PayloadMode::SignedChunks,
        testkit::Payload::ChunksAndTrailer => PayloadMode::SignedChunksTrailer,
        testkit::Payload::Trailer => PayloadMode::UnsignedTrailer,
    }
}

fn assert_means(verified: &Verified, case: &Case) {
    assert_eq!(verified.key().access_key(), ACCESS_KEY);
    assert_eq!(verified.address().bucket(), b"bucket");
    assert_eq!(verified.address().key(), case.key.as_bytes());
    assert_eq!(verified.query().pairs().count(), case.parameters);
}

/// The text with another character at one place.
fn changed(text: &str, at: prop::sample::Index) -> String {
    let mut characters: Vec<_> = text.chars().collect();
    if characters.is_empty() {
        return "x".to_owned();
    }
    let at = at.index(characters.len());
    characters[at] = if characters[at] == 'x' { 'y' } else { 'x' };
    characters.into_iter().collect()
}

/// Requests that differ from a signed one in one byte of the path, the query, or a signed header, or in their method.
fn changes(request: &testkit::Request, at: prop::sample::Index) -> Vec<testkit::Request> {
    let mut all = Vec::new();
    let (path, query) = request
        .target
        .split_once('?')
        .map_or((request.target.as_str(), None), |(path, query)| {
            (path, Some(query))
        });
    let mut other = |change: &dyn Fn(&mut testkit::Request)| {
        let mut copy = request.clone();
        change(&mut copy);
        all.push(copy);
    };
    let separator = query.map_or("", |_| "?");
    let other_path = changed(&path[1..], at);
    other(&|copy| copy.target = format!("/{other_path}{separator}{}", query.unwrap_or_default()));
    if let Some(query) = query {
        other(&|copy| copy.target = format!("{path}?{}", changed(query, at)));
    }
    let method = if request.method == "PUT" { "GET" } else { "PUT" };
    other(&|copy| copy.method = method.to_owned());
    for (index, (name, value)) in request.headers.iter().enumerate() {
        let value = match name.as_str() {
            "host" => "bucket.s3.test:9001".to_owned(),
            "authorization" => continue,
            "x-amz-date" => "20231114T221321Z".to_owned(),
            _ => changed(value, at),
        };
        other(&|copy| copy.headers[index].1.clone_from(&value));
    }
    all
}

proptest! {
    #[test]
    fn what_the_oracle_signs_in_a_header_is_accepted(case in case(), payload in payload(), body in "[ -~]{0,32}") {
        let request = case.request.clone().body(body.as_bytes());
        let signed = signer().sign(request, payload).unwrap();
        let verified = verify(&signed).unwrap();
        assert_means(&verified, &case);
        prop_assert_eq!(verified.carrier(), Carrier::Header);
        prop_assert_eq!(verified.payload(), expected_mode(payload, body.as_bytes()));
        prop_assert_eq!(verified.chunk_seed().is_some(), verified.payload().has_signed_chunks());
    }

    #[test]
    fn what_the_oracle_presigns_is_accepted(case in case()) {
        let verified = verify(&presigned(case.request.clone())).unwrap();
        assert_means(&verified, &case);
        prop_assert_eq!(verified.carrier(), Carrier::Query);
        prop_assert_eq!(verified.payload(), PayloadMode::Unsigned);
    }

    #[test]
    fn a_repeated_parameter_is_refused(case in case(), is_presigned in any::<bool>(), value in "[a-z]{0,4}") {
        let mut request = case.request;
        let separator = if case.parameters == 0 { '?' } else { '&' };
        request.target = format!("{}{separator}again={value}&%61gain=1", request.target);
        let request = if is_presigned { presigned(request) } else { signed(request) };
        prop_assert!(verify(&request).is_err(), "{}", request.target);
    }

    #[test]
    fn a_changed_request_is_refused(case in case(), is_presigned in any::<bool>(), at in any::<prop::sample::Index>()) {
        let request = if is_presigned { presigned(case.request) } else { signed(case.request) };
        prop_assert!(verify(&request).is_ok());
        for changed in changes(&request, at) {
            prop_assert!(verify(&changed).is_err(), "{changed:?}");
        }
    }

    #[test]
    fn an_added_amz_header_is_refused(case in case(), is_presigned in any::<bool>(), name in "x-amz-[d-z]{1,8}") {
        let request = if is_presigned { presigned(case.request) } else { signed(case.request) };
        prop_assert_eq!(
            verify(&request.header(&name, "1")).unwrap_err(),
            AuthError::UnsignedHeaders { names: name }
        );
    }
}
