//! Changes of a signed request, each of which must be refused. A change that does not apply to a request returns nothing.

use chrono::{DateTime, Utc};

use super::parts::{
    add_other_carrier, is_presigned, path_and_query, replaced, signature, signed_headers, with, with_target,
};
use super::*;

type Change = fn(&testkit::Request) -> Vec<testkit::Request>;

const DENIED: &str = "AccessDenied";
const HEADER: &str = "AuthorizationHeaderMalformed";
const QUERY: &str = "AuthorizationQueryParametersError";
const ARGUMENT: &str = "InvalidArgument";
const MISMATCH: &str = "SignatureDoesNotMatch";

/// All changes: name, change, and the codes of the refusals, sorted. Which of them depends on what is changed: without
/// `x-amz-date` the time is missing, and without another signed header the signature is malformed.
#[rustfmt::skip]
pub(super) const CHANGES: [(&str, Change, &[&str]); 16] = [
    ("another method", another_method, &[MISMATCH]),
    ("another path", another_path, &["InvalidURI", MISMATCH]),
    ("another query", another_query, &[DENIED, QUERY, MISMATCH]),
    ("another value of a signed header", another_value, &[DENIED, ARGUMENT, MISMATCH]),
    ("a signed header is missing", missing_header, &[DENIED, HEADER, QUERY]),
    ("a signed header is repeated", repeated_header, &[DENIED, HEADER, QUERY, ARGUMENT, MISMATCH]),
    ("a header is no longer signed", unsigned_header, &[DENIED, QUERY, MISMATCH]),
    ("an unsigned header is added", added_header, &[DENIED, "InvalidToken", MISMATCH]),
    ("another payload", another_payload, &[DENIED, MISMATCH]),
    ("another time", another_time, &[HEADER, QUERY, MISMATCH]),
    ("another scope", another_scope, &[HEADER, QUERY, MISMATCH]),
    ("another key", another_key, &["InvalidAccessKeyId", MISMATCH]),
    ("another signature", another_signature, &[HEADER, QUERY, MISMATCH]),
    ("the other carrier", other_carrier, &[ARGUMENT, MISMATCH]),
    ("two signatures", two_signatures, &[QUERY, ARGUMENT]),
    ("no signature", no_signature, &[DENIED]),
];

const ADDED: [(&str, &str); 4] = [
    ("x-amz-acl", "public-read"),
    ("x-amz-meta-extra", "1"),
    ("x-amz-copy-source", "/another-bucket/secret"),
    ("x-amz-security-token", "token"),
];

const PAYLOADS: [&str; 3] = [
    "UNSIGNED-PAYLOAD",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "0000000000000000000000000000000000000000000000000000000000000000",
];

// What is signed.

fn another_method(request: &testkit::Request) -> Vec<testkit::Request> {
    let other = if request.method == "GET" { "PUT" } else { "GET" };
    let methods = [other.to_owned(), request.method.to_ascii_lowercase()];
    methods
        .map(|method| with(request, |changed| changed.method = method))
        .to_vec()
}

fn another_path(request: &testkit::Request) -> Vec<testkit::Request> {
    let (path, query) = path_and_query(request);
    let rest = &path[1..];
    // `x` and `y` are never a part of an escape.
    let start = &path[..path.len() - 1];
    let last = if path.ends_with('x') { 'y' } else { 'x' };
    let others = [format!("/x{rest}"), format!("{path}/"), format!("{start}{last}")];
    others
        .iter()
        .map(|path| with_target(request, path, query))
        .collect()
}

fn another_query(request: &testkit::Request) -> Vec<testkit::Request> {
    let (path, query) = path_and_query(request);
    let pairs: Vec<_> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    let target = |pairs: &[&str]| with_target(request, path, &pairs.join("&"));
    let added = ["acl", "versionId=null", "x-amz-acl=public-read"];
    let mut others: Vec<_> = added
        .iter()
        .map(|added| target(&[&[*added], &pairs[..]].concat()))
        .collect();
    for (index, pair) in pairs.iter().enumerate() {
        others.push(target(&[&pairs[..index], &pairs[index + 1..]].concat()));
        let longer = if pair.contains('=') {
            format!("{pair}x")
        } else {
            format!("{pair}=x")
        };
        others.push(target(
            &[&pairs[..index], &[&longer], &pairs[index + 1..]].concat(),
        ));
    }
    others
}

fn another_value(request: &testkit::Request) -> Vec<testkit::Request> {
    let change = |name: &String| with_header(request, name, &format!("{}0", header(request, name)));
    signed_headers(request).iter().map(change).collect()
}

fn missing_header(request: &testkit::Request) -> Vec<testkit::Request> {
    let change = |name: &String| without_header(request, name);
    signed_headers(request).iter().map(change).collect()
}

fn repeated_header(request: &testkit::Request) -> Vec<testkit::Request> {
    let change = |name: &String| request.clone().header(name, header(request, name));
    signed_headers(request).iter().map(change).collect()
}

fn unsigned_header(request: &testkit::Request) -> Vec<testkit::Request> {
    let names = signed_headers(request);
    let all = format!("SignedHeaders={}", names.join(";"));
    let without = |left_out: &String| {
        let others: Vec<_> = names
            .iter()
            .filter(|name| *name != left_out)
            .map(String::as_str)
            .collect();
        replaced(request, &all, &format!("SignedHeaders={}", others.join(";")))
    };
    names.iter().map(without).collect()
}

fn added_header(request: &testkit::Request) -> Vec<testkit::Request> {
    ADDED
        .map(|(name, value)| request.clone().header(name, value))
        .to_vec()
}

fn another_payload(request: &testkit::Request) -> Vec<testkit::Request> {
    let name = "x-amz-content-sha256";
    if is_presigned(request) {
        return vec![request.clone().header(name, PAYLOADS[2])];
    }
    let others = PAYLOADS
        .iter()
        .filter(|payload| **payload != header(request, name));
    others
        .map(|payload| with_header(request, name, payload))
        .collect()
}

// What the request says about its signature.

fn another_time(request: &testkit::Request) -> Vec<testkit::Request> {
    let time = time_of(request);
    let second = Duration::from_secs(1);
    let timestamp = |time: SystemTime| DateTime::<Utc>::from(time).format("%Y%m%dT%H%M%SZ").to_string();
    let old = timestamp(time);
    [time - second, time + second, time + Duration::from_hours(24)]
        .map(|time| {
            with(request, |changed| {
                changed.target = changed.target.replace(&old, &timestamp(time));
                for (_, value) in &mut changed.headers {
                    *value = value.replace(&old, &timestamp(time));
                }
            })
        })
        .to_vec()
}

fn another_scope(request: &testkit::Request) -> Vec<testkit::Request> {
    [
        ("/us-east-1/s3/aws4_request", "/mars-1/s3/aws4_request"),
        ("/us-east-1/s3/aws4_request", "/eu-central-1/s3/aws4_request"),
        ("/us-east-1/s3/aws4_request", "/us-east-1/ec2/aws4_request"),
        ("/us-east-1/s3/aws4_request", "/us-east-1/s3/aws5_request"),
        ("/us-east-1/s3/aws4_request", "0/us-east-1/s3/aws4_request"),
    ]
    .map(|(from, to)| replaced(request, from, to))
    .to_vec()
}

fn another_key(request: &testkit::Request) -> Vec<testkit::Request> {
    let another_caller = format!("Credential={OTHER_CALLER}");
    [another_caller.as_str(), "Credential=unknown-"]
        .map(|to| replaced(request, "Credential=", to))
        .to_vec()
}

fn another_signature(request: &testkit::Request) -> Vec<testkit::Request> {
    let signature = signature(request);
    let (start, last) = signature.split_at(63);
    let digit = if last == "0" { "1" } else { "0" };
    [
        format!("{start}{digit}"),
        signature.chars().rev().collect(),
        signature.to_ascii_uppercase(),
        start.to_owned(),
        format!("{signature}0"),
        String::new(),
    ]
    .map(|other| replaced(request, &signature, &other))
    .to_vec()
}

// Where the signature is.

fn other_carrier(request: &testkit::Request) -> Vec<testkit::Request> {
    vec![add_other_carrier(&no_signature(request)[0], request)]
}

fn two_signatures(request: &testkit::Request) -> Vec<testkit::Request> {
    let twice = if is_presigned(request) {
        let (path, query) = path_and_query(request);
        with_target(
            request,
            path,
            &format!("{query}&X-Amz-Signature={}", signature(request)),
        )
    } else {
        request
            .clone()
            .header("authorization", header(request, "authorization"))
    };
    vec![twice, add_other_carrier(request, request)]
}

fn no_signature(request: &testkit::Request) -> Vec<testkit::Request> {
    let (path, query) = path_and_query(request);
    let others: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.starts_with("X-Amz-"))
        .collect();
    vec![without_header(
        &with_target(request, path, &others.join("&")),
        "authorization",
    )]
}
