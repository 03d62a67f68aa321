//! Reads from a store that gives prepared answers.

use std::collections::VecDeque;

use futures::FutureExt as _;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use parking_lot::Mutex;

use super::*;

/// Answers in their order, and the requests.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Head>>,
    requests: Mutex<Vec<HeaderMap>>,
}

#[derive(Debug, Clone)]
struct Head(StatusCode, HeaderMap);

impl AnswerHead for Head {
    fn status(&self) -> StatusCode {
        self.0
    }

    fn headers(&self) -> &HeaderMap {
        &self.1
    }

    fn content_length(&self) -> Option<u64> {
        self.1.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

impl RangeTransport for Script {
    type Answer = Head;
    type Error = &'static str;

    async fn get(&self, headers: HeaderMap) -> Result<Head, &'static str> {
        self.requests.lock().push(headers);
        self.answers.lock().pop_front().ok_or("no answer")
    }
}

fn script(answers: impl IntoIterator<Item = Head>) -> Script {
    Script {
        answers: Mutex::new(answers.into_iter().collect()),
        ..Script::default()
    }
}

fn head(status: u16, headers: &[(http::HeaderName, &'static str)]) -> Head {
    let headers = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
    Head(StatusCode::from_u16(status).unwrap(), headers.collect())
}

fn part(range: &'static str, etag: &'static str) -> Head {
    head(206, &[(CONTENT_RANGE, range), (ETAG, etag)])
}

fn version() -> ObjectVersion {
    ObjectVersion {
        etag: HeaderValue::from_static("\"a\""),
        total_bytes: 10,
    }
}

type Failure = ReadError<Head, &'static str>;

fn suffix(answers: impl IntoIterator<Item = Head>) -> Result<SuffixAnswer<Head>, Failure> {
    read_suffix(&script(answers), 4).now_or_never().unwrap()
}

fn range(answer: Head) -> Result<Head, Failure> {
    let script = script([answer]);
    version().read_range(&script, &(2..5)).now_or_never().unwrap()
}

#[test]
fn a_suffix_determines_the_version() {
    let script = script([part("bytes 6-9/10", "\"a\"")]);
    let answer = read_suffix(&script, 4).now_or_never().unwrap().unwrap();
    let SuffixAnswer::Part {
        version: found,
        range,
        ..
    } = answer
    else {
        panic!("{answer:?}");
    };
    assert_eq!((found, range.range), (version(), 6..10));
    assert_eq!(script.requests.lock()[0][RANGE], "bytes=-4");
}

#[test]
fn a_suffix_that_is_none_is_refused() {
    for range in ["bytes 5-8/10", "bytes 6-9/*"] {
        assert!(matches!(
            suffix([part(range, "\"a\"")]),
            Err(ReadError::Mismatch(_))
        ));
    }
    let without_etag = head(206, &[(CONTENT_RANGE, "bytes 6-9/10")]);
    assert!(matches!(suffix([without_etag]), Err(ReadError::MissingEtag)));
    assert!(matches!(suffix([]), Err(ReadError::Transport("no answer"))));
}

#[test]
fn an_empty_object_is_requested_whole() {
    let script = script([head(416, &[]), head(200, &[])]);
    let answer = read_suffix(&script, 4).now_or_never().unwrap().unwrap();
    assert!(matches!(answer, SuffixAnswer::Other(Head(StatusCode::OK, _))));
    assert!(script.requests.lock()[1].is_empty());
    let answer = suffix([head(403, &[])]).unwrap();
    assert!(matches!(
        answer,
        SuffixAnswer::Other(Head(StatusCode::FORBIDDEN, _))
    ));
}

#[test]
fn ranges_are_of_the_same_version() {
    let script = script([part("bytes 2-4/10", "\"a\"")]);
    let answer = version().read_range(&script, &(2..5)).now_or_never().unwrap();
    assert_eq!(answer.unwrap().status(), StatusCode::PARTIAL_CONTENT);
    let requests = script.requests.lock();
    assert_eq!(
        (&requests[0][RANGE], &requests[0][IF_MATCH]),
        (
            &HeaderValue::from_static("bytes=2-4"),
            &HeaderValue::from_static("\"a\"")
        )
    );
    for answer in [
        part("bytes 2-4/10", "\"b\""),
        part("bytes 2-4/11", "\"a\""),
        head(206, &[(CONTENT_RANGE, "bytes 2-4/10")]),
        head(412, &[]),
        head(416, &[]),
    ] {
        assert!(
            matches!(range(answer.clone()), Err(ReadError::Replaced)),
            "{answer:?}"
        );
    }
    assert!(matches!(
        range(part("bytes 2-5/10", "\"a\"")),
        Err(ReadError::Mismatch(_))
    ));
    for status in [200, 403, 404, 503] {
        assert!(matches!(
            range(head(status, &[])),
            Err(ReadError::UnexpectedStatus(_))
        ));
    }
}

#[test]
fn a_whole_object_is_of_the_same_version() {
    let read = |answer| version().read_whole(&script([answer])).now_or_never().unwrap();
    let whole = |length, etag| head(200, &[(CONTENT_LENGTH, length), (ETAG, etag)]);
    assert!(read(whole("10", "\"a\"")).is_ok());
    for answer in [whole("9", "\"a\""), whole("10", "\"b\""), head(412, &[])] {
        assert!(matches!(read(answer), Err(ReadError::Replaced)));
    }
    assert!(matches!(
        read(part("bytes 0-9/10", "\"a\"")),
        Err(ReadError::UnexpectedStatus(_))
    ));
}
