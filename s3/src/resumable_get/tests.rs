//! A store that gives prepared answers, some of which break off.

use std::{collections::VecDeque, future::pending};

use futures::FutureExt as _;
use http::header::CONTENT_RANGE;
use parking_lot::Mutex;

use super::*;

use Step::{Break, Piece, Wait};

/// What an answer does next.
#[derive(Debug, Clone, Copy)]
enum Step {
    Piece(&'static str),
    Break,
    Wait,
}

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: Box<HeaderMap>,
    steps: VecDeque<Step>,
}

impl AnswerHead for Answer {
    fn status(&self) -> StatusCode {
        self.status
    }

    fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    fn content_length(&self) -> Option<u64> {
        None
    }
}

impl AnswerBody for Answer {
    type Error = &'static str;

    async fn chunk(&mut self) -> Result<Option<Bytes>, &'static str> {
        match self.steps.front() {
            None => Ok(None),
            Some(Piece(piece)) => {
                let piece = Bytes::from_static(piece.as_bytes());
                self.steps.pop_front();
                Ok(Some(piece))
            }
            Some(Break) => Err("broken"),
            Some(Wait) => {
                self.steps.pop_front();
                pending().await
            }
        }
    }
}

/// Answers in their order, and the values of `Range` and `If-Match` of the requests.
struct Store {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<(Option<String>, Option<String>)>>,
}

impl RangeTransport for Store {
    type Answer = Answer;
    type Error = &'static str;

    async fn get(&self, headers: HeaderMap) -> Result<Answer, &'static str> {
        let text = |name| Some(headers.get(name)?.to_str().ok()?.to_owned());
        self.requests.lock().push((text(RANGE), text(IF_MATCH)));
        self.answers.lock().pop_front().ok_or("no answer")
    }
}

impl Store {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
        }
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.requests
            .lock()
            .iter()
            .map(|(range, _)| range.clone())
            .collect()
    }
}

fn answer(status: u16, range: Option<&'static str>, etag: &'static str, steps: &[Step]) -> Answer {
    let mut headers = HeaderMap::new();
    if !etag.is_empty() {
        headers.insert(ETAG, HeaderValue::from_static(etag));
    }
    if let Some(range) = range {
        headers.insert(CONTENT_RANGE, HeaderValue::from_static(range));
    }
    Answer {
        status: StatusCode::from_u16(status).unwrap(),
        headers: Box::new(headers),
        steps: steps.iter().copied().collect(),
    }
}

fn whole(etag: &'static str, steps: &[Step]) -> Answer {
    answer(200, None, etag, steps)
}

fn part(range: &'static str, steps: &[Step]) -> Answer {
    answer(206, Some(range), "\"a\"", steps)
}

type Failure = ReadError<Answer, &'static str>;

fn chunk(get: &mut ResumableGet<Answer>, store: &Store) -> Result<Option<Bytes>, Failure> {
    get.chunk(store).now_or_never().unwrap()
}

/// Reads to the end, and passes over bodies that break off.
fn read(get: &mut ResumableGet<Answer>, store: &Store) -> Result<String, Failure> {
    let mut text = String::new();
    loop {
        match chunk(get, store) {
            Ok(Some(piece)) => text.push_str(&String::from_utf8_lossy(&piece)),
            Ok(None) => return Ok(text),
            Err(ReadError::Transport("broken")) => {}
            Err(error) => return Err(error),
        }
    }
}

fn etag() -> HeaderValue {
    HeaderValue::from_static("\"a\"")
}

fn range_get(range: Range<u64>) -> ResumableGet<Answer> {
    ResumableGet::range(etag(), range, 8)
}

#[test]
fn a_body_that_breaks_off_is_continued_in_the_same_version() {
    let store = Store::new([
        whole("\"a\"", &[Piece("01"), Piece("23"), Break]),
        part("bytes 4-9/10", &[Break]),
        part("bytes 4-9/10", &[Piece("456789")]),
    ]);
    let mut get = ResumableGet::whole(None);
    assert_eq!(read(&mut get, &store).unwrap(), "0123456789");
    assert_eq!((get.position(), get.etag()), (10, Some(&etag())));
    let rest = || (Some("bytes=4-".to_owned()), Some("\"a\"".to_owned()));
    assert_eq!(*store.requests.lock(), [(None, None), rest(), rest()]);
    // The end stays the end.
    assert_eq!(read(&mut get, &store).unwrap(), "");
}

#[test]
fn a_range_is_continued_up_to_its_end() {
    let store = Store::new([
        part("bytes 2-5/10", &[Piece("23"), Break]),
        part("bytes 4-5/10", &[Piece("45"), Break]),
    ]);
    let mut get = range_get(2..6);
    assert_eq!(read(&mut get, &store).unwrap(), "2345");
    let ranges = ["bytes=2-5", "bytes=4-5"].map(|range| Some(range.to_owned()));
    assert_eq!(store.ranges(), ranges);
}

#[test]
fn bytes_before_the_position_of_a_store_without_ranges_are_discarded() {
    let object = &[Piece("012"), Piece("3456"), Piece("789")];
    let store = Store::new([
        whole("\"a\"", &[Piece("012"), Piece("3"), Break]),
        whole("\"a\"", object),
    ]);
    assert_eq!(
        read(&mut ResumableGet::whole(None), &store).unwrap(),
        "0123456789"
    );
    let store = Store::new([whole("\"a\"", object)]);
    assert_eq!(chunk(&mut range_get(4..8), &store).unwrap().unwrap(), "456");
    let store = Store::new([whole("\"a\"", object)]);
    let refused = chunk(&mut range_get(4..9), &store);
    assert!(matches!(
        refused,
        Err(ReadError::UnexpectedStatus(answer)) if answer.status == StatusCode::OK
    ));
}

#[test]
fn nothing_is_requested_or_delivered_after_the_end_of_a_range() {
    let store = Store::new([whole("\"a\"", &[Piece("0123456789"), Break])]);
    let mut get = range_get(2..6);
    assert_eq!(read(&mut get, &store).unwrap(), "2345");
    assert_eq!((get.position(), store.ranges().len()), (6, 1));
}

#[test]
fn another_version_ends_the_read() {
    let begun = || whole("\"a\"", &[Piece("01"), Break]);
    for other in [
        answer(412, None, "", &[]),
        answer(206, Some("bytes 2-9/10"), "\"b\"", &[]),
        answer(206, Some("bytes 2-9/10"), "", &[]),
        whole("\"b\"", &[]),
    ] {
        let store = Store::new([begun(), other]);
        let ended = read(&mut ResumableGet::whole(None), &store);
        assert!(matches!(ended, Err(ReadError::Replaced)), "{ended:?}");
    }
    let store = Store::new([begun(), part("bytes 3-9/10", &[])]);
    let ended = read(&mut ResumableGet::whole(None), &store);
    assert!(matches!(ended, Err(ReadError::Mismatch(_))), "{ended:?}");
    for status in [403, 416, 503] {
        let store = Store::new([begun(), answer(status, None, "", &[])]);
        let ended = read(&mut ResumableGet::whole(None), &store);
        assert!(matches!(ended, Err(ReadError::UnexpectedStatus(_))), "{ended:?}");
    }
}

#[test]
fn an_answer_without_a_version_is_not_continued() {
    let store = Store::new([whole("", &[Piece("01"), Break]), whole("", &[])]);
    let ended = read(&mut ResumableGet::whole(None), &store);
    assert!(matches!(ended, Err(ReadError::MissingEtag)), "{ended:?}");
    // Nothing has arrived that could be of another version.
    let store = Store::new([whole("", &[Break]), whole("", &[Piece("01")])]);
    assert_eq!(read(&mut ResumableGet::whole(None), &store).unwrap(), "01");
}

#[test]
fn bytes_that_are_left_out_are_not_requested_again() {
    let store = Store::new([
        part("bytes 0-8/10", &[Piece("01"), Piece("23"), Piece("45"), Break]),
        part("bytes 8-8/10", &[Piece("8")]),
    ]);
    let mut get = range_get(0..9);
    assert_eq!(chunk(&mut get, &store).unwrap().unwrap(), "01");
    get.skip_to(5);
    assert_eq!(chunk(&mut get, &store).unwrap().unwrap(), "5");
    assert!(chunk(&mut get, &store).is_err() && get.answer().is_none());
    get.skip_to(8);
    assert_eq!(read(&mut get, &store).unwrap(), "8");
    assert_eq!(store.ranges()[1].as_deref(), Some("bytes=8-8"));
}

#[test]
fn a_dropped_future_loses_no_bytes() {
    let store = Store::new([part("bytes 0-3/10", &[Piece("01"), Wait, Piece("23")])]);
    let mut get = range_get(0..4);
    assert_eq!(chunk(&mut get, &store).unwrap().unwrap(), "01");
    assert!(get.chunk(&store).now_or_never().is_none());
    assert_eq!(read(&mut get, &store).unwrap(), "23");
    assert_eq!(store.ranges().len(), 1);
}
