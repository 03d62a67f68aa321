use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::access::grant::BucketScope;
use crate::access::{Action, Keys, ModelNames, Secret, Upstream};

/// Reads a text with two environment variables: `SECRET` and `SHORT`.
fn parse(text: &str, folder: &Path) -> Result<Keys, Vec<String>> {
    let mut faults = Vec::new();
    let sources = SecretSources {
        folder,
        environment: &|name| match name {
            "SECRET" => Some("secret-of-the-environment".to_owned()),
            "SHORT" => Some("short".to_owned()),
            _ => None,
        },
    };
    let keys = parse::parse(text, &sources, &mut faults);
    if faults.is_empty() {
        Ok(Keys::new(keys))
    } else {
        Err(faults)
    }
}

fn faults(text: &str) -> Vec<String> {
    parse(text, Path::new("")).unwrap_err()
}

fn private_file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    file
}

const COMPLETE: &str = r#"
[[key]]
access-key = "TESTTRAINER00001"
secret-file = "trainer"
previous-secret-env = "SECRET"
tenant = "vision"
upstream = "gateway"
models = ["resnet50", "clip"]

[[key.grant]]
bucket = "photos"
prefix = "2024/"
allow = ["read", "list"]
pipelines = true

[[key.grant]]
bucket = "*"
allow = ["list"]

[[key]]
access-key = "TESTCALLER000001"
secret = "secret-of-the-caller"
upstream = "self"
"#;

#[test]
fn a_complete_file() {
    let folder = tempfile::tempdir().unwrap();
    private_file(folder.path(), "trainer", "secret-of-the-trainer\n");
    let keys = parse(COMPLETE, folder.path()).unwrap();
    let key = keys.get("TESTTRAINER00001").unwrap();
    let secrets: Vec<_> = key.secrets().iter().map(Secret::as_bytes).collect();
    assert_eq!(
        secrets,
        [&b"secret-of-the-trainer"[..], b"secret-of-the-environment"]
    );
    assert_eq!((key.tenant(), key.upstream()), ("vision", Upstream::Gateway));
    assert!(key.models().contains("clip") && !key.models().contains("vit"));
    let [photos, all] = key.grants().as_slice() else {
        panic!("{:?}", key.grants());
    };
    assert_eq!(
        (photos.bucket(), photos.prefix(), photos.allows_pipelines()),
        (&BucketScope::Named("photos".to_owned()), "2024/", true)
    );
    assert!(photos.actions().eq([Action::List, Action::Read]));
    assert_eq!(
        (all.bucket(), all.prefix(), all.allows_pipelines()),
        (&BucketScope::All, "", false)
    );
}

#[test]
fn without_grants_the_store_decides_on_its_own_keys_only() {
    let text = |upstream: &str| {
        format!(
            "[[key]]\naccess-key = \"TESTCALLER000001\"\nsecret-env = \"SECRET\"\nupstream = \"{upstream}\"\n"
        )
    };
    let key = |text: &str| {
        let keys = parse(text, Path::new("")).unwrap();
        keys.get("TESTCALLER000001").unwrap()
    };
    let caller = key(&text("self"));
    assert_eq!(
        (caller.is_unrestricted(), caller.models()),
        (true, &ModelNames::All)
    );
    assert_eq!((caller.tenant(), caller.secrets().len()), ("TESTCALLER000001", 1));
    let gateway = key(&text("gateway"));
    assert!(!gateway.is_unrestricted() && !gateway.models().contains("resnet50"));
    let grant = "[[key.grant]]\nbucket = \"photos\"\nallow = [\"read\"]\n";
    let narrowed = key(&format!("{}{grant}", text("self")));
    assert!(!narrowed.is_unrestricted() && !narrowed.models().contains("resnet50"));
}

#[test]
fn all_faults_are_reported_at_once() {
    let text = r#"
version = 1

[[key]]
access-key = "AKIAIOSFODNN7EXAMPLE"
secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
upstream = "store"
tenant = ""

[[key]]
access-key = "hidden short"
secret = 1234567890123456
upstream = "self"
models = ["*", "clip"]

[[key]]
access-key = "TESTTRAINER00001"
secret = "TESTTRAINER00001"
previous-secret-env = "SHORT"
upstream = "gateway"

[[key.grant]]
bucket = "pho*"
prefix = "2024"
allow = ["read", "reads", "*"]
conditions = "none"

[[key.grant]]
bucket = ".."
prefix = "/a/"
allow = []

[[key.grant]]
prefix = "a/../b/"
allow = "read"

[[key.grant]]
bucket = "photos"
prefix = "2024/*/"
allow = ["list"]
pipelines = true

[[key]]
access-key = "TESTTRAINER00001"
secret = "hidden secret with spaces"
secret-file = "missing"
previous-secret-file = "missing"
tenant = "vision"

[[key]]
access-key = "TESTCALLER000001"
secret-env = "UNSET"
previous-secret = "hidden\u0000secret-of-a-test"
upstream = 5
grant = "read"

[[key]]
access-key = "TESTROTATED00001"
secret-env = "SECRET"
previous-secret = "secret-of-the-environment"
upstream = "self"

[[key]]
access-key = "TESTNOSECRET0001"
upstream = "self"
"#;
    let faults = faults(text);
    assert!(
        faults
            .iter()
            .all(|fault| !fault.contains("hidden") && !fault.contains("1234"))
    );
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn a_syntax_fault_names_its_line_and_does_not_show_it() {
    for text in [
        "[[key]]\naccess-key = \"TESTTRAINER00001\"\nsecret = hidden-secret\n",
        "[[key]]\naccess-key = \"TESTTRAINER00001\"\nsecret = \"hidden-secret\n",
        "[[key]]\nsecret = \"a\"\nsecret = \"hidden-secret\"\n",
    ] {
        let faults = faults(text);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("line 3: "), "{faults:?}");
        assert!(!faults[0].contains("hidden"), "{faults:?}");
    }
}

#[test]
fn a_file_without_keys_is_a_fault() {
    for text in ["", "key = []\n", "# nothing\n"] {
        assert_eq!(
            faults(text),
            ["no keys: expected a [[key]] table; make one with `pushdown-gateway keys new`"],
            "{text}"
        );
    }
    assert_eq!(
        faults("[key]\nsecret = \"hidden\"\n"),
        ["key: expected an array of tables, found a table"]
    );
    assert_eq!(faults("key = [1]\n"), ["key: expected tables, found an integer"]);
}

#[test]
fn the_mode_of_the_file_is_reported_with_its_other_faults() {
    let folder = tempfile::tempdir().unwrap();
    let file = private_file(folder.path(), "keys.toml", "version = 1\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let shown = load(&file).unwrap_err().to_string();
    let expected = format!(
        "invalid keys file {}:\n  - invalid mode: expected 0600, found 0644: ",
        file.display()
    );
    assert!(shown.starts_with(&expected), "{shown}");
    assert!(shown.contains("\n  - no keys: "), "{shown}");
    assert!(shown.contains("\n  - unknown field `version`: "), "{shown}");
}

#[test]
fn the_mode_of_a_file_with_a_secret_counts_too() {
    let folder = tempfile::tempdir().unwrap();
    let secret = private_file(folder.path(), "trainer", "secret-of-the-trainer");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o604)).unwrap();
    let faults = parse(COMPLETE, folder.path()).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("expected 0600, found 0604"), "{faults:?}");
}
