use http::Request;
use http_body_util::BodyExt as _;

use super::*;
use crate::{
    access::{Action, Keys},
    origin::StoreIdentity,
};

const ACCESS_KEY: &str = "TESTTRAINER00001";

const MODE: PayloadMode = PayloadMode::SignedChunks;

/// A deletion in `bucket` by a key that may delete below `2024/`, and versions below `2024/v/`.
fn deletion(bucket: &str) -> Deletion {
    let grant = |prefix: &str, allow: &str| {
        format!("[[key.grant]]\nbucket = \"photos\"\nprefix = {prefix:?}\nallow = [{allow}]\n")
    };
    let keys = Keys::from_text(&format!(
        "[[key]]\naccess-key = \"{ACCESS_KEY}\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"gateway\"\n{}{}",
        grant("2024/", "\"delete\""),
        grant("2024/v/", "\"versions\""),
    ))
    .unwrap();
    let key = keys.get(ACCESS_KEY).unwrap();
    Deletion {
        signer: Signer::new(keys, "us-east-1", StoreIdentity::from_environment()),
        caller: Caller::new(key, 0),
        address: RequestAddress::new(b"gateway", &format!("/{bucket}"), &[]).unwrap(),
        accesses: Vec::new(),
    }
}

/// A list of objects as `key` or `key?version`.
fn list(objects: &[&str]) -> String {
    let objects = objects.iter().map(|object| match object.split_once('?') {
        Some((key, version)) => {
            format!("<Object><Key>{key}</Key><VersionId>{version}</VersionId></Object>")
        }
        None => format!("<Object><Key>{object}</Key></Object>"),
    });
    let objects = objects.collect::<Vec<_>>().concat();
    format!("<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{objects}<Quiet>true</Quiet></Delete>")
}

fn head() -> Parts {
    let request = Request::post("/photos?delete=").header("content-md5", "kAFQmDzST7DWlj99KOF/cg==");
    request.body(()).unwrap().into_parts().0
}

/// The decision on a list, and the head for the store.
fn decide(objects: &[&str]) -> (DecidedDeletion, Parts) {
    let mut parts = head();
    parts.headers.clear();
    let audit = AuditRecord::for_test(&parts);
    let decided = deletion("photos").decide(MODE, list(objects).as_bytes(), &mut parts, &audit);
    (decided.unwrap(), parts)
}

async fn text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.into()).unwrap()
}

fn error(name: &str) -> String {
    format!("<Error>{name}<Code>AccessDenied</Code><Message>Access Denied</Message></Error>")
}

#[tokio::test]
async fn the_store_gets_what_the_key_may_delete() {
    let objects = [
        "2024/a",
        "2023/b",
        "2024/v/c?1",
        "2024/d?2",
        "2024-secret/e",
        "2024/../f",
    ];
    let (decided, parts) = decide(&objects);
    let allowed = decided.allowed().unwrap();
    assert_eq!(allowed.body, list(&["2024/a", "2024/v/c?1"]));
    assert!(parts.headers.contains_key("content-md5"));
    let accesses = [
        Access::object(Action::Delete, "photos", "2024/a"),
        Access::object(Action::Delete, "photos", "2024/v/c"),
        Access::object(Action::Versions, "photos", "2024/v/c"),
    ];
    assert_eq!(allowed.signing.allowed().accesses(), accesses);
    let stored = Response::new(body::full("<DeleteResult></DeleteResult>"));
    let errors = [
        error("<Key>2023/b</Key>"),
        error("<Key>2024/d</Key><VersionId>2</VersionId>"),
        error("<Key>2024-secret/e</Key>"),
        error("<Key>2024/../f</Key>"),
    ];
    let answer = text(decided.complete(stored).await.unwrap()).await;
    assert_eq!(
        answer,
        format!("<DeleteResult>{}</DeleteResult>", errors.concat())
    );
    let mut refusal = Response::new(body::full("<Error/>"));
    *refusal.status_mut() = StatusCode::NOT_FOUND;
    assert_eq!(text(decided.complete(refusal).await.unwrap()).await, "<Error/>");
    let other = Response::new(body::full("<Error/>"));
    let error = decided.complete(other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OriginUnavailable);
}

#[tokio::test]
async fn the_store_gets_nothing_if_all_objects_are_denied() {
    let (decided, _) = decide(&["2023/a", "2024"]);
    assert!(decided.allowed().is_none(), "neither a body nor a signature");
    let answer = decided.refusal();
    assert_eq!(answer.status(), 200);
    let errors = [error("<Key>2023/a</Key>"), error("<Key>2024</Key>")].concat();
    let answer = text(answer).await;
    assert!(
        answer.ends_with(&format!("/\">{errors}</DeleteResult>")),
        "{answer}"
    );
}

#[tokio::test]
async fn an_answer_without_denied_objects_passes_unchanged() {
    let (decided, _) = decide(&["2024/a"]);
    let stored = Response::new(body::full("anything"));
    assert_eq!(text(decided.complete(stored).await.unwrap()).await, "anything");
}

#[test]
fn what_is_no_list_is_refused() {
    let refused = |bucket: &str, body: &[u8], parts: &mut Parts| {
        let audit = AuditRecord::for_test(parts);
        // Without a decision there is no signature.
        deletion(bucket)
            .decide(MODE, body, parts, &audit)
            .unwrap_err()
            .kind()
    };
    let mut parts = head();
    // The checksum of the head is that of `abc`.
    assert_eq!(
        refused("photos", list(&["2024/a"]).as_bytes(), &mut parts),
        ErrorKind::BadDigest
    );
    assert_eq!(refused("photos", b"abc", &mut parts), ErrorKind::MalformedXml);
    parts.headers.clear();
    assert_eq!(refused("photos", b"\xff", &mut parts), ErrorKind::MalformedXml);
    assert_eq!(
        refused("Photos", list(&["2024/a"]).as_bytes(), &mut parts),
        ErrorKind::InvalidBucketName
    );
}
