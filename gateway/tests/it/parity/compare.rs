//! Tells answers apart.

use std::collections::BTreeMap;

use pushdown_testkit::{Request, Response};

/// Headers of the moment.
const MASKED: [&str; 3] = ["date", "x-amz-request-id", "x-amz-id-2"];
const MASKED_ELEMENTS: [&str; 2] = ["RequestId", "HostId"];
/// Where a request ran twice, these differ between the runs.
const MASKED_TWICE: [&str; 1] = ["last-modified"];
const MASKED_ELEMENTS_TWICE: [&str; 4] = ["LastModified", "UploadId", "Initiated", "CreationDate"];

/// The difference between two answers to one request, if there is any.
pub(super) fn read(name: &str, request: &Request, direct: &Response, through: &Response) -> Option<String> {
    let (direct, through) = (view(direct, &[], &[]), view(through, &[], &[]));
    (direct != through).then(|| {
        format!(
            "{name} ({} {})\n  direct:  {direct:?}\n  through: {through:?}",
            request.method, request.target
        )
    })
}

/// The difference between two runs of the same requests, if there is any.
pub(super) fn write(name: &str, direct: &[Response], through: &[Response]) -> Option<String> {
    let view = |answers: &[Response]| -> Vec<View> {
        answers
            .iter()
            .map(|answer| view(answer, &MASKED_TWICE, &MASKED_ELEMENTS_TWICE))
            .collect()
    };
    let (direct, through) = (view(direct), view(through));
    (direct != through).then(|| format!("{name}\n  direct:  {direct:#?}\n  through: {through:#?}"))
}

/// Status and reason, values by name in their order, body.
type View = (u16, String, BTreeMap<String, Vec<String>>, String);

fn view(answer: &Response, masked: &[&str], masked_elements: &[&str]) -> View {
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut body = answer.text();
    for element in MASKED_ELEMENTS.iter().chain(masked_elements) {
        body = mask(&body, element);
    }
    let body_varies = body != answer.text();
    for (name, value) in &answer.headers {
        let name = name.to_ascii_lowercase();
        let varies = MASKED.contains(&name.as_str()) || masked.contains(&name.as_str())
            // A time with a fraction of a second loses its last zeros.
            || (body_varies && name == "content-length");
        let value = if varies {
            "masked".to_owned()
        } else {
            value.clone()
        };
        headers.entry(name).or_default().push(value);
    }
    // Whether its connection lives on is each hop's own affair.
    headers.remove("connection");
    headers.remove("keep-alive");
    (answer.status, answer.reason.clone(), headers, body)
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
