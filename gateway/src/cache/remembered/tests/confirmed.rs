//! Versions that the store has confirmed to the gateway's own identity.

use super::*;

const MAX_AGE: Duration = Duration::from_mins(1);

fn confirming(scope: Scope) -> Remembered {
    let rules = Rules {
        max_age: MAX_AGE,
        scope,
        ..Rules::default()
    };
    Remembered::new(rules, 1 << 20).unwrap()
}

/// What the store has answered to the gateway's own identity.
fn asked(target: &str, etag: &'static str, asked_at: Instant) -> Authorization {
    let headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static(etag))]);
    let answer = OriginObject::for_test(StatusCode::NOT_MODIFIED, headers).with_asked_at(asked_at);
    Authorization::from_answer(object(target), &answer).unwrap()
}

fn object(target: &str) -> ObjectId {
    ObjectId::new(None, &target.parse().unwrap())
}

#[test]
fn a_version_is_confirmed_until_its_max_age() {
    let (remembered, now) = (confirming(Scope::Shared), Instant::now());
    let answer = asked("/b/k", "\"1\"", now);
    remembered.insert_confirmation("a", &answer);
    let found = |target: &str, after| remembered.confirmation("b", &object(target), now + after);
    assert_eq!(found("/b/%6B", Duration::ZERO), answer.confirmation());
    assert!(found("/b/k", Duration::from_millis(59_999)).is_some());
    assert_eq!(found("/b/k", MAX_AGE), None);
    for other in ["/b/l", "/b/k?versionId=1"] {
        assert_eq!(found(other, Duration::ZERO), None, "{other}");
    }
}

#[test]
fn the_latest_answer_counts() {
    let (remembered, now) = (confirming(Scope::Shared), Instant::now());
    let later = asked("/b/k", "\"2\"", now + Duration::from_millis(1));
    for answer in [&later, &asked("/b/k", "\"1\"", now)] {
        remembered.insert_confirmation("a", answer);
    }
    let found = remembered.confirmation("a", &object("/b/k"), now);
    assert_eq!(found, later.confirmation());
}

#[test]
fn answers_to_callers_confirm_nothing() {
    let remembered = confirming(Scope::Shared);
    let request = request("/b/k");
    remembered.insert_confirmation("a", &authorization(&request));
    assert_eq!(
        remembered.confirmation("a", &request.object_id(), Instant::now()),
        None
    );
}

#[test]
fn tenants_who_share_no_values_share_no_confirmations() {
    let (remembered, now) = (confirming(Scope::Tenant), Instant::now());
    remembered.insert_confirmation("a", &asked("/b/k", "\"1\"", now));
    assert!(remembered.confirmation("a", &object("/b/k"), now).is_some());
    assert_eq!(remembered.confirmation("b", &object("/b/k"), now), None);
}

#[test]
fn a_write_ends_what_was_confirmed() {
    let remembered = confirming(Scope::Shared);
    let object = object("/b/k");
    let is_confirmed = || remembered.confirmation("a", &object, Instant::now()).is_some();
    let before = Instant::now();
    remembered.insert_confirmation("a", &asked("/b/k", "\"1\"", before));
    assert!(is_confirmed());
    remembered.writes().unwrap().mark(&object);
    assert!(!is_confirmed());
    // An answer that arrives late is about the time before.
    remembered.insert_confirmation("a", &asked("/b/k", "\"1\"", before));
    assert!(!is_confirmed());
    let after = Instant::now() + Duration::from_nanos(1);
    remembered.insert_confirmation("a", &asked("/b/k", "\"2\"", after));
    assert!(is_confirmed());
}

#[test]
fn memory_is_bounded() {
    let (remembered, now) = (confirming(Scope::Shared), Instant::now());
    for number in 0..10_000 {
        remembered.insert_confirmation("a", &asked(&format!("/b/{number}"), "\"1\"", now));
    }
    assert!(remembered.table.usage() <= 1 << 20);
    assert!(remembered.confirmation("a", &object("/b/9999"), now).is_some());
    assert_eq!(remembered.confirmation("a", &object("/b/0"), now), None);
}
