//! Requests that outlive a change of the keys.

use super::*;

#[test]
fn a_request_stays_allowed_while_its_key_allows_it() {
    let grant = |prefix: &str| {
        format!("[[key.grant]]\nbucket = \"photos\"\nprefix = \"{prefix}\"\nallow = [\"read\"]\n")
    };
    let keys_in_use = keys("gateway", &grant("2024/"));
    let before = keys_in_use.get(ACCESS_KEY).unwrap();
    let allowed = decide(&before, &[object(Action::Read, "photos", "2024/a")]).unwrap();
    let is_valid_after = |next: &Keys| {
        let settings = next.all().iter().map(|key| key.settings().clone()).collect();
        keys_in_use.replace(settings);
        allowed.is_still_valid(&keys_in_use)
    };
    assert!(allowed.is_still_valid(&keys_in_use));
    assert!(is_valid_after(&keys("gateway", &grant(""))));
    assert!(!is_valid_after(&keys("gateway", &grant("2023/"))));
    assert!(!is_valid_after(&keys("gateway", "")));
    assert!(!is_valid_after(&keys("self", &grant("2024/"))));
    assert!(is_valid_after(&keys("gateway", &grant("2024/"))));
    assert!(!is_valid_after(&Keys::for_test(&[(
        "TESTOTHERKEY0001",
        "another-secret"
    )])));
}

#[test]
fn a_rotated_secret_is_valid_until_it_is_removed() {
    let rotating = |secrets: &str| {
        let text = format!("[[key]]\naccess-key = \"{ACCESS_KEY}\"\nupstream = \"self\"\n{secrets}");
        Keys::from_text(&text).unwrap()
    };
    let old = "secret = \"the-old-secret-0001\"\n";
    let both = "secret = \"the-new-secret-0001\"\nprevious-secret = \"the-old-secret-0001\"\n";
    let new = "secret = \"the-new-secret-0001\"\n";
    let keys_in_use = rotating(old);
    let request = || {
        let key = keys_in_use.get(ACCESS_KEY).unwrap();
        decide(&key, &[object(Action::Read, "photos", "a")]).unwrap()
    };
    let replace = |secrets: &str| {
        let next = rotating(secrets).get(ACCESS_KEY).unwrap();
        keys_in_use.replace(vec![next.settings().clone()]);
    };
    let before = request();
    replace(both);
    assert!(before.is_still_valid(&keys_in_use));
    let key = keys_in_use.get(ACCESS_KEY).unwrap();
    let signed_with = |index| {
        let accesses = [object(Action::Read, "photos", "a")];
        Grants::decide(Caller::new(Arc::clone(&key), index), &accesses, &Needs::default()).unwrap()
    };
    let [with_new, with_old] = [0, 1].map(signed_with);
    let with_either = request();
    assert!(with_new.is_still_valid(&keys_in_use) && with_old.is_still_valid(&keys_in_use));
    replace(new);
    assert!(!before.is_still_valid(&keys_in_use) && !with_old.is_still_valid(&keys_in_use));
    assert!(with_new.is_still_valid(&keys_in_use) && with_either.is_still_valid(&keys_in_use));
}
