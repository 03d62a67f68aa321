mod validity;

use super::*;

const ACCESS_KEY: &str = "TESTTRAINER00001";

/// The only key of a file with these lines after its access key.
fn keys(upstream: &str, lines: &str) -> Keys {
    let text = format!(
        "[[key]]\naccess-key = \"{ACCESS_KEY}\"\nsecret = \"a-secret-of-a-test\"\nupstream = \"{upstream}\"\n{lines}"
    );
    Keys::from_text(&text).unwrap()
}

fn key(upstream: &str, lines: &str) -> Arc<Key> {
    keys(upstream, lines).get(ACCESS_KEY).unwrap()
}

/// A key with grants as `(bucket, prefix, allow)`, the actions separated by spaces.
fn granted(upstream: &str, grants: &[(&str, &str, &str)]) -> Arc<Key> {
    let blocks = grants.iter().map(|(bucket, prefix, allow)| {
        let allow: Vec<_> = allow.split(' ').map(|action| format!("{action:?}")).collect();
        let allow = allow.join(", ");
        format!("[[key.grant]]\nbucket = {bucket:?}\nprefix = {prefix:?}\nallow = [{allow}]\n")
    });
    key(upstream, &blocks.collect::<Vec<_>>().concat())
}

fn decide(key: &Arc<Key>, accesses: &[Access]) -> Result<Allowed, Denied> {
    Grants::decide(key, accesses, &Needs::default())
}

fn object(action: Action, bucket: &str, object_key: &str) -> Access {
    Access::object(action, bucket, object_key)
}

#[test]
fn each_action_is_denied_without_its_own_grant() {
    use Action::{Admin, Delete, List, Read, Versions, Write};

    let others = |action: Action| {
        let others = Action::ALL.into_iter().filter(|other| *other != action);
        others.map(Action::as_str).collect::<Vec<_>>().join(" ")
    };
    for (access, action) in [
        (Access::prefix(List, "photos", "2024/"), List),
        (Access::bucket(List, "photos"), List),
        (object(Read, "photos", "2024/a.jpg"), Read),
        (object(Write, "photos", "2024/a.jpg"), Write),
        (object(Delete, "photos", "2024/a.jpg"), Delete),
        (object(Versions, "photos", "2024/a.jpg"), Versions),
        (Access::prefix(Versions, "photos", "2024/"), Versions),
        (object(Admin, "photos", "2024/a.jpg"), Admin),
    ] {
        let denied = granted("gateway", &[("photos", "2024/", &others(action))]);
        let verdict = decide(&denied, std::slice::from_ref(&access)).unwrap_err();
        assert_eq!(verdict, Denied::NoGrant(action), "{access:?}");
        let allowed = granted("gateway", &[("photos", "2024/", action.as_str())]);
        let verdict = decide(&allowed, &[access]).unwrap();
        assert_eq!(verdict.grant(), Some(1));
    }
}

#[test]
fn a_grant_ends_at_its_bucket_and_its_prefix() {
    use Action::{Admin, List, Read, Versions, Write};

    let all = "list read write delete versions admin";
    let key = granted("gateway", &[("photos", "2024/", all)]);
    for access in [
        object(Read, "photos", "2024-secret/a.jpg"),
        object(Read, "photos", "2024"),
        object(Read, "photos", "2023/a.jpg"),
        object(Read, "photos", "x/2024/a.jpg"),
        object(Read, "photos", "/2024/a.jpg"),
        object(Read, "photos", ""),
        object(Read, "photos2", "2024/a.jpg"),
        object(Read, "my-photos", "2024/a.jpg"),
        object(Write, "photos.", "2024/a.jpg"),
        Access::prefix(List, "photos", ""),
        Access::prefix(List, "photos", "2024"),
        Access::prefix(List, "photos", "2024-secret/"),
        Access::prefix(List, "photos2", "2024/"),
        Access::prefix(Versions, "photos", "2024"),
        Access::bucket(List, "photos2"),
        Access::bucket(Versions, "photos"),
        Access::bucket(Read, "photos"),
        Access::bucket(Admin, "photos"),
        Access::service(Admin),
        Access::service(Read),
    ] {
        assert!(decide(&key, std::slice::from_ref(&access)).is_err(), "{access:?}");
    }
    for access in [
        object(Read, "photos", "2024/a.jpg"),
        object(Read, "photos", "2024/"),
        object(Read, "photos", "2024//a/b"),
        object(Admin, "photos", "2024/a.jpg"),
        Access::prefix(List, "photos", "2024/"),
        Access::prefix(List, "photos", "2024/ja"),
        Access::bucket(List, "photos"),
        Access::service(List),
    ] {
        assert!(decide(&key, std::slice::from_ref(&access)).is_ok(), "{access:?}");
    }
}

#[test]
fn unsafe_names_are_refused_before_any_grant_is_asked() {
    use Action::{List, Read};

    let all = "list read write delete versions admin";
    for key in [
        granted("gateway", &[("*", "", all)]),
        granted("self", &[("*", "", all)]),
        key("gateway", ""),
    ] {
        for (access, expected) in [
            (object(Read, "photos", "2024/../2023/a"), Denied::UnsafeKey),
            (object(Read, "photos", ".."), Denied::UnsafeKey),
            (object(Read, "photos", "./a"), Denied::UnsafeKey),
            (object(Read, "photos", "a\0b"), Denied::UnsafeKey),
            (Access::prefix(List, "photos", "2024/../"), Denied::UnsafeKey),
            (object(Read, "*", "a"), Denied::InvalidBucket),
            (object(Read, "..", "a"), Denied::InvalidBucket),
            (object(Read, "", "a"), Denied::InvalidBucket),
            (object(Read, "Photos", "a"), Denied::InvalidBucket),
            (object(Read, "photos/2024", "a"), Denied::InvalidBucket),
            (Access::bucket(List, "*"), Denied::InvalidBucket),
        ] {
            let denied = decide(&key, std::slice::from_ref(&access)).unwrap_err();
            assert_eq!(denied, expected, "{access:?}");
        }
    }
    let unrestricted = key("self", "");
    assert!(decide(&unrestricted, &[object(Read, "Photos", "a/../b")]).is_ok());
}

#[test]
fn every_access_of_a_request_needs_a_grant() {
    use Action::{Read, Versions, Write};

    let grants = [("photos", "raw/", "read versions"), ("thumbs", "", "write")];
    let key = granted("gateway", &grants);
    let copy = |source: &str, target: &str| {
        let accesses = [object(Read, source, "raw/a"), object(Write, target, "raw/a")];
        decide(&key, &accesses).map(|allowed| allowed.grant())
    };
    assert_eq!(copy("thumbs", "thumbs"), Err(Denied::NoGrant(Read)));
    assert_eq!(copy("photos", "photos"), Err(Denied::NoGrant(Write)));
    assert_eq!(copy("photos", "thumbs"), Ok(Some(1)));
    let version = |bucket: &str, object_key: &str| {
        let accesses = [
            object(Read, bucket, object_key),
            object(Versions, bucket, object_key),
        ];
        decide(&key, &accesses).is_ok()
    };
    assert!(version("photos", "raw/a") && !version("photos", "a") && !version("thumbs", "raw/a"));
}

#[test]
fn nothing_is_allowed_without_a_grant_or_without_an_access() {
    let without = key("gateway", "");
    for action in Action::ALL {
        for access in [
            Access::service(action),
            Access::bucket(action, "photos"),
            Access::prefix(action, "photos", ""),
            object(action, "photos", "a"),
        ] {
            let denied = decide(&without, std::slice::from_ref(&access)).unwrap_err();
            assert_eq!(denied, Denied::NoGrant(action), "{access:?}");
        }
    }
    let unrestricted = key("self", "");
    assert_eq!(decide(&unrestricted, &[]).unwrap_err(), Denied::NoAccess);
    let allowed = decide(&unrestricted, &[object(Action::Admin, "photos", "a")]).unwrap();
    assert_eq!((allowed.grant(), allowed.generation()), (None, 1));
}

#[test]
fn admin_of_all_buckets_covers_what_is_unknown() {
    let access = [
        Access::service(Action::Admin),
        Access::bucket(Action::Admin, "photos"),
    ];
    for (grant, expected) in [
        (("*", "a/", "admin"), [false, false]),
        (("photos", "", "list read write delete versions"), [false, false]),
        (("photos", "", "admin"), [false, true]),
        (("*", "", "admin"), [true, true]),
    ] {
        let key = granted("gateway", &[grant]);
        let found = access
            .each_ref()
            .map(|access| decide(&key, std::slice::from_ref(access)).is_ok());
        assert_eq!(found, expected, "{grant:?}");
    }
}

#[test]
fn grants_of_a_key_that_the_store_knows_only_narrow() {
    let key = granted("self", &[("photos", "2024/", "read")]);
    let verdict = |action, object_key| decide(&key, &[object(action, "photos", object_key)]).is_ok();
    assert!(!verdict(Action::Read, "2023/a") && !verdict(Action::Write, "2024/a"));
    assert!(verdict(Action::Read, "2024/a"));
}

#[test]
fn a_pipeline_needs_a_grant_that_allows_it() {
    let key = key(
        "gateway",
        "models = [\"resnet50\"]\n\
         [[key.grant]]\nbucket = \"photos\"\nallow = [\"read\", \"list\"]\n\
         [[key.grant]]\nbucket = \"photos\"\nprefix = \"raw/\"\nallow = [\"read\"]\npipelines = true\n",
    );
    let verdict = |object_key: &str, models: &[&str]| {
        let needs = Needs {
            pipelines: true,
            models: models.iter().map(|name| (*name).to_owned()).collect(),
        };
        let accesses = [object(Action::Read, "photos", object_key)];
        Grants::decide(&key, &accesses, &needs).map(|allowed| allowed.grant())
    };
    assert_eq!(verdict("a.jpg", &[]), Err(Denied::NoPipelines));
    assert_eq!(
        verdict("raw/a.jpg", &["vit"]),
        Err(Denied::NoModel("vit".to_owned()))
    );
    assert_eq!(verdict("raw/a.jpg", &["resnet50"]), Ok(Some(2)));
    let pipelines = Needs {
        pipelines: true,
        models: Vec::new(),
    };
    let list = [Access::prefix(Action::List, "photos", "raw/")];
    let denied = Grants::decide(&key, &list, &pipelines).unwrap_err();
    assert_eq!(denied, Denied::NoPipelines);
}

#[test]
fn a_model_needs_its_name_and_no_grant() {
    let download = |key: &Arc<Key>| {
        let needs = Needs {
            pipelines: false,
            models: vec!["clip".to_owned()],
        };
        Grants::decide(key, &[], &needs).is_ok()
    };
    let grant = "[[key.grant]]\nbucket = \"*\"\nallow = [\"read\"]\npipelines = true\n";
    for (upstream, lines, expected) in [
        ("gateway", "", false),
        ("gateway", grant, false),
        ("gateway", "models = [\"vit\"]\n", false),
        ("gateway", "models = [\"clip\"]\n", true),
        ("gateway", "models = [\"*\"]\n", true),
        ("self", "models = []\n", false),
        ("self", grant, false),
        ("self", "", true),
    ] {
        assert_eq!(download(&key(upstream, lines)), expected, "{upstream} {lines}");
    }
}

#[test]
fn buckets_without_a_grant_are_not_listed() {
    let key = granted("gateway", &[("photos", "2024/", "read")]);
    assert!(key.can_see_bucket("photos") && !key.can_see_bucket("photos2"));
    assert!(granted("gateway", &[("*", "a/", "list")]).can_see_bucket("photos"));
}
