use http::header::AUTHORIZATION;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;

use super::*;
use crate::access::{Access, Action, Grants, Keys, Needs};
use crate::body;
use crate::origin::identity::scripted_source::{ScriptedSource, temporary};
use crate::origin::refusal::{self, CheckedAnswer};
use crate::origin::{IdentityRefresher, SignedPayload, Signer};
use crate::s3::RequestAddress;

const HOME: &str = "us-east-1";
const ACCESS_KEY: &str = "TESTTRAINER00001";
const EXPIRED: &str = "<Error><Code>ExpiredToken</Code></Error>";
const UNKNOWN: &str = "<Error><Code>InvalidAccessKeyId</Code></Error>";

/// A store, and what signs for it.
struct Lab {
    signer: Signer,
    keys: Keys,
    endpoint: Endpoint,
    source: ScriptedSource,
    _refresher: IdentityRefresher,
}

impl Lab {
    /// The gateway gets these credentials one after another.
    async fn start(credentials: impl IntoIterator<Item = Credentials>) -> Self {
        let text = format!(
            "[[key]]\naccess-key = \"{ACCESS_KEY}\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"gateway\"\n\
             [[key.grant]]\nbucket = \"photos\"\nallow = [\"read\"]\n"
        );
        let keys = Keys::from_text(&text).unwrap();
        let source = ScriptedSource::new(credentials.into_iter().map(Some));
        let identity = source.identity();
        let url = Uri::from_static("https://s3.us-east-1.amazonaws.com");
        Self {
            _refresher: identity.start(true).await,
            signer: Signer::new(keys.clone(), HOME, identity),
            keys,
            endpoint: Endpoint::new(url, None, HOME).unwrap(),
            source,
        }
    }

    fn attempts(&self, method: Method) -> Attempts {
        let key = self.keys.get(ACCESS_KEY).unwrap();
        let accesses = [Access::object(Action::Read, "photos", "k")];
        let allowed = Grants::decide(&key, &accesses, &Needs::default()).unwrap();
        let address = RequestAddress::new(b"gateway", "/photos/k", &[]).unwrap();
        let signing = self.signer.signing(allowed, &address, SignedPayload::Empty);
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = Uri::from_static("/photos/k");
        Attempts::new(signing, request.into_parts().0)
    }

    /// The access key and the region of the next attempt.
    fn next(&self, attempts: &mut Attempts) -> (String, String) {
        let head = attempts.next(&self.endpoint).unwrap();
        let authorization = head.headers[AUTHORIZATION].to_str().unwrap();
        let (_, scope) = authorization.split_once("Credential=").unwrap();
        let parts: Vec<&str> = scope.split('/').collect();
        let host = format!("photos.s3.{}.amazonaws.com", parts[2]);
        assert_eq!(head.headers["host"], host);
        (parts[0].to_owned(), parts[2].to_owned())
    }
}

fn signed_with(access_key: &str, region: &str) -> (String, String) {
    (access_key.to_owned(), region.to_owned())
}

fn answer(status: u16, document: &str) -> Response<Body> {
    let mut answer = Response::new(body::full(document.to_owned()));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    answer
}

/// The answer for a bucket of another region.
fn moved_to(region: &'static str) -> Response<Body> {
    let mut answer = answer(301, "");
    let value = HeaderValue::from_static(region);
    answer.headers_mut().insert("x-amz-bucket-region", value);
    answer
}

/// What follows from an answer to the last attempt.
async fn evaluate(
    attempts: &mut Attempts,
    answer: Response<Body>,
    body: Option<&UnsentBody>,
) -> AttemptResult {
    let upstream = attempts.signing().upstream();
    let CheckedAnswer { answer, remedy } = refusal::check(answer, upstream, attempts.method()).await;
    match remedy {
        Some(remedy) => attempts.apply(remedy, answer, body).await,
        None => AttemptResult::Final(answer),
    }
}

fn is_retry(result: &AttemptResult) -> bool {
    matches!(result, AttemptResult::Retry)
}

/// The error for the caller.
fn error(result: AttemptResult) -> ErrorKind {
    match result {
        AttemptResult::Final(answer) => answer.unwrap_err().kind(),
        AttemptResult::Retry => panic!("the request is sent again"),
    }
}

#[tokio::test]
async fn a_region_is_learnt_once() {
    let lab = Lab::start([temporary("first", None)]).await;
    let mut attempts = lab.attempts(Method::GET);
    assert_eq!(lab.next(&mut attempts), signed_with("first", HOME));
    assert!(is_retry(
        &evaluate(&mut attempts, moved_to("eu-central-1"), None).await
    ));
    assert_eq!(lab.next(&mut attempts), signed_with("first", "eu-central-1"));
    // The same region again helps nothing.
    let result = evaluate(&mut attempts, moved_to("eu-central-1"), None).await;
    assert_eq!(error(result), ErrorKind::OriginUnavailable);
    // The next request goes there at once.
    let mut attempts = lab.attempts(Method::GET);
    assert_eq!(lab.next(&mut attempts), signed_with("first", "eu-central-1"));
}

#[tokio::test]
async fn a_second_other_region_is_slow_down() {
    let lab = Lab::start([temporary("first", None)]).await;
    let mut attempts = lab.attempts(Method::GET);
    lab.next(&mut attempts);
    assert!(is_retry(
        &evaluate(&mut attempts, moved_to("eu-central-1"), None).await
    ));
    lab.next(&mut attempts);
    let result = evaluate(&mut attempts, moved_to("ap-south-1"), None).await;
    assert_eq!(error(result), ErrorKind::SlowDown);
}

#[tokio::test(start_paused = true)]
async fn expired_credentials_are_replaced_once() {
    let lab = Lab::start(["first", "second", "third"].map(|name| temporary(name, None))).await;
    let mut attempts = lab.attempts(Method::GET);
    assert_eq!(lab.next(&mut attempts), signed_with("first", HOME));
    assert!(is_retry(
        &evaluate(&mut attempts, answer(400, EXPIRED), None).await
    ));
    assert_eq!(lab.next(&mut attempts), signed_with("second", HOME));
    let result = evaluate(&mut attempts, answer(400, EXPIRED), None).await;
    assert_eq!(error(result), ErrorKind::SlowDown);
    assert_eq!(lab.source.fetches(), 2);
}

#[tokio::test(start_paused = true)]
async fn permanent_credentials_are_never_replaced() {
    let permanent = ["first", "second"].map(|name| Credentials::new(name, "secret", None, None, "test"));
    let lab = Lab::start(permanent).await;
    let mut attempts = lab.attempts(Method::GET);
    lab.next(&mut attempts);
    let result = evaluate(&mut attempts, answer(400, EXPIRED), None).await;
    assert_eq!(error(result), ErrorKind::SlowDown);
    assert_eq!(lab.source.fetches(), 1);
}

/// The answers decide whether clients try again: 503 while the gateway can get others, 403 if only its operator can.
#[tokio::test(start_paused = true)]
async fn unknown_credentials_are_replaced_if_they_can_be() {
    let lab = Lab::start(["first", "second"].map(|name| temporary(name, None))).await;
    let mut attempts = lab.attempts(Method::GET);
    lab.next(&mut attempts);
    assert!(is_retry(
        &evaluate(&mut attempts, answer(403, UNKNOWN), None).await
    ));
    assert_eq!(lab.next(&mut attempts), signed_with("second", HOME));
    let result = evaluate(&mut attempts, answer(403, UNKNOWN), None).await;
    assert_eq!(
        error(result),
        ErrorKind::SlowDown,
        "the store may know them later"
    );

    let lab = Lab::start([temporary("only", None)]).await;
    let mut attempts = lab.attempts(Method::GET);
    lab.next(&mut attempts);
    let result = evaluate(&mut attempts, answer(403, UNKNOWN), None).await;
    assert_eq!(error(result), ErrorKind::SlowDown, "there are no others yet");

    let lab = Lab::start([Credentials::new("permanent", "secret", None, None, "test")]).await;
    let mut attempts = lab.attempts(Method::GET);
    lab.next(&mut attempts);
    let result = evaluate(&mut attempts, answer(403, UNKNOWN), None).await;
    assert_eq!(
        error(result),
        ErrorKind::InvalidIdentity,
        "there will be no others"
    );
    assert_eq!(lab.source.fetches(), 1);
}

/// HEAD has no document with the reason.
#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_reason_replaces_credentials_once_for_all_requests() {
    let lab = Lab::start(["first", "second", "third"].map(|name| temporary(name, None))).await;
    let mut attempts = lab.attempts(Method::HEAD);
    lab.next(&mut attempts);
    assert!(is_retry(&evaluate(&mut attempts, answer(400, ""), None).await));
    let mut attempts = lab.attempts(Method::HEAD);
    assert_eq!(lab.next(&mut attempts), signed_with("second", HOME));
    let result = evaluate(&mut attempts, answer(400, ""), None).await;
    let AttemptResult::Final(Ok(refusal)) = result else {
        panic!("expected the answer of the store, found {result:?}");
    };
    assert_eq!(refusal.status(), 400);
    assert_eq!(lab.source.fetches(), 2);
}

/// The connection of the refused attempt polls the body while the gateway waits.
#[tokio::test(start_paused = true)]
async fn the_body_is_kept_for_the_next_attempt() {
    let lab = Lab::start(["first", "second"].map(|name| temporary(name, None))).await;
    let mut attempts = lab.attempts(Method::PUT);
    lab.next(&mut attempts);
    let body = UnsentBody::new(body::full("content"));
    let refused = body.next_request().unwrap();
    let evaluation = evaluate(&mut attempts, answer(400, EXPIRED), Some(&body));
    let (result, sent) = tokio::join!(evaluation, refused.collect());
    assert!(is_retry(&result) && sent.is_err());
    assert_eq!(lab.next(&mut attempts), signed_with("second", HOME));
    let sent = body.next_request().unwrap().collect().await.unwrap();
    assert_eq!(sent.to_bytes(), "content");
}
