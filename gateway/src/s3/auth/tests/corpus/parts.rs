//! Parts of signed requests, and requests with another one.

use super::*;

pub(super) fn with(
    request: &testkit::Request,
    change: impl FnOnce(&mut testkit::Request),
) -> testkit::Request {
    let mut changed = request.clone();
    change(&mut changed);
    changed
}

pub(super) fn path_and_query(request: &testkit::Request) -> (&str, &str) {
    request.target.split_once('?').unwrap_or((&request.target, ""))
}

pub(super) fn with_target(request: &testkit::Request, path: &str, query: &str) -> testkit::Request {
    let question = if query.is_empty() { "" } else { "?" };
    with(request, |changed| {
        changed.target = format!("{path}{question}{query}");
    })
}

pub(super) fn is_presigned(request: &testkit::Request) -> bool {
    request.target.contains("X-Amz-Signature=")
}

/// The text with the signature, decoded.
fn signature_text(request: &testkit::Request) -> String {
    if is_presigned(request) {
        request.target.replace("%2F", "/").replace("%3B", ";")
    } else {
        header(request, "authorization").to_owned()
    }
}

/// The part of the text with the signature between a name and the next separator.
fn field(request: &testkit::Request, name: &str) -> String {
    let text = signature_text(request);
    let (_, value) = text.split_once(&format!("{name}=")).unwrap();
    value.split([',', '&', ' ']).next().unwrap().to_owned()
}

fn credential(request: &testkit::Request) -> String {
    field(request, "Credential")
}

pub(super) fn signed_headers(request: &testkit::Request) -> Vec<String> {
    field(request, "SignedHeaders")
        .split(';')
        .map(str::to_owned)
        .collect()
}

pub(super) fn signature(request: &testkit::Request) -> String {
    field(request, "Signature")
}

fn escaped(text: &str) -> String {
    text.replace('/', "%2F").replace(';', "%3B")
}

/// The request with a part of the text with the signature replaced.
pub(super) fn replaced(request: &testkit::Request, from: &str, to: &str) -> testkit::Request {
    with(request, |changed| {
        changed.target = changed.target.replace(&escaped(from), &escaped(to));
        for (name, value) in &mut changed.headers {
            if name.eq_ignore_ascii_case("authorization") {
                *value = value.replace(from, to);
            }
        }
    })
}

/// Adds the signature of a request to another one, in the place where it was not.
pub(super) fn add_other_carrier(plain: &testkit::Request, request: &testkit::Request) -> testkit::Request {
    let names = signed_headers(request).join(";");
    let (credential, signature) = (credential(request), signature(request));
    if is_presigned(request) {
        let (_, query) = path_and_query(request);
        let timestamp = Query::parse(query).unwrap().decoded(presign::DATE).unwrap();
        let authorization = format!(
            "{ALGORITHM} Credential={credential}, SignedHeaders={names};x-amz-date, Signature={signature}"
        );
        return plain
            .clone()
            .header("authorization", &authorization)
            .header("x-amz-date", &timestamp)
            .header("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
    }
    let (path, query) = path_and_query(plain);
    let separator = if query.is_empty() { "" } else { "&" };
    let (credential, names) = (escaped(&credential), escaped(&names));
    let timestamp = header(request, "x-amz-date");
    let query = format!(
        "{query}{separator}X-Amz-Algorithm={ALGORITHM}&X-Amz-Credential={credential}&X-Amz-Date={timestamp}&X-Amz-Expires=300\
         &X-Amz-SignedHeaders={names}&X-Amz-Signature={signature}"
    );
    with_target(plain, path, &query)
}
