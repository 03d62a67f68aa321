//! Compares answers.

use std::collections::BTreeMap;

use pushdown_testkit::{Request, Response};

/// Headers that differ between any two answers.
const MASKED: [&str; 3] = ["date", "x-amz-request-id", "x-amz-id-2"];
const MASKED_ELEMENTS: [&str; 2] = ["RequestId", "HostId"];
/// Headers and elements that differ between two runs of the same request. Garage gives each upload a version.
const MASKED_BETWEEN_RUNS: [&str; 2] = ["last-modified", "x-amz-version-id"];
const MASKED_ELEMENTS_BETWEEN_RUNS: [&str; 6] = [
    "LastModified",
    "UploadId",
    "Initiated",
    "CreationDate",
    "VersionId",
    "DeleteMarkerVersionId",
];

/// The difference between two answers to one request, if there is any.
pub(super) fn read_difference(
    name: &str,
    request: &Request,
    direct: &Response,
    through: &Response,
) -> Option<String> {
    let (direct, through) = (
        ComparableAnswer::new(direct, &[], &[]),
        ComparableAnswer::new(through, &[], &[]),
    );
    (direct != through).then(|| {
        format!(
            "{name} ({} {})\n  direct:  {direct:?}\n  through: {through:?}",
            request.method, request.target
        )
    })
}

/// The difference between two runs of the same requests, if there is any.
pub(in crate::it) fn write_difference(
    name: &str,
    direct: &[Response],
    through: &[Response],
) -> Option<String> {
    let comparable = |answers: &[Response]| -> Vec<ComparableAnswer> {
        answers
            .iter()
            .map(|answer| ComparableAnswer::new(answer, &MASKED_BETWEEN_RUNS, &MASKED_ELEMENTS_BETWEEN_RUNS))
            .collect()
    };
    let (direct, through) = (comparable(direct), comparable(through));
    (direct != through).then(|| format!("{name}\n  direct:  {direct:#?}\n  through: {through:#?}"))
}

/// The parts of an answer that the store and the gateway must agree on.
#[derive(Debug, PartialEq)]
struct ComparableAnswer {
    status: u16,
    reason: String,
    /// Values by lower-case name, in their order.
    headers: BTreeMap<String, Vec<String>>,
    body: String,
}

impl ComparableAnswer {
    fn new(answer: &Response, masked: &[&str], masked_elements: &[&str]) -> Self {
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut body = answer.text();
        for element in MASKED_ELEMENTS.iter().chain(masked_elements) {
            body = mask(&body, element);
        }
        let body_varies = body != answer.text();
        let body = with_sorted_deletions(body);
        for (name, value) in &answer.headers {
            let name = name.to_ascii_lowercase();
            let varies = MASKED.contains(&name.as_str()) || masked.contains(&name.as_str())
            // Trailing zeros of a fraction of a second are omitted, so the length of a masked body varies.
            || (body_varies && name == "content-length");
            let value = if varies {
                "masked".to_owned()
            } else {
                value.clone()
            };
            headers.entry(name).or_default().push(value);
        }
        // Keeping a connection open is decided for each hop.
        headers.remove("connection");
        headers.remove("keep-alive");
        Self {
            status: answer.status,
            reason: answer.reason.clone(),
            headers,
            body,
        }
    }
}

/// Ceph deletes several objects at the same time, and lists them as they end.
fn with_sorted_deletions(body: String) -> String {
    let (open, close) = ("<Deleted>", "</Deleted>");
    let Some((before, rest)) = body.split_once(open) else {
        return body;
    };
    let Some((deleted, after)) = rest.rsplit_once(close) else {
        return body;
    };
    let between = [close, open].concat();
    let mut deleted: Vec<&str> = deleted.split(&between).collect();
    deleted.sort_unstable();
    [before, open, &deleted.join(&between), close, after].concat()
}

fn mask(body: &str, element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let mut masked = String::with_capacity(body.len());
    let mut rest = body;
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((_, after)) = after.split_once(&close) else {
            break;
        };
        masked.push_str(before);
        masked.push_str("<masked/>");
        rest = after;
    }
    masked.push_str(rest);
    masked
}
